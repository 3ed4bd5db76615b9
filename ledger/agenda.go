package ledger

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Events may wait for a time (docs/adr/0018): they were sent with one, or are timers. A transaction of its
// own takes an event that arrives early out of the lane, and makes it part of the state of the space; a
// delayed send of a handler to its own space begins to wait with the handler's transaction. When the time has
// come, the event is queued behind those in the lane. It waits until its receipt, or its cancellation, is in
// the log.

// agenda has the waiting events as the undecided transactions leave them: an overlay over replica.Later.
type agenda struct {
	cfg       *Config
	clock     *clock
	confirmed *replica.Replica
	lane      *lanes.Lane

	bySlot map[uint64]*waiting // nil while nothing waits
	// timers are the slots of named events.
	timers map[string]uint64
	// queue orders the events that are not in the lane.
	queue replica.Queue
	// free are slots that have become vacant; the last one is used next. If free is empty, the next slot is
	// the first from low on that is not in bySlot. Such slots are not listed, because an event may wait in
	// any slot.
	free []uint64
	low  uint64
	// queued counts the waiting events that are in the lane.
	queued int
	nth    int
	// made is set once the agenda has been built from the confirmed state, stale while it must be rebuilt,
	// and isNew from then until the next pass. unsure is set while a transaction that changed the agenda may
	// still be undone.
	made, unsure, stale, isNew bool
}

// waiting is an event that waits.
type waiting struct {
	*model.Waiting
	queued bool // its time has come, and it is in the lane
}

// maxQueued bounds the events that are in the lane because their time has come. After a week without an owner
// they would otherwise fill it.
const maxQueued = 1024

