package ordered

import "github.com/settlehq/settle/history"

// recall reads what the key has handled under positions that their origin has given out again, if the lane asks for it: the events of
// that origin wait for it.
func (h *host) recall() {
	of, asked := h.core.Lane().Reissued()
	if !asked || h.p.draining() {
		return
	}
	handled, err := history.Recall(h.p.ctx, h.p.bus, h.key, of, h.core.Replica().Seq)
	if err != nil {
		h.p.report("read what key "+h.key+" had handled before positions were given out again", err)
		return // it is asked for again
	}
	h.p.s.cfg.Logger.Error("a space has gone back to an earlier state: positions of what it sends are given out again. "+
		"What it sends now is handled; what its lost commits had sent stays handled, and is not handled once more",
		"space", of.Origin, "target", h.key, "first", of.First, "last", of.Last, "handled_before", len(handled))
	h.core.Lane().Recall(of, handled)
}
