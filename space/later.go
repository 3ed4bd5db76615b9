package space

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/replica"
)

// Events may wait for a time (DESIGN 5.7, docs/adr/0018): they were sent with one, or are
// timers. An event of the lane that comes early is taken out of it by a transaction of its
// own, and is part of the state of the space from then on; what a handler sends to its own
// space for later begins to wait with the handler's transaction. When the time has come, the
// event is queued behind what is in the lane. It waits until a receipt, or its being
// cancelled, is in the log.
//
// The core knows the time as it was told with Clock, and asks to be called again at
// Ready.Due.

// agenda is what waits, as the undecided transactions leave it: an overlay over
// replica.Later like the current documents.
type agenda struct {
	bySlot map[uint64]*waiting
	// timers are the slots of those that have a name.
	timers map[string]uint64
	// queue orders those that are not in the lane.
	queue replica.Queue
	// free are the slots up to top where nothing waits.
	free []uint64
	top  uint64
	// queued counts those that are in the lane.
	queued int
	nth    int
	// undecided says that a transaction may be undone that has changed any of this, stale
	// that it is to be made anew from the confirmed state, and renewed that it was.
	undecided, stale, renewed bool
}

// waiting is an event that waits.
type waiting struct {
	*model.Waiting
	queued bool // its time has come, and it is in the lane
}

// maxQueued bounds the events that are in the lane because their time has come. They would
// fill it when an owner comes back after a week.
const maxQueued = 1024

// Clock tells the wall time. It is called before Settle, and whenever a transaction is to
// be made at a time. Time may go back: an event that is in the log as handled stays so, any
// other waits until its time comes again.
func (s *Space) Clock(wall time.Time) {
	ms := wall.UnixMilli()
	if ms < s.wall {
		s.wallBack = true
	}
	s.wall = ms
}

// NextDue is when the first of the events that wait wants to be handled, as far as that is
// in the log, in milliseconds since 1970; 0 if none waits.
func (s *Space) NextDue() int64 { return s.replica.Later.Next() }

// WaitForTime is how many events wait for a time, as far as that is in the log.
func (s *Space) WaitForTime() int { return s.replica.Later.Len() }

// FollowsUp reports whether an event is in the log that the space has sent to itself and not
// handled yet.
func (s *Space) FollowsUp() bool { return len(s.replica.Own) > 0 }

// refresh makes the agenda anew if the confirmed state has moved on without it.
func (s *Space) refresh() *agenda {
	a := &s.agenda
	if a.bySlot != nil && !a.stale {
		return a
	}
	*a = agenda{bySlot: map[uint64]*waiting{}, timers: map[string]uint64{}, renewed: true}
	s.replica.Later.Each(func(w *model.Waiting) {
		a.enter(w)
		a.top = max(a.top, w.Slot)
	})
	for slot := a.top; slot > 0; slot-- {
		if a.bySlot[slot] == nil {
			a.free = append(a.free, slot)
		}
	}
	s.lane.Withdraw(func(ev *model.Event) bool {
		w := a.bySlot[ev.Slot]
		if w == nil || w.ID != ev.ID {
			return true
		}
		w.queued = true
		a.queued++
		return false
	})
	return a
}

func (a *agenda) enter(w *model.Waiting) {
	a.bySlot[w.Slot] = &waiting{Waiting: w}
	if w.Timer != "" {
		a.timers[w.Timer] = w.Slot
	}
	a.queue.Add(w)
}

// slot is the i-th of those where the next events can wait. It is taken by add.
func (a *agenda) slot(i int) uint64 {
	if n := len(a.free); i < n {
		return a.free[n-1-i]
	}
	return a.top + 1 + uint64(i-len(a.free))
}

// add takes in an event that begins to wait with a transaction that is undecided. Such ones
// come behind those that are in the log already.
func (a *agenda) add(w model.Waiting) {
	a.undecided = true
	a.nth++
	w.Seq, w.Nth = math.MaxUint64, a.nth
	i := len(a.free) - 1
	for i >= 0 && a.free[i] != w.Slot {
		i--
	}
	if i >= 0 {
		a.free = slices.Delete(a.free, i, i+1)
	}
	a.top = max(a.top, w.Slot)
	a.enter(&w)
}

