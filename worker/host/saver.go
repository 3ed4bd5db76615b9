package host

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// saver writes a space's checkpoints, one at a time. Its fields belong to the
// host's loop, except asked, clean and stored.
type saver struct {
	space  string
	bus    stateStore
	report func(what string, err error)
	// overtaken is called in the loop when the bucket has a state that the host does not know.
	overtaken func()

	asked  atomic.Bool // a checkpoint was requested
	clean  atomic.Bool // there was nothing to save after the last pass
	stored storedSpace

	revs   map[string]uint64 // bucket revision per document
	mark   uint64            // bucket revision of the mark
	saved  uint64            // log sequence that the saved mark reflects
	lane   uint64            // lane sequence up to which that state was done
	taken  uint64            // the lane sequence of the checkpoint in flight
	saving bool
	// none reports that the space has no log, so that there is nothing to save.
	none bool
	// failure is why the last checkpoint could not be saved, "" if it was saved.
	failure string
	// observed provides the observations of the space's nodes, nil without a graph; noted are those that must
	// still be saved.
	observed observedCore
	noted    noted
	// dueAt is the saved wake-up time of the space, unknownDue if the next
	// checkpoint must save it in any case (see takeDue).
	dueAt int64
	// floor raises the floor of what is stored.
	floor raising
}

// stateStore is the bucket of the states of spaces.
type stateStore interface {
	LoadItem(ctx context.Context, space, key string) (model.StateDoc, error)
	SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error
}

// savedCore is the state of a space as its core has it.
type savedCore interface {
	Seq() uint64
	Owned() bool
	Deposed() bool
	LaneDone() uint64
	FollowsUp() bool
	MarkersPurged(behind []model.MarkPosition)
	floorCore
	MarkStored(model.MarkPosition)
	Checkpoint() (replica.Checkpoint, error)
	CheckpointFailed(replica.Checkpoint)
}

func (s *saver) init(space string, bus stateStore, report func(what string, err error), overtaken, missed func()) {
	s.space, s.bus, s.report, s.overtaken = space, bus, report, overtaken
	s.stored.space, s.stored.missed = space, missed
	s.revs = map[string]uint64{}
}

// unsavedState is what one save writes: the changed documents, if any, and
// the observations of nodes.
type unsavedState struct {
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
	s.floor.to = 0 // what the log has after the mark may have been stored before
	s.stored.durable.Store(s.saved)
	s.stored.markers.stored(model.MarkPosition{Rev: s.mark, Seq: s.saved})
}

// note records revisions.
func (s *saver) note(items []model.StateDoc) {
	for i := range items {
		s.revs[items[i].Doc] = items[i].Rev
	}
	s.stored.markers.note(items)
}

// recall fills in the known revisions of items.
func (s *saver) recall(items []model.StateDoc) {
	for i := range items {
		items[i].Rev = s.revs[items[i].Doc]
	}
}

// due returns a checkpoint of unsaved changes. A runtime that has not taken the space over saves none:
// another runtime may own it, and have purged the markers of documents that it has deleted since. A document
// that a former owner restores is older than the epoch of the present one, and is recognized by that
// (replica.Load); this does not hold for a runtime that has only read the log.
//
// nextDue returns when the space must be woken.
func (s *saver) due(core savedCore, nextDue func() int64) (c unsavedState, ok bool) {
	if s.none || s.saving || !core.Owned() && !core.Deposed() {
		return c, false
	}
	if err := s.take(core, nextDue, &c); err != nil {
		s.report("checkpoint", err)
		return c, false
	}
	return c, c.moved || len(c.observed) > 0
}

func (s *saver) take(core savedCore, nextDue func() int64, c *unsavedState) (err error) {
	if err := s.observe(false); err != nil {
		return err
	}
	if core.Seq() > s.saved {
		core.MarkersPurged(s.stored.markers.begin())
		again := s.floor.again(core, &s.stored.markers, s.revs)
		if c.Checkpoint, err = core.Checkpoint(); err != nil {
			return err
		}
		c.Docs = append(c.Docs, again...)
		c.moved, s.taken = true, core.LaneDone()
		s.takeDue(core, nextDue(), c)
		s.recall(c.Docs)
		c.Mark.Rev = s.mark
	}
	c.observed = s.noted.drain()
	s.recall(c.observed)
	return nil
}

// observe records the nodes' observations since the last call; if all is not set, only if the core has
// something to save.
func (s *saver) observe(all bool) error {
	if s.observed == nil || !all && !s.observed.Unsaved() {
		return nil
	}
	items, err := s.observed.Observed()
	if err != nil {
		return err
	}
	for i := range items {
		if s.noted == nil {
			s.noted = noted{}
		}
		s.noted[items[i].Doc] = items[i]
	}
	return nil
}

// unobserved reports whether there are observations to save.
func (s *saver) unobserved() bool {
	return !s.none && (len(s.noted) > 0 || s.observed != nil && s.observed.Unsaved())
}

// isClean reports whether there is nothing to save. For a node that is not up to date, no observation
// can be saved, whatever it has read before.
func (s *saver) isClean(core savedCore) bool {
	if s.none {
		return true
	}
	if s.saving || core.Seq() > s.saved {
		return false
	}
	if err := s.observe(true); err != nil {
		s.report("checkpoint", err)
	}
	return len(s.noted) == 0
}

