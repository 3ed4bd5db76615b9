package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// saver writes a space's checkpoints, one at a time. Its fields belong to the
// host's loop.
type saver struct {
	revs   map[string]uint64 // bucket revision per document
	mark   uint64            // and of the mark
	saved  uint64            // log sequence that the saved mark reflects
	lane   uint64            // lane sequence up to which that was done with
	taken  uint64            // the same of the checkpoint under way
	saving bool
}

// remember takes in what was loaded: its revisions, and how far it reaches.
func (s *saver) remember(st model.SpaceState, lane uint64) {
	for i := range st.Docs {
		s.revs[st.Docs[i].Doc] = st.Docs[i].Rev
	}
	s.mark, s.saved, s.lane = st.Mark.Rev, st.Mark.Seq, lane
}

// due takes a checkpoint of what is not saved yet.
func (s *saver) due(h *host) (replica.Checkpoint, bool) {
	if s.saving || h.core == nil || h.core.Seq() <= s.saved {
		return replica.Checkpoint{}, false
	}
	c, err := h.core.Checkpoint()
	if err != nil {
		h.report("checkpoint", err)
		return c, false
	}
	for i := range c.Docs {
		c.Docs[i].Rev = s.revs[c.Docs[i].Doc]
	}
	c.Mark.Rev = s.mark
	s.taken = h.core.LaneDone()
	return c, true
}

// settle takes in the answer to a save.
func (s *saver) settle(h *host, c replica.Checkpoint, err error) {
	s.saving = false
	for i := range c.Docs {
		s.revs[c.Docs[i].Doc] = c.Docs[i].Rev
	}
	s.mark = c.Mark.Rev
	if err != nil {
		h.core.SpoilCheckpoint(c)
		if !errors.Is(err, model.ErrOutdated) {
			h.report("save checkpoint", err)
		}
		return // outdated: another owner is ahead of us, the log will tell
	}
	s.saved, s.lane = max(s.saved, c.Mark.Seq), max(s.lane, s.taken)
}

// checkpoint saves the space if it has changed. It does not hold the loop up.
func (h *host) checkpoint() {
	if h.asked.Swap(true) {
		return // the loop has not come to it since the last time
	}
	h.call(func() {
		h.asked.Store(false)
		c, ok := h.saver.due(h)
		if !ok {
			return
		}
		h.saver.saving = true
		h.env.tasks.Go(func() { // ends when the save is answered
			err := h.save(h.ctx, &c)
			h.call(func() { h.saver.settle(h, c, err) })
		})
	})
}

// save writes a checkpoint. A document of which the bucket has the same state or a
// newer one is as good as saved: an earlier owner, with the same log, was late.
func (h *host) save(ctx context.Context, c *replica.Checkpoint) error {
	err := h.env.bus.SaveState(ctx, h.space, c.Docs, &c.Mark)
	if err != nil && allAre(err, model.ErrOutdated) {
		err = h.env.bus.SaveState(ctx, h.space, nil, &c.Mark)
	}
	return err
}

// allAre reports whether each of the errors that are joined in err is target.
func allAre(err, target error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return errors.Is(err, target)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !allAre(e, target) })
}

// finish saves what is left, as the last act of a draining host.
func (s *saver) finish(h *host) {
	c, ok := s.due(h)
	if !ok {
		return
	}
	err := h.save(h.ctx, &c)
	s.settle(h, c, err)
	if err != nil && !errors.Is(err, model.ErrOutdated) {
		h.mu.Lock()
		h.unsaved = fmt.Errorf("save space %s: %w", h.space, err)
		h.mu.Unlock()
	}
}