// remove takes in that an event waits no more. It reports whether it is in the lane.
func (a *agenda) remove(slot uint64, id string) (queued bool) {
	w := a.bySlot[slot]
	if w == nil || w.ID != id {
		return false
	}
	a.undecided = true
	delete(a.bySlot, slot)
	a.free = append(a.free, slot)
	if w.Timer != "" && a.timers[w.Timer] == slot {
		delete(a.timers, w.Timer)
	}
	if w.queued {
		a.queued--
	}
	return w.queued
}

// next is the first event whose time has not come, or for which there was no room in the
// lane, nil if there is none.
func (a *agenda) next() *model.Waiting {
	return a.queue.First(func(w *model.Waiting) bool {
		at := a.bySlot[w.Slot]
		return at != nil && at.Waiting == w && !at.queued
	})
}

// queueDue puts the events into the lane whose time has come, in order, as many as there is
// room for.
func (s *Space) queueDue() {
	if s.cfg.WithoutEvents {
		return
	}
	a := s.refresh()
	s.queueCancelled(a)
	if s.wallBack {
		s.wallBack, s.cronCheck = false, true
		s.takeBackEarly(a)
	}
	if a.renewed {
		a.renewed = false
		s.takeBackOvertaking(a)
	}
	for a.queued < maxQueued {
		w := a.next()
		if w == nil || w.NotBefore > s.wall {
			return
		}
		a.queue.Take()
		a.bySlot[w.Slot].queued = true
		a.queued++
		s.lane.Follow(w.Event(s.cfg.Space))
	}
}

// takeBackEarly takes events out of the lane whose time is to come again, now that the
// clock has been set back.
func (s *Space) takeBackEarly(a *agenda) {
	s.lane.Withdraw(func(ev *model.Event) bool {
		w := a.bySlot[ev.Slot]
		if w == nil || w.NotBefore <= s.wall {
			return false
		}
		w.queued = false
		a.queued--
		a.queue.Add(w.Waiting)
		return true
	})
	s.recheckHead()
}

// takeBackOvertaking takes events out of the lane that came due while one did not wait that comes
// before them: an undone transaction had cancelled it, or put it off. They are queued again behind it.
func (s *Space) takeBackOvertaking(a *agenda) {
	first := a.next()
	if first == nil || a.queued == 0 {
		return
	}
	s.lane.Withdraw(func(ev *model.Event) bool {
		w := a.bySlot[ev.Slot]
		if w == nil || !first.Before(w.Waiting) {
			return false
		}
		w.queued = false
		a.queued--
		return true
	})
	s.recheckHead()
}

// hasDue reports whether there is room in the lane for an event whose time has come.
func (s *Space) hasDue() bool {
	due := s.due()
	return due != 0 && due <= s.wall && s.agenda.queued < maxQueued
}

// dueLater is due unless that has passed. What keeps such an event out of the lane is that
// this is full, or that a commit is; every pass begins with filling the lane up, so it comes
// in when an event is handled or the commit answered. The event at the head may expire sooner.
func (s *Space) dueLater() int64 {
	due := s.due()
	if due <= s.wall {
		due = 0
	}
	if at := s.expiry(); at > s.wall && (due == 0 || at < due) {
		due = at
	}
	return due
}

// due is when the next event that waits is to be put into the lane, 0 if there is none.
func (s *Space) due() int64 {
	if s.cfg.WithoutEvents || !s.running() || s.holding || s.joins && s.epoch == 0 {
		return 0
	}
	if w := s.refresh().next(); w != nil {
		return w.NotBefore
	}
	return 0
}

// early reports whether an event is at the head of the lane before its time.
func (s *Space) early(ev *model.Event) bool {
	return ev.Slot == 0 && ev.Lane > 0 && ev.NotBefore > s.wall && ev.Invalid == ""
}

// mayWait reports why one more event cannot wait here until a time. n counts those that are
// about to, that one included, less those that will not wait any more.
func (s *Space) mayWait(at int64, n int) error {
	if most := s.cfg.MaxLater; n > 0 && len(s.refresh().bySlot)+n > most {
		return fmt.Errorf("%d events wait for their time in space %s, which is as many as may (MaxLater); send it later, or use fewer spaces' worth of events", most, s.cfg.Space)
	}
	return model.CheckNotBefore(time.UnixMilli(at), time.UnixMilli(s.wall))
}

