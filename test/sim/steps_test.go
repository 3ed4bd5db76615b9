package sim

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// arrived checks the effect of a request that has just arrived at the server.
func (w *world) arrived(p *process, s membus.Step) {
	switch {
	case s.Append != nil:
		w.appended(p, s)
	case s.Event != nil:
		w.stored(p, s)
	case s.Doc != nil:
		w.saved(p, s)
	case s.Label == "purge-log":
		w.purged(s.Space)
	case s.Label == "save-position":
		w.positioned(s)
	case s.Trip.Behind > 0:
		w.count("stale answers")
	case s.Label == "load":
		w.loaded(s.Space)
	}
}

func (w *world) appended(p *process, s membus.Step) {
	f := w.folds[s.Append.Space]
	c, err := model.DecodeCommit(s.Append.Data)
	if err != nil {
		w.violate("chain", "%v", err)
		return
	}
	w.appends++
	if s.Try > 1 {
		w.count("appends sent again")
	}
	switch {
	case s.Err == nil:
		if p.died > 0 {
			w.count("appends that landed after their owner's death")
		}
		if c.Takeover {
			w.count("takeovers")
			if p.who[0] == 'h' {
				w.count("takeovers by a stale owner")
			}
			for q := range w.flights[f.space] { // any order: whether there is one
				if q != p {
					w.count("takeovers with a commit in flight")
				}
			}
		}
		f.take(s.Append, c, s.Seq)
	case errors.Is(s.Err, model.ErrRefused):
		f.refusals++
		w.count("refused appends")
		next := w.server.History(f.space)
		i := slices.IndexFunc(next, func(e model.LogEntry) bool { return e.Seq > s.Append.Expect })
		switch {
		case i >= 0 && next[i].ID == s.Append.ID:
			w.count("commits in doubt that were in the log")
		case !c.Takeover && !c.Join && c.Epoch < f.epoch:
			w.count("zombies refused")
			if p.died > 0 {
				w.count("appends refused after their owner's death")
			}
		}
	}
}

// purged checks a purge of a log: checkpoints cover the purged commits, and coordinators have processed
// them.
func (w *world) purged(space string) {
	left := w.server.ReadLog(space, 0, 1)
	if len(left) == 0 || left[0].Prev == 0 {
		return
	}
	w.count("purged logs")
	mark, _ := w.server.Saved(space, "")
	released := w.server.LoadPosition(w.plan.partitionOf(space), coordinator.Position)
	if gone := left[0].Prev; gone > mark.Seq || gone > released {
		w.violate("purge", "the log of %s is gone up to %d; its checkpoint reaches %d, and %d is released", space, gone, mark.Seq, released)
	}
}

// flying tracks the appends in flight.
func (w *world) flying(p *process, s membus.Step) {
	if s.Label != "append" {
		return
	}
	if w.flights[s.Space] == nil {
		w.flights[s.Space] = map[*process]bool{}
	}
	switch s.Moment {
	case membus.Leaves:
		w.flights[s.Space][p] = true
	case membus.Answered:
		delete(w.flights[s.Space], p)
	}
}

func (w *world) stored(p *process, s membus.Step) {
	m := *s.Event
	switch {
	case errors.Is(s.Err, model.ErrLaneFull):
		w.count("events refused by a full lane")
		return
	case s.Err != nil:
		return
	case s.Seq == 0:
		w.count("duplicates of events suppressed")
		if m.Position > 0 {
			w.count("releases repeated")
		}
		return
	}
	m.Seq = s.Seq
	if s.Label == "send-astray" && s.Key != strconv.Itoa(w.plan.partitionOf(m.Space)) {
		w.count("events that went astray")
		n, _ := strconv.Atoi(s.Key)
		w.astray[n] = append(w.astray[n], m)
		return
	}
	f := w.folds[m.Space]
	f.lane = append(f.lane, &m)
	f.noteEarly(&m)
	if p.died > 0 {
		w.count("events that landed after their sender's death")
	}
	if tx, minted := model.OriginOf(m.ID); minted {
		// The origin has committed before anything is released.
		from := w.folds[tx.Space]
		if from == nil || from.sends[m.ID] == nil {
			w.violate("lineage", "%s/%s is in the lane of %s, and no commit of its origin has it", m.Stream, m.ID, m.Space)
		} else if s := &from.sends[m.ID].send; s.NotBefore != m.NotBefore {
			w.violate("lineage", "%s is in the lane of %s not before %d, and was sent not before %d", m.ID, m.Space, m.NotBefore, s.NotBefore)
		} else if s.Depth != m.Depth {
			w.violate("lineage", "%s is in the lane of %s with depth %d, and left with %d", m.ID, m.Space, m.Depth, s.Depth)
		} else if s.Position != m.Position {
			w.violate("lineage", "%s is in the lane of %s with position %d, and left with %d", m.ID, m.Space, m.Position, s.Position)
		}
	}
}