// settle processes the result of a save.
func (s *saver) settle(core savedCore, c unsavedState, err error) {
	s.saving = false
	s.settleObserved(&c, err)
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
		core.CheckpointFailed(c.Checkpoint)
		if allAre(err, model.ErrOutdated) {
			s.overtaken()
		} else {
			s.report("save checkpoint", err)
		}
		return
	}
	at := model.MarkPosition{Rev: c.Mark.Rev, Seq: c.Mark.Seq}
	core.MarkStored(at)
	s.stored.markers.stored(at)
	s.stored.markers.raised(core.Floor(), c.Mark.Seq)
	s.floor.stored(core, s.revs)
	s.saved, s.lane, s.dueAt = max(s.saved, c.Mark.Seq), max(s.lane, s.taken), c.dueAt
	s.stored.durable.Store(s.saved)
}

// noteFailure records why a checkpoint could not be saved, for status reports.
func (s *saver) noteFailure(err error) {
	if s.failure = ""; err != nil {
		s.failure = display.FirstLine(err.Error())
	}
}

// settleObserved processes the results for the observations. One that is outdated, or too
// large, is not retried: at worst its node runs once more after a restart.
func (s *saver) settleObserved(c *unsavedState, err error) {
	s.note(c.observed)
	if c.missed != nil && !allAre(c.missed, model.ErrOutdated, model.ErrTooLarge) {
		s.report("save observations", c.missed)
		err = c.missed
	}
	if err != nil {
		if s.noted == nil {
			s.noted = noted{}
		}
		s.noted.keep(c.observed)
	}
}

// save writes a checkpoint, the observations last, since they only save work.
func (s *saver) save(ctx context.Context, c *unsavedState) (err error) {
	if c.moved {
		err = s.saveDocs(ctx, &c.Checkpoint)
	}
	if err == nil && len(c.observed) > 0 {
		c.missed = s.bus.SaveState(ctx, s.space, c.observed, nil)
	}
	return err
}

// saveDocs writes documents and mark. A document of which the bucket has the same or
// a newer state counts as saved: an earlier owner, with the same log, was late. So does a mark
// of the same sequence; a newer one means that other runtimes have committed.
func (s *saver) saveDocs(ctx context.Context, c *replica.Checkpoint) error {
	err := s.bus.SaveState(ctx, s.space, c.Docs, &c.Mark)
	if err != nil && allAre(err, model.ErrOutdated) {
		if err = s.keepDue(ctx, c.Docs); err == nil {
			err = model.MarkSaved(s.bus.SaveState(ctx, s.space, nil, &c.Mark), &c.Mark)
		}
	}
	return err
}

// takeDue adds the space's wake-up time to a checkpoint, unless the time is never and known
// to be saved. An unchanged time is saved again: another runtime, which was about to take
// the space over or is attached to it, may have saved another time, from an older state.
// A follow-up of a waiting event is not covered by the lane: the lane position may have passed
// its place long ago.
func (s *saver) takeDue(core savedCore, nextDue int64, c *unsavedState) {
	c.dueAt = nextDue
	if core.FollowsUp() && s.dueAt != 0 {
		c.dueAt = atOnce
	}
	if c.dueAt != s.dueAt || c.dueAt != 0 {
		c.Docs = append(c.Docs, dueItem(c.dueAt, core.Seq()))
	}
}

func dueItem(at int64, seq uint64) model.StateDoc {
	d := model.StateDoc{Doc: model.DueKey, Seq: seq}
	if at != 0 {
		d.Data = strconv.AppendInt(nil, at, 10)
	}
	return d
}

// readDue is the inverse of dueItem; it returns 0 if there is no item.
func readDue(items []model.StateDoc) int64 {
	if len(items) == 0 {
		return 0
	}
	at, err := strconv.ParseInt(string(items[0].Data), 10, 64)
	if err != nil {
		return 0
	}
	return at
}

// saveEarlier saves a time at or before which the space is woken, for a log sequence of at least seq. An
// earlier saved time stays. It returns the revision of the item, and model.ErrOutdated if another runtime has
// saved the item in between.
//
// The item may have been saved for a later commit, by a runtime that did not know the waiting events: a
// sequence does not decide which of two times is valid, so the earlier one counts. A space that is woken
// without need corrects it.
func (s *saver) saveEarlier(ctx context.Context, at int64, seq uint64) (rev uint64, err error) {
	there, err := s.bus.LoadItem(ctx, s.space, model.DueKey)
	if err != nil {
		return 0, err
	}
	if known := readDue([]model.StateDoc{there}); known != 0 && known <= at {
		if there.Seq >= seq {
			return there.Rev, nil
		}
		at = known // saved again, so that no earlier state replaces it
	}
	d := []model.StateDoc{dueItem(at, max(seq, there.Seq+1))}
	d[0].Rev = there.Rev
	err = s.bus.SaveState(ctx, s.space, d, nil)
	return d[0].Rev, err
}

// keepDue makes sure that the space is woken in time even if its item was
// saved for a later state than the checkpoint's.
func (s *saver) keepDue(ctx context.Context, docs []model.StateDoc) error {
	i := slices.IndexFunc(docs, func(d model.StateDoc) bool { return d.Doc == model.DueKey })
	if i < 0 || docs[i].Data == nil {
		return nil
	}
	rev, err := s.saveEarlier(ctx, readDue(docs[i:i+1]), docs[i].Seq)
	if err == nil {
		docs[i].Rev = rev
	}
	return err
}
