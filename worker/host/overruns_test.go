package host

import (
	"testing"
	"time"
)

// A node that is given up repeatedly rests for longer each time. A node that has behaved for long starts
// again.
func TestOverruns_ANodeThatHasBehavedForLongStartsAgain(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	os := overruns{}
	rests := func(want time.Duration) {
		t.Helper()
		os.note("s", &Overrun{Node: "n"}, now)
		if got := os.of("s", now); len(got) != 1 || got[0].Until != want {
			t.Errorf("the node rests %+v, want %s", got, want)
		}
		now = now.Add(want)
	}
	rests(time.Minute)
	rests(2 * time.Minute)
	rests(4 * time.Minute)
	now = now.Add(longestNodeRest + time.Second)
	rests(time.Minute)
}