// saved: the STATE bucket agrees with the log as of the sequence that it names, and a mark covers only
// saved documents.
func (w *world) saved(p *process, s membus.Step) {
	if errors.Is(s.Err, model.ErrOutdated) {
		w.count("saves of outdated state refused")
	}
	if s.Err != nil {
		return
	}
	if p.died > 0 {
		w.count("saves that landed after their owner's death")
	}
	w.noteDue(p, s)
	f, d := w.folds[s.Space], s.Doc
	if d.Doc == "" {
		w.checkMark(f, d)
		return
	}
	if _, node := model.NodeOfStateKey(d.Doc); node || d.Doc == model.DueKey {
		return // they affect only the amount of work
	}
	if slot, ok := model.SlotOfStateKey(d.Doc); ok {
		f.savedSlot(slot, d)
		return
	}
	want, at := f.valueAt(d.Doc, d.Seq), f.changedAt(d.Doc, d.Seq)
	again := w.plan.history > 0 && d.Data == nil && want.IsAbsent() && at > 0 && at < d.Seq // after its marker was purged, see worker/markers.go
	if kept := d.Kept.Rev > 0 && at == d.Kept.Seq; kept {
		w.count("documents that were stored again without a change")
	} else if at != d.Seq && !again {
		w.violate("saved", "space %s: %s is saved as of %d, but was changed at %d", s.Space, d.Doc, d.Seq, at)
	}
	if got := parse(d.Data); !model.Equal(got, want) {
		w.violate("saved", "space %s: %s is saved as %s at %d, but was %s", s.Space, d.Doc, got, d.Seq, want)
	}
}

func parse(data []byte) model.Value {
	if len(data) == 0 {
		return model.Value{}
	}
	v, err := model.ParseValue(data)
	if err != nil {
		return model.String("not JSON: " + err.Error())
	}
	return v
}

func (w *world) checkMark(f *fold, mark *model.StateDoc) {
	if mark.Seq > f.seq {
		w.violate("saved", "space %s: the mark stands at %d, the log ends at %d", f.space, mark.Seq, f.seq)
	}
	f.markedSlots(mark.Seq)
	f.markedTasks(mark.Seq)
	for doc := range f.history { // any order: each on its own
		at := f.changedAt(doc, mark.Seq)
		stored, there := w.server.Saved(f.space, doc)
		if model.IsTaskDoc(doc) && (!there || stored.Data == nil) && f.valueAt(doc, mark.Seq).IsAbsent() {
			w.count("tasks that have ended before they were saved")
			continue
		}
		if gone := f.valueAt(doc, mark.Seq).IsAbsent(); gone && at > 0 && w.plan.history > 0 && (!there || stored.Seq < at) {
			if w.count("purged markers"); there { // a deposed owner has restored it, which no process accepts
				w.count("deleted documents that came back")
			}
			continue
		}
		if at > 0 && stored.Seq < at {
			w.violate("saved", "space %s: the mark stands at %d, but %s is saved as of %d, and was changed at %d", f.space, mark.Seq, doc, stored.Seq, at)
		}
	}
}

