package ordered

import (
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// saver writes a key's checkpoints, one at a time. It belongs to the host's loop, but for the
// checkpoint that is being written.
type saver struct {
	revs map[string]uint64 // bucket revision per item, the mark under ""
	// seq is the log sequence that is saved, lane the lane sequence up to which that was done.
	seq, lane uint64
	due       time.Time
	saving    bool
	under     *replica.Checkpoint
	underLane uint64
}

func newSaver(st model.SpaceState, rep *replica.Replica) saver {
	s := saver{revs: map[string]uint64{"": st.Mark.Rev}, seq: st.Mark.Seq, lane: rep.LaneDone()}
	for _, list := range [][]model.StateDoc{st.Docs, st.Pieces, st.Later} {
		s.note(list)
	}
	return s
}

func (s *saver) note(docs []model.StateDoc) {
	for i := range docs {
		s.revs[docs[i].Doc] = docs[i].Rev
	}
}

// saveIfDue begins to save what has changed since the last time.
func (h *host) saveIfDue() {
	if h.saver.saving || !h.ledger.owned() || time.Now().Before(h.saver.due) || !h.checkpoint() {
		return
	}
	c := h.saver.under
	h.p.tasks.Go(func() { // ends when the save is answered
		h.saves <- h.p.save(h.key, c)
	})
}

// checkpoint takes a checkpoint to be saved, unless all is.
func (h *host) checkpoint() bool {
	s, rep := &h.saver, h.ledger.rep
	if rep.Seq <= s.seq {
		return false
	}
	c, err := rep.Checkpoint()
	if err != nil {
		h.p.s.cfg.Logger.Error("checkpoint", "key", h.key, "error", err)
		return false
	}
	for i := range c.Docs {
		c.Docs[i].Rev = s.revs[c.Docs[i].Doc]
	}
	c.Mark.Rev = s.revs[""]
	s.under, s.underLane, s.saving = &c, rep.LaneDone(), true
	s.due = time.Now().Add(h.p.s.cfg.Checkpoint)
	return true
}

// saved takes in the answer to a save.
func (h *host) saved(err error) {
	s := &h.saver
	c := s.under
	s.saving, s.under = false, nil
	s.note(c.Docs)
	s.revs[""] = c.Mark.Rev
	if err != nil {
		h.ledger.rep.Spoil(*c)
		if !errors.Is(err, model.ErrOutdated) && h.p.ctx.Err() == nil {
			h.p.s.cfg.Logger.Warn("save checkpoint", "key", h.key, "error", err)
		}
		return
	}
	h.ledger.rep.MarkStands(model.Standing{Rev: c.Mark.Rev, Seq: c.Mark.Seq})
	s.seq, s.lane = max(s.seq, c.Mark.Seq), max(s.lane, s.underLane)
}

// saveNow is the last act of a host that gives its key up.
func (h *host) saveNow() error {
	if !h.ledger.owned() || !h.checkpoint() {
		return nil
	}
	err := h.p.save(h.key, h.saver.under)
	h.saved(err)
	if err != nil && !errors.Is(err, model.ErrOutdated) {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// save writes a checkpoint. An item of which the bucket has the same state or a newer one is as
// good as saved: an earlier owner, with the same log, was late.
func (p *partition) save(key string, c *replica.Checkpoint) error {
	err := p.bus.SaveState(p.ctx, key, c.Docs, &c.Mark)
	if err != nil && onlyOutdated(err) {
		err = p.bus.SaveState(p.ctx, key, nil, &c.Mark)
	}
	return err
}

// onlyOutdated reports whether each of the errors that are joined in err is ErrOutdated.
func onlyOutdated(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return errors.Is(err, model.ErrOutdated)
	}
	for _, e := range joined.Unwrap() {
		if !onlyOutdated(e) {
			return false
		}
	}
	return true
}
