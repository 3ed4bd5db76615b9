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
	failure   string // why the last save failed, "" if it did not
	// dueAt is the time of the saved item, see takeDue, or unknownDue, and underDue that of the one under way.
	dueAt, underDue int64
}

func newSaver(st model.SpaceState, rep *replica.Replica) saver {
	s := saver{revs: map[string]uint64{"": st.Mark.Rev}, seq: st.Mark.Seq, lane: rep.LaneDone()}
	for _, list := range [][]model.StateDoc{st.Docs, st.Pieces, st.Later, st.Due} {
		s.note(list)
	}
	if len(st.Due) > 0 {
		s.dueAt = unknownDue // a newer one may be saved than was read
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
	if h.saver.saving || !h.core.owned() || time.Now().Before(h.saver.due) || !h.checkpoint() {
		return
	}
	c := h.saver.under
	h.p.tasks.Go(func() { // ends when the save is answered
		h.saves <- h.p.save(h.key, c)
	})
}

// checkpoint takes a checkpoint to be saved, unless all is.
func (h *host) checkpoint() bool {
	s, rep := &h.saver, h.core.Replica()
	if rep.Seq <= s.seq {
		return false
	}
	c, err := rep.Checkpoint()
	if err != nil {
		h.p.s.cfg.faults.Error("checkpoint", h.key, "key", h.key, "error", err)
		return false
	}
	s.takeDue(rep, &c)
	for i := range c.Docs {
		c.Docs[i].Rev = s.revs[c.Docs[i].Doc]
	}
	c.Mark.Rev = s.revs[""]
	s.under, s.underLane, s.saving = &c, rep.LaneDone(), true
	s.due = time.Now().Add(h.p.s.cfg.Checkpoint)
	return true
}

// saved takes in the answer to a save. A mark that is newer says that others have committed.
func (h *host) saved(err error) error {
	s := &h.saver
	c := s.under
	s.saving, s.under = false, nil
	s.note(c.Docs)
	s.revs[""] = c.Mark.Rev
	s.failure = ""
	if err != nil {
		s.failure, s.dueAt = firstLine(err.Error()), unknownDue
		h.core.Replica().Spoil(*c)
		var newer *model.OutdatedError
		switch {
		case onlyOutdated(err) && errors.As(err, &newer):
			return h.overtaken(newer.Have)
		case h.p.ctx.Err() == nil:
			h.p.s.cfg.faults.Warn("save checkpoint", h.key, "key", h.key, "error", err)
		}
		return nil
	}
	h.core.Replica().MarkStands(model.Standing{Rev: c.Mark.Rev, Seq: c.Mark.Seq})
	s.seq, s.lane, s.dueAt = max(s.seq, c.Mark.Seq), max(s.lane, s.underLane), s.underDue
	return nil
}

// overtaken reads what the host has missed: the bucket holds a state that is ahead of it. A host
// that has something to append is refused and learns of it that way; one that has not would try
// to save for ever, and hold the lane position back. What is saved by others need not be saved
// again.
func (h *host) overtaken(stored uint64) error {
	c := h.core
	if !c.Settled() || h.p.draining() {
		return nil
	}
	was := c.owned()
	for more := true; more; {
		entries, err := h.p.bus.ReadLog(h.p.ctx, h.key, c.Replica().Seq, readPage)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if err := c.Integrate(entries...); err != nil {
			return err
		}
		more = len(entries) == readPage
	}
	if was && !c.owned() {
		h.lost, h.away = h.lost+1, time.Now()
	}
	if c.Replica().Seq >= stored {
		h.saver.seq = max(h.saver.seq, stored)
	}
	return nil
}

// saveNow is the last act of a host that gives its key up.
func (h *host) saveNow() error {
	if !h.core.owned() || !h.checkpoint() {
		return nil
	}
	err := h.p.save(h.key, h.saver.under)
	if over := h.saved(err); over != nil {
		return over
	}
	if err != nil && !errors.Is(err, model.ErrOutdated) {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// save writes a checkpoint. An item of which the bucket has the same state or a newer one is as
// good as saved: an earlier owner, with the same log, was late. So is a mark of the same sequence.
func (p *partition) save(key string, c *replica.Checkpoint) error {
	err := p.bus.SaveState(p.ctx, key, c.Docs, &c.Mark)
	if err != nil && onlyOutdated(err) {
		err = model.MarkSaved(p.bus.SaveState(p.ctx, key, nil, &c.Mark), &c.Mark)
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