// positioned: everything in the lane up to the saved position is handled in the saved state, so a new
// owner may begin to read there; everything in the log up to the released position is in its lane.
func (w *world) positioned(s membus.Step) {
	for part := range w.plan.partitions {
		w.checkAstray(part, w.server.LoadPosition(part, "lane"))
		lane, released := w.server.LoadPosition(part, "lane"), w.server.LoadPosition(part, "released")
		for i := range w.plan.spaces {
			f := w.folds[spaceName(i)]
			if w.plan.partitionOf(f.space) != part {
				continue
			}
			switch s.Key[:1] {
			case "l":
				w.checkLanePosition(f, lane)
			case "a":
				w.checkAhead(f, w.server.LoadAhead(part))
			default:
				w.checkReleased(f, released)
			}
		}
	}
}

// checkAstray: no position is saved beyond a misrouted event that has not been forwarded.
func (w *world) checkAstray(partition int, position uint64) {
	for _, m := range w.astray[partition] {
		if _, there := w.server.FindEvent(m.Space, m.Stream, m.ID); !there && m.Seq <= position {
			w.violate("position", "the position of lane %d is %d, but %s/%s/%s, which stands there at %d, is not in its own", partition, position, m.Space, m.Stream, m.ID, m.Seq)
		}
	}
}

// checkAhead: a position that excludes spaces that are set aside is correct for all other spaces, and
// for the excluded ones except for the events that it lists.
func (w *world) checkAhead(f *fold, a model.Ahead) {
	aside := model.Aside{}
	for _, s := range a.Aside {
		if s.Space == f.space {
			w.count("spaces set aside")
			aside = s
		}
	}
	w.checkAstray(w.plan.partitionOf(f.space), a.UpTo)
	w.checkDone(f, a.UpTo, aside)
}

func (w *world) checkLanePosition(f *fold, position uint64) { w.checkDone(f, position, model.Aside{}) }

// checkDone: the events of a space up to a position are handled and saved, except for those that are set
// aside.
func (w *world) checkDone(f *fold, position uint64, aside model.Aside) {
	r, err := replica.Load(f.space, w.server.LoadState(f.space))
	if err != nil {
		w.violate("saved", "%v", err)
		return
	}
	done := r.LaneDone()
	due, _ := w.server.Saved(f.space, model.DueKey)
	at := f.savedDue()
	if overdue := at > 0 && at <= w.wall(); len(f.apps) > 0 || overdue || due.Seq > r.Seq {
		// A send of an application, or of an event that has waited, to its own space is queued behind
		// events that are already handled. It must wake the space, unless it was handled by the sequence
		// for which the wake-up time was saved, which happens before the mark is saved. A wake-up time
		// in the past wakes the space as well, even if a former owner has saved it.
		r.Own = nil
		done = r.LaneDone()
	}
	for _, m := range f.lane {
		if m.Seq <= position && m.Seq > done && (m.Seq <= aside.Done || m.Seq > aside.Last) {
			w.violate("position", "the lane position is %d, but of space %s only the events up to %d are done and saved, set aside: %+v", position, f.space, done, aside)
			return
		}
	}
}

func (w *world) checkReleased(f *fold, position uint64) {
	for id, s := range f.sends { // any order: each on its own
		if s.send.To == f.space || s.seq > position {
			continue
		}
		if _, there := w.server.FindEvent(s.send.To, s.send.Stream, id); !there {
			w.violate("position", "the released position is %d, but %s, sent at %d, is not in the lane of %s", position, id, s.seq, s.send.To)
			return
		}
	}
}

// restBound returns how long a healed deployment may take to come to rest. The longest intended wait is that of
// a caller with an outdated answer of a deposed leader: half a minute; or, where versions derive different
// values, that of an idle owner before it checks for another runtime's values: two minutes
// (worker/missed_commits.go). A client that waits for a tree looks again after half a minute to a minute.
func (p *plan) restBound() time.Duration {
	if p.derives() && p.has("hermit") {
		return 3*time.Minute + p.hangBound()
	}
	if p.has("trees") {
		return 2*port.StaleLeader + 20*time.Second + p.hangBound()
	}
	return 50*time.Second + p.hangBound()
}
