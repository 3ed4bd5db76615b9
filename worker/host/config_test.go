package host

import (
	"testing"

	"github.com/settlehq/settle/ledger"
)

// payload is a bus that only reports the largest message.
type payload struct {
	Bus
	most int
}

func (p payload) MaxPayload() int { return p.most }

// The worker passes its limits on to its spaces, and a commit takes at most half of max_payload.
func TestOptions_ACommitTakesHalfOfTheLargestMessage(t *testing.T) {
	for set, want := range map[int]int{0: 128 << 10, 40 << 10: 40 << 10, 1 << 20: 128 << 10} {
		h := newTestHost(t, 0)
		h.env.bus = payload{most: 256 << 10}
		h.env.cfg.Limits = ledger.Limits{MaxCommitBytes: set, MaxGroup: 7, RetryMax: 3}
		got := h.access()
		if got.MaxCommitBytes != want || got.MaxGroup != 7 || got.RetryMax != 3 {
			t.Errorf("with MaxCommitBytes %d, the core has %+v", set, got.Limits)
		}
	}
}