// renewed returns the agenda, rebuilt if the confirmed state has changed independently of it.
func (a *agenda) renewed() *agenda {
	if a.made && !a.stale {
		return a
	}
	*a = agenda{cfg: a.cfg, clock: a.clock, confirmed: a.confirmed, lane: a.lane, made: true, isNew: true}
	a.confirmed.Later.Each(a.enter)
	a.passTaken()
	a.lane.Withdraw(func(ev *model.Event) bool {
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
	if a.bySlot == nil {
		a.bySlot, a.timers = map[uint64]*waiting{}, map[string]uint64{}
	}
	a.bySlot[w.Slot] = &waiting{Waiting: w}
	if w.Timer != "" {
		a.timers[w.Timer] = w.Slot
	}
	a.queue.Add(w)
}

// slot returns the i-th slot in which the next events can wait; add takes it.
func (a *agenda) slot(i int) uint64 {
	if n := len(a.free); i < n {
		return a.free[n-1-i]
	}
	i -= len(a.free)
	for slot := a.low; ; slot++ {
		if a.bySlot[slot] != nil || slices.Contains(a.free, slot) {
			continue
		}
		if i == 0 {
			return slot
		}
		i--
	}
}

// passTaken advances low past slots that are taken.
func (a *agenda) passTaken() {
	a.low = max(a.low, 1)
	for a.bySlot[a.low] != nil {
		a.low++
	}
}

// add adds an event that begins to wait with an undecided transaction. Such events come after those in the
// log.
func (a *agenda) add(w model.Waiting) {
	a.unsure = true
	a.nth++
	w.Seq, w.Nth = math.MaxUint64, a.nth
	i := len(a.free) - 1
	for i >= 0 && a.free[i] != w.Slot {
		i--
	}
	if i >= 0 {
		a.free = slices.Delete(a.free, i, i+1)
	}
	a.enter(&w)
	a.passTaken()
}

// remove removes an event that no longer waits. It reports whether the event is in the lane.
func (a *agenda) remove(slot uint64, id string) (queued bool) {
	w := a.bySlot[slot]
	if w == nil || w.ID != id {
		return false
	}
	a.unsure = true
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

// next returns the first event whose time has not come, or for which the lane had no room, nil if there is
// none.
func (a *agenda) next() *model.Waiting {
	return a.queue.First(func(w *model.Waiting) bool {
		at := a.bySlot[w.Slot]
		return at != nil && at.Waiting == w && !at.queued
	})
}

// due moves events whose time has come into the lane, in order, as far as there is room.
func (a *agenda) due() {
	for a.queued < maxQueued {
		w := a.next()
		if w == nil || w.NotBefore > a.clock.wall {
			return
		}
		a.queue.Take()
		a.queueUp(a.bySlot[w.Slot])
	}
}

// queueUp puts a waiting event into the lane.
func (a *agenda) queueUp(w *waiting) {
	w.queued = true
	a.queued++
	a.lane.Follow(w.Event(a.confirmed.Space))
}

// endCancelled moves cancelled events into the lane, where they end.
func (a *agenda) endCancelled(marks model.Value) {
	for _, mark := range marks.All() { // any order: sorted keys
		slot, _ := mark.Get("slot").AsInt()
		w := a.bySlot[uint64(slot)]
		if slot <= 0 || w == nil || w.queued || marks.Get(CancelKey(w.Stream, w.ID)).IsAbsent() {
			continue
		}
		a.unsure = true // the mark may be undone
		a.queueUp(w)
	}
}

// withdrawEarly removes events from the lane whose time lies ahead again: the clock was set back, or a
// transaction that cancelled them was undone. It reports whether there were any.
func (a *agenda) withdrawEarly() (taken bool) {
	return a.withdraw(func(w *waiting) bool {
		early := w.NotBefore > a.clock.wall
		if early {
			a.queue.Add(w.Waiting)
		}
		return early
	})
}

// withdrawOvertaking removes events from the lane that came due while an event before them did not wait,
// because a transaction that is now undone had cancelled or postponed it. They are queued again behind that
// event. It reports whether it has looked for any.
func (a *agenda) withdrawOvertaking() bool {
	first := a.next()
	if first == nil || a.queued == 0 {
		return false
	}
	a.withdraw(func(w *waiting) bool { return first.Before(w.Waiting) })
	return true
}

// withdraw removes the waiting events from the lane for which gone returns true. It reports whether there
// were any.
func (a *agenda) withdraw(gone func(w *waiting) bool) (taken bool) {
	a.lane.Withdraw(func(ev *model.Event) bool {
		w := a.bySlot[ev.Slot]
		if w == nil || !gone(w) {
			return false
		}
		w.queued = false
		a.queued--
		taken = true
		return true
	})
	return taken
}

// change applies the changes by a transaction that has joined the suffix. Events that it cancels also leave
// the lane.
func (a *agenda) change(tx *model.Tx) {
	if rc := tx.Receipt; rc != nil && rc.Slot > 0 {
		a.remove(rc.Slot, rc.Event)
	}
	for _, c := range tx.Cancels {
		if a.remove(c.Slot, c.ID) {
			a.lane.Withdraw(func(ev *model.Event) bool { return ev.ID == c.ID && ev.Slot == c.Slot })
		}
	}
	if tx.Later != nil {
		a.add(*tx.Later)
	}
	for i := range tx.Sends {
		if m := &tx.Sends[i]; m.Slot > 0 {
			a.add(m.Waits())
		}
	}
}

// changes reports whether a transaction changes the waiting events.
func changes(tx model.Tx) bool {
	return tx.Later != nil || len(tx.Cancels) > 0 || tx.Receipt != nil && tx.Receipt.Slot > 0 ||
		slices.ContainsFunc(tx.Sends, func(m model.Send) bool { return m.Slot > 0 })
}

// place assigns slots to the delayed sends of a transaction, and lists what it cancels. A timer that is set
// again keeps its slot.
func (a *agenda) place(d *Draft, tx *model.Tx) {
	for _, name := range d.Cancels {
		if slot, set := a.timers[name]; set {
			a.cancel(d, tx, slot)
		}
	}
	n := 0
	for i := range d.Sends {
		m := &d.Sends[i]
		if !waitsIn(a.confirmed.Space, m) {
			continue
		}
		slot, set := a.timers[m.Timer]
		if set = set && m.Timer != ""; set {
			a.cancel(d, tx, slot)
		} else {
			slot = a.slot(n)
			n++
		}
		m.Slot = slot
	}
}

// cancel makes a transaction cancel the event in a slot, unless that is the event that it handles.
func (a *agenda) cancel(d *Draft, tx *model.Tx, slot uint64) {
	w := a.bySlot[slot]
	c := model.Cancel{ID: w.ID, Slot: slot}
	if d.Event != nil && d.Event.Slot == slot || slices.Contains(tx.Cancels, c) {
		return
	}
	tx.Cancels = append(tx.Cancels, c)
}

// leaves returns how many waiting events stop waiting when a transaction with one more send commits. A timer
// that is set again replaces the previous one. An event that is handled or cancelled counts, unless a
// successor takes its place.
func (a *agenda) leaves(d *Draft, sent *model.Send, succeeded bool) (n int) {
	gone := map[uint64]bool{0: true} // slots that are counted; 0 means none
	leave := func(slot uint64) {
		if !gone[slot] {
			gone[slot] = true
			n++
		}
	}
	if d.Event != nil && !succeeded {
		leave(d.Event.Slot)
	}
	leave(a.timers[sent.Timer])
	for i := range d.Sends {
		leave(a.timers[d.Sends[i].Timer])
	}
	for _, name := range d.Cancels {
		leave(a.timers[name])
	}
	return n
}

// Timer returns the event that waits under a timer's name, nil if there is none.
func (a *agenda) Timer(name string) *model.Waiting {
	slot, set := a.renewed().timers[name]
	if !set {
		return nil
	}
	return a.bySlot[slot].Waiting
}

// Timers returns the names of the timers that are set, sorted.
func (a *agenda) Timers() []string { return slices.Sorted(maps.Keys(a.renewed().timers)) }

// Later returns the events that wait for their time, in no order, including timers and events that are in the
// lane because it has come. They must not be modified. Later changes nothing: if the agenda is out of date,
// it reads the confirmed state.
func (a *agenda) Later() (list []*model.Waiting) {
	if !a.made || a.stale {
		list = make([]*model.Waiting, 0, a.confirmed.Later.Len())
		a.confirmed.Later.Each(func(w *model.Waiting) { list = append(list, w) })
		return list
	}
	list = make([]*model.Waiting, 0, len(a.bySlot))
	for _, w := range a.bySlot { // any order: the result has none
		list = append(list, w.Waiting)
	}
	return list
}

// mayWait returns why one more event cannot wait until a time, nil if it can. n is the number of events about
// to wait, including this one, minus those that are about to stop.
func (a *agenda) mayWait(at int64, n int) error {
	if most := a.cfg.MaxLater; n > 0 && len(a.renewed().bySlot)+n > most {
		return fmt.Errorf("%d events wait for their time in space %s, which is as many as may (MaxLater); send it later, or use fewer spaces' worth of events", most, a.confirmed.Space)
	}
	return model.CheckNotBefore(time.UnixMilli(at), time.UnixMilli(a.clock.wall))
}

// CheckWait returns why an event that a transaction is about to send to its own space with a delay cannot
// wait here, nil if it can. succeeded is set if the event that is being handled leaves its room to a
// successor.
func (a *agenda) CheckWait(d *Draft, s *model.Send, succeeded bool) error {
	n := 1
	for i := range d.Sends {
		if waitsIn(a.confirmed.Space, &d.Sends[i]) {
			n++
		}
	}
	if a.mayWait(s.NotBefore, n) == nil {
		return nil
	}
	return a.mayWait(s.NotBefore, n-a.renewed().leaves(d, s, succeeded))
}

// integrated processes a commit of another runtime.
func (a *agenda) integrated(c *model.Commit) {
	if slices.ContainsFunc(c.Txs, changes) {
		a.stale = true
	}
}

// refused records that the undecided transactions were undone.
func (a *agenda) refused() { a.stale = a.stale || a.unsure }

// nextDue returns the time of the next event that must enter the lane, 0 if there is none.
func (a *agenda) nextDue() int64 {
	if w := a.renewed().next(); w != nil {
		return w.NotBefore
	}
	return 0
}

// hasRoom reports whether the lane has room for an event whose time has come.
func (a *agenda) hasRoom() bool { return a.queued < maxQueued }

// stillWaits reports whether, according to the log, an event still waits that is in the lane because its time
// had come.
func (a *agenda) stillWaits(ev *model.Event) bool {
	w := a.confirmed.Later.At(ev.Slot)
	return w != nil && w.ID == ev.ID
}
