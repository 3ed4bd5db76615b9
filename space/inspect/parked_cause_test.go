package inspect

import (
	"testing"
	"time"
)

// Each cause of waiting has a word, and a sentence that names what the event waits for, the number of
// attempts, and the time of the next one.
func TestParked_CauseIsAWordAndASentence(t *testing.T) {
	clock := func(at time.Duration) string { return "at+" + at.String() }
	for _, c := range []struct {
		p          Parked
		cause, why string
	}{
		{Parked{}, CauseTurn, "is to be handled"},
		{Parked{Head: Head{Until: time.Second, Attempts: 1, Most: 5, Reason: "no light"}}, CauseRetry, "an error that may pass has ended 1 of at most 5 attempts, the next is at at+1s: no light"},
		{Parked{Head: Head{Until: time.Second}}, CauseRetry, "tried again at at+1s, after a conflict"},
		{Parked{Head: Head{Lost: 2, MostLost: 3, Until: time.Second}}, CauseLost, "attempt 2 of 3: its process has ended in the ones before, or they were given up"},
		{Parked{Head: Head{Docs: []string{"@a/x", "@b/y"}}}, CauseDocument, "waits for document @a/x and @b/y, which is not here"},
		{Parked{Behind: []Explanation{{Node: Node{ID: "n", RunState: Gated, Status: "invalid", Gate: "debounce", Until: time.Minute}}}}, CauseGate, "waits for n, which is gated (debounce) until at+1m0s"},
		{Parked{Behind: []Explanation{{Node: Node{ID: "m", Status: Clean}, Behind: &Explanation{Node: Node{ID: "n", Status: "invalid", RunState: Waiting, Waits: "@a/x"}}}}}, CauseDocument, "waits for n, which waits for document @a/x"},
		{Parked{Behind: []Explanation{{Node: Node{ID: "n", Status: "invalid", RunState: Runnable}}}}, CauseComputation, "waits for n: it runs with the next pass"},
	} {
		if cause, why := c.p.Cause(clock); cause != c.cause || why != c.why {
			t.Errorf("%+v: %s: %s; want %s: %s", c.p, cause, why, c.cause, c.why)
		}
	}
}