// letWait has an event of the lane wait for its time.
func (s *Space) letWait(ev *model.Event, first bool) progress {
	err := s.mayWait(ev.NotBefore, 1)
	if err == nil {
		w := model.Waiting{
			ID: ev.ID, Stream: ev.Stream, Payload: ev.Payload, NotBefore: ev.NotBefore, Expires: ev.Expires,
			Slot: s.refresh().slot(0), Lane: ev.Lane, Position: ev.Position, Depth: ev.Depth, Trace: ev.Trace,
		}
		rec := model.Tx{N: s.nextTx(), By: receipts.LaterBy(ev.Stream), Later: &w}
		s.inv.records(&rec)
		switch err = s.suffix.add(&rec, s.cfg.MaxCommitBytes); {
		case err == nil:
			s.traceLater(&w, rec.N)
			s.endWait()
			s.lane.Take()
			s.changeAgenda(&rec)
			return handled
		case errors.Is(err, ErrNoRoom):
			return blocked
		}
	}
	tx := s.begin(nil)
	tx.event = ev
	return s.endEvent(tx, ev, receipts.Refused(ev, err.Error()), nil, first, ev.Trace)
}

func (s *Space) traceLater(w *model.Waiting, tx uint64) {
	if f := s.cfg.Trace.Later; f != nil {
		f(LaterInfo{Event: w.ID, Stream: w.Stream, NotBefore: w.NotBefore, Tx: tx})
	}
}

// placeLater gives the sends of a transaction that wait their slots, and lists what it
// cancels. A timer that is set again keeps its slot.
func (s *Space) placeLater(tx *Tx, rec *model.Tx) {
	if len(tx.cancels) == 0 && !slices.ContainsFunc(tx.sends, tx.waitsHere) {
		return
	}
	a := s.refresh()
	for _, name := range tx.cancels {
		if slot, set := a.timers[name]; set {
			s.cancelLater(tx, rec, slot)
		}
	}
	n := 0
	for i := range tx.sends {
		m := &tx.sends[i]
		if !tx.waitsHere(*m) {
			continue
		}
		slot, set := a.timers[m.Timer]
		if set = set && m.Timer != ""; set {
			s.cancelLater(tx, rec, slot)
		} else {
			slot = a.slot(n)
			n++
		}
		m.Slot = slot
	}
}

// cancelLater has a transaction cancel what waits in a slot, unless that is what it handles.
func (s *Space) cancelLater(tx *Tx, rec *model.Tx, slot uint64) {
	w := s.agenda.bySlot[slot]
	c := model.Cancel{ID: w.ID, Slot: slot}
	if tx.event != nil && tx.event.Slot == slot || slices.Contains(rec.Cancels, c) {
		return
	}
	rec.Cancels = append(rec.Cancels, c)
}

// waitsHere reports whether a send of the transaction is to wait in its own space.
func (t *Tx) waitsHere(s model.Send) bool { return s.To == t.space && s.NotBefore != 0 }

// changeAgenda takes in what a transaction has changed that has joined the suffix. What it
// has cancelled leaves the lane too.
func (s *Space) changeAgenda(rec *model.Tx) {
	a := &s.agenda
	if rc := rec.Receipt; rc != nil && rc.Slot > 0 {
		s.refresh().remove(rc.Slot, rc.Event)
	}
	for _, c := range rec.Cancels {
		if a.remove(c.Slot, c.ID) {
			s.lane.Withdraw(func(ev *model.Event) bool { return ev.ID == c.ID && ev.Slot == c.Slot })
		}
	}
	if rec.Later != nil {
		a.add(*rec.Later)
	}
	for i := range rec.Sends {
		if m := &rec.Sends[i]; m.Slot > 0 {
			a.add(m.Waits())
		}
	}
}

// confirmAgenda takes in that a commit is in the log.
func (s *Space) confirmAgenda() { s.agenda.undecided = s.agenda.undecided && s.suffix.undecided() }

// dropAgenda takes in that the undecided transactions are undone.
func (s *Space) dropAgenda() { s.agenda.stale = s.agenda.stale || s.agenda.undecided }

// integrateAgenda takes in a commit of another runtime.
func (s *Space) integrateAgenda(c *model.Commit) {
	for i := range c.Txs {
		tx := &c.Txs[i]
		if tx.Later != nil || len(tx.Cancels) > 0 || tx.Receipt != nil && tx.Receipt.Slot > 0 ||
			slices.ContainsFunc(tx.Sends, func(m model.Send) bool { return m.Slot > 0 }) {
			s.agenda.stale = true
		}
	}
}

// stillWaits reports whether an event that is in the lane because its time had come waits,
// as far as that is in the log.
func (s *Space) stillWaits(ev *model.Event) bool {
	w := s.replica.Later.At(ev.Slot)
	return w != nil && w.ID == ev.ID
}
