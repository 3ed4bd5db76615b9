package worker

import (
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// recall reads the events that the space has handled under positions that their origin has reused, if the core requests it: the
// events of that origin wait, and no others.
func (h *host) recall() {
	of, asked := h.core.Reissued()
	if !asked || h.recalling {
		return
	}
	h.recalling = true
	upTo := h.core.Seq()
	h.env.tasks.Go(func() { // ends with the read
		handled, err := history.Recall(h.ctx, h.env.bus, h.space, of, upTo)
		if err != nil {
			_ = pause.For(h.ctx, askPause)
		}
		h.call(func() {
			h.recalling = false
			if err != nil {
				h.report("read what was handled before positions were given out again", err)
				return // it is requested again
			}
			h.tellReissued(of, len(handled))
			h.core.Recall(of, handled)
		})
	})
}

func (h *host) tellReissued(of model.Reissued, handled int) {
	h.env.cfg.Logger.Error("a space has gone back to an earlier state: positions of what it sends are given out again. "+
		"What it sends now is handled; what its lost commits had sent stays handled, and is not handled once more",
		"space", of.Origin, "target", h.space, "first", of.First, "last", of.Last, "handled_before", handled)
}
