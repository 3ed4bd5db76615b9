package host

import (
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

func TestEvent_AnUnhandleableEventIsRefused(t *testing.T) {
	now := time.Now()
	old := model.TimedEventID(now.Add(-24*time.Hour), "e")
	minted := (model.TxID{Space: "other", Epoch: 1, N: 1}).Event(0)
	for name, c := range map[string]struct {
		m       model.Message
		refused bool
	}{
		"a plain one":                  {model.Message{ID: "e1", Stored: now}, false},
		"an old id":                    {model.Message{ID: old, Stored: now}, true},
		"a position without an origin": {model.Message{ID: "e1", Position: 3, Stored: now}, true},
		"an origin without a position": {model.Message{ID: minted, Stored: now}, true},
	} {
		c.m.Space, c.m.Stream = "k", "x"
		ev := eventOf(&c.m, time.Hour)
		if (ev.Invalid != "") != c.refused {
			t.Errorf("%s: refused with %q", name, ev.Invalid)
		}
		if c.refused && ev.Position != 0 {
			t.Errorf("%s: the event waits for its predecessor", name)
		}
	}
}
