package host

import (
	"testing"
	"time"
)

// What the gateway refuses counts among the refusals by rule, as what is refused in the lane does, and is named.
func TestNoteDenied_CountsAsRefusalByRule(t *testing.T) {
	w := &Worker{}
	w.cfg.Now = func() time.Time { return time.Unix(1, 0) }
	for range 2 {
		w.NoteDenied("bob", "s", "add", "no rule allows it")
	}
	list, count := w.counters.denials()
	if n := w.counters.byRule.Load(); n != 2 || count != 2 || len(list) != 1 || list[0].Count != 2 {
		t.Errorf("%d refusals by rule, %d in the list %+v", n, count, list)
	}
}
