package fleet

import (
	"strings"
	"testing"
)

// The text lists which partitions of a silent worker are taken over, by which workers, and which have no
// owner.
func TestHanging_SaysWhatHasBecomeOfItsPartitions(t *testing.T) {
	f := &Fleet{Workers: []Member{
		{ID: "a", State: Here}, {ID: "b", State: Leaving}, {ID: "gone", State: Gone}, {ID: "idle", State: Silent}, {ID: "hung", State: Silent},
	}}
	partition := func(silent string, served ...string) {
		f.Partitions = append(f.Partitions, Partition{Number: len(f.Partitions), Served: served, Silent: strings.Fields(silent)})
	}
	said := func() (all []string) {
		for _, h := range f.Hanging() {
			all = append(all, h.Worker+": "+h.String())
		}
		return all
	}
	partition("", "a")
	partition("hung", "b")
	if got := strings.Join(said(), "; "); got != "idle: ; hung: partition 1 that it served is served by b now" {
		t.Errorf("one partition that was taken over: %q", got)
	}
	partition("hung", "a")
	partition("hung", "a", "b")
	partition("hung")
	want := "hung: partitions 1-3 that it served are served by a, b now, and partition 4 that it serves stands still until another worker takes over, after the member TTL (15 s by default)"
	if got := said(); got[1] != want {
		t.Errorf("some that were taken over: %q", got[1])
	}
	f.Partitions = nil
	partition("hung")
	partition("hung")
	if got := said(); got[1] != "hung: partitions 0 1 that it serves stand still until another worker takes over, after the member TTL (15 s by default)" {
		t.Errorf("none that was taken over: %q", got[1])
	}
}
