package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// saver writes a space's checkpoints, one at a time. Its fields belong to the
// host's loop.
type saver struct {
	revs   map[string]uint64 // bucket revision per document
	mark   uint64            // bucket revision of the mark
	saved  uint64            // log sequence that the saved mark reflects
	lane   uint64            // lane sequence up to which that state was done
	taken  uint64            // the lane sequence of the checkpoint in flight
	saving bool
	// failure is why the last checkpoint could not be saved, "" if it was saved.
	failure string
	noted   noted
	// dueAt is the saved wake-up time of the space, unknownDue if the next
	// checkpoint must save it in any case (see takeDue).
	dueAt int64
	// durable is the saved sequence, and markers the deleted items, for retention.
	durable atomic.Uint64
	markers markers
}

// checkpoint is one save: the changed documents, if any, and
// the observations of nodes.
type checkpoint struct {
	replica.Checkpoint
	moved    bool // there are documents or a mark to save
	dueAt    int64
	observed []model.StateDoc
	// missed is why not all observations were saved.
	missed error
}

// remember records the loaded state: its revisions, and its position.
func (s *saver) remember(st model.SpaceState, lane uint64) {
	s.note(st.Docs)
	s.note(st.Observations)
	s.note(st.Pieces)
	s.note(st.Later)
	s.note(st.Due)
	if s.dueAt = readDue(st.Due); s.dueAt != 0 {
		s.dueAt = unknownDue // a newer item may be saved than was read
	}
	s.mark, s.saved, s.lane = st.Mark.Rev, st.Mark.Seq, lane
	s.durable.Store(s.saved)
	s.markers.stands(model.Standing{Rev: s.mark, Seq: s.saved})
}

// note records revisions.
func (s *saver) note(items []model.StateDoc) {
	for i := range items {
		s.revs[items[i].Doc] = items[i].Rev
	}
	s.markers.note(items)
}

// recall fills in the known revisions of items.
func (s *saver) recall(items []model.StateDoc) {
	for i := range items {
		items[i].Rev = s.revs[items[i].Doc]
	}
}

// due returns a checkpoint of unsaved changes. A runtime that has not taken the space over saves
// none: another runtime may own it, and have purged the markers of documents that it has deleted since.
// A document that a former owner restores is older than the epoch of the present one, and is recognised by that
// (replica.Load); this does not hold for a runtime that has only read the log.
func (s *saver) due(h *host) (c checkpoint, ok bool) {
	if s.saving || h.core == nil || !h.core.Owned() && !h.core.Deposed() {
		return c, false
	}
	if err := s.take(h, &c); err != nil {
		h.report("checkpoint", err)
		return c, false
	}
	return c, c.moved || len(c.observed) > 0
}

func (s *saver) take(h *host, c *checkpoint) (err error) {
	if h.core.Unsaved() {
		if err := s.noted.take(h.core, h.build()); err != nil {
			return err
		}
	}
	if h.core.Seq() > s.saved {
		h.core.MarkersGo(s.markers.begin())
		if c.Checkpoint, err = h.core.Checkpoint(); err != nil {
			return err
		}
		c.moved, s.taken = true, h.core.LaneDone()
		s.takeDue(h, c)
		s.recall(c.Docs)
		c.Mark.Rev = s.mark
	}
	c.observed = s.noted.drain()
	s.recall(c.observed)
	return nil
}

// settle processes the result of a save.
func (s *saver) settle(h *host, c checkpoint, err error) {
	s.saving = false
	s.settleObserved(h, &c, err)
	if !c.moved {
		return
	}
	s.noteFailure(err)
	s.note(c.Docs)
	s.mark = c.Mark.Rev
	if err != nil {
		if c.dueAt != s.dueAt {
			s.dueAt = unknownDue // the outcome is unknown
		}
		h.core.SpoilCheckpoint(c.Checkpoint)
		if allAre(err, model.ErrOutdated) {
			h.overtaken()
		} else {
			h.report("save checkpoint", err)
		}
		return
	}
	at := model.Standing{Rev: c.Mark.Rev, Seq: c.Mark.Seq}
	h.core.MarkStands(at)
	s.markers.stands(at)
	s.saved, s.lane, s.dueAt = max(s.saved, c.Mark.Seq), max(s.lane, s.taken), c.dueAt
	s.durable.Store(s.saved)
}

// noteFailure records why a checkpoint could not be saved, for status reports.
func (s *saver) noteFailure(err error) {
	if s.failure = ""; err != nil {
		s.failure = firstLine(err.Error())
	}
}

// settleObserved processes the results for the observations. One that is outdated, or too
// large, is not retried: at worst its node runs once more after a restart.
func (s *saver) settleObserved(h *host, c *checkpoint, err error) {
	s.note(c.observed)
	if c.missed != nil && !allAre(c.missed, model.ErrOutdated, model.ErrTooLarge) {
		h.report("save observations", c.missed)
		err = c.missed
	}
	if err != nil {
		s.noted.keep(c.observed)
	}
}

// checkpoint saves the space if it has changed. It does not block the loop.
func (h *host) checkpoint() {
	if h.asked.Swap(true) {
		return // the loop has not processed the last request yet
	}
	h.call(func() {
		h.asked.Store(false)
		c, ok := h.saver.due(h)
		if !ok {
			return
		}
		h.saver.saving = true
		h.env.tasks.Go(func() { // ends with the save
			err := h.save(h.ctx, &c)
			h.call(func() { h.saver.settle(h, c, err) })
		})
	})
}

// save writes a checkpoint, the observations last, since they only save work.
func (h *host) save(ctx context.Context, c *checkpoint) (err error) {
	if c.moved {
		err = h.saveDocs(ctx, &c.Checkpoint)
	}
	if err == nil && len(c.observed) > 0 {
		c.missed = h.env.bus.SaveState(ctx, h.space, c.observed, nil)
	}
	return err
}

// saveDocs writes documents and mark. A document of which the bucket has the same or
// a newer state counts as saved: an earlier owner, with the same log, was late. So does a mark
// of the same sequence; a newer one means that other runtimes have committed.
func (h *host) saveDocs(ctx context.Context, c *replica.Checkpoint) error {
	err := h.env.bus.SaveState(ctx, h.space, c.Docs, &c.Mark)
	if err != nil && allAre(err, model.ErrOutdated) {
		if err = h.keepDue(ctx, c.Docs); err == nil {
			err = model.MarkSaved(h.env.bus.SaveState(ctx, h.space, nil, &c.Mark), &c.Mark)
		}
	}
	return err
}

// allAre reports whether each of the errors joined in err is one of targets.
func allAre(err error, targets ...error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !allAre(e, targets...) })
}

// finish saves the remaining changes, as the last act of a draining host.
func (s *saver) finish(h *host) {
	c, ok := s.due(h)
	if !ok {
		return
	}
	err := h.save(h.ctx, &c)
	s.settle(h, c, err)
	if err != nil && !errors.Is(err, model.ErrOutdated) {
		h.noteUnsaved(fmt.Errorf("save space %s: %w", h.space, err))
	}
}
