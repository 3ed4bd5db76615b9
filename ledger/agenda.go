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

// Events may wait for a time (docs/adr/0018): they were sent with one, or are timers. An
// event of the lane that comes early is taken out of it by a transaction of its own, and is part of the
// state of the space from then on; what a handler sends to its own space for later begins to wait with
// the handler's transaction. When the time has come, the event is queued behind what is in the lane. It
// waits until a receipt, or its cancellation, is in the log.

// agenda is what waits, as the undecided transactions leave it: an overlay over replica.Later.
type agenda struct {
	cfg       *Config
	clock     *clock
	confirmed *replica.Replica
	lane      *lanes.Lane

	bySlot map[uint64]*waiting // nil while nothing waits
	// timers are the slots of those that have a name.
	timers map[string]uint64
	// queue orders those that are not in the lane.
	queue replica.Queue
	// free are slots in which nothing waits any more; the last one is used next. When free is empty, the next one is
	// the first from low on that is not in bySlot. Such slots are not listed: an event may wait in any slot.
	free []uint64
	low  uint64
	// queued counts those that are in the lane.
	queued int
	nth    int
	// made is set once the agenda follows from the confirmed state, stale while it has to be made anew, and isNew
	// after that until the next pass. unsure is set while a transaction may be undone that has changed any of this.
	made, unsure, stale, isNew bool
}

// waiting is an event that waits.
type waiting struct {
	*model.Waiting
	queued bool // its time has come, and it is in the lane
}

// maxQueued bounds the events that are in the lane because their time has come. They would fill it when
// an owner comes back after a week.
const maxQueued = 1024

// renewed is the agenda, made anew if the confirmed state has moved on without it.
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

// slot is the i-th of those where the next events can wait. It is taken by add.
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

// passTaken moves low behind slots that are taken.
func (a *agenda) passTaken() {
	a.low = max(a.low, 1)
	for a.bySlot[a.low] != nil {
		a.low++
	}
}

// add takes in an event that begins to wait with a transaction that is undecided. Such ones come behind
// those that are in the log already.
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

// remove takes in that an event waits no more. It reports whether it is in the lane.
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

// next is the first event whose time has not come, or for which there was no room in the lane, nil if
// there is none.
func (a *agenda) next() *model.Waiting {
	return a.queue.First(func(w *model.Waiting) bool {
		at := a.bySlot[w.Slot]
		return at != nil && at.Waiting == w && !at.queued
	})
}

// due puts the events into the lane whose time has come, in order, as many as there is room for.
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

// queueUp puts an event that waits into the lane.
func (a *agenda) queueUp(w *waiting) {
	w.queued = true
	a.queued++
	a.lane.Follow(w.Event(a.confirmed.Space))
}

// endCancelled puts cancelled events that wait for their time into the lane, where they end.
func (a *agenda) endCancelled(marks model.Value) {
	for _, mark := range marks.All() { // any order: sorted keys
		slot, _ := mark.Get("slot").AsInt()
		w := a.bySlot[uint64(slot)]
		if slot <= 0 || w == nil || w.queued || marks.Get(CancelKey(w.Stream, w.ID)).IsAbsent() {
			continue
		}
		a.unsure = true // as the mark may be
		a.queueUp(w)
	}
}

// takeBackEarly takes events out of the lane whose time is to come: the clock was set back, or they had been
// cancelled by a transaction that is undone. It reports whether there was any.
func (a *agenda) takeBackEarly() (taken bool) {
	return a.takeBack(func(w *waiting) bool {
		early := w.NotBefore > a.clock.wall
		if early {
			a.queue.Add(w.Waiting)
		}
		return early
	})
}

// takeBackOvertaking takes events out of the lane that came due while an event did not wait that comes before
// them: an undone transaction had cancelled it, or put it off. They are queued again behind it. It
// reports whether it has looked for any.
func (a *agenda) takeBackOvertaking() bool {
	first := a.next()
	if first == nil || a.queued == 0 {
		return false
	}
	a.takeBack(func(w *waiting) bool { return first.Before(w.Waiting) })
	return true
}

// takeBack takes those events out of the lane that wait and for which gone returns true. It reports whether
// there was any.
func (a *agenda) takeBack(gone func(w *waiting) bool) (taken bool) {
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

// change takes in what a transaction has changed that has joined the suffix. What it has cancelled
// leaves the lane too.
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

// changes reports whether a transaction changes what waits.
func changes(tx model.Tx) bool {
	return tx.Later != nil || len(tx.Cancels) > 0 || tx.Receipt != nil && tx.Receipt.Slot > 0 ||
		slices.ContainsFunc(tx.Sends, func(m model.Send) bool { return m.Slot > 0 })
}

// place gives the sends of a transaction that wait their slots, and lists what it cancels. A timer that
// is set again keeps its slot.
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

// cancel has a transaction cancel what waits in a slot, unless that is what it handles.
func (a *agenda) cancel(d *Draft, tx *model.Tx, slot uint64) {
	w := a.bySlot[slot]
	c := model.Cancel{ID: w.ID, Slot: slot}
	if d.Event != nil && d.Event.Slot == slot || slices.Contains(tx.Cancels, c) {
		return
	}
	tx.Cancels = append(tx.Cancels, c)
}

// leaves is how many of the events that wait do so no more when a transaction commits, one that it is
// about to send included. A timer that is set again takes the place of the one before, and what is
// handled, or cancelled, leaves one, but if the event is to have a successor in its place.
func (a *agenda) leaves(d *Draft, sent *model.Send, succeeded bool) (n int) {
	gone := map[uint64]bool{0: true} // slots that are counted; 0 is none
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

// Timer returns what waits under the name of a timer, nil for nothing.
func (a *agenda) Timer(name string) *model.Waiting {
	slot, set := a.renewed().timers[name]
	if !set {
		return nil
	}
	return a.bySlot[slot].Waiting
}

// Timers returns the names of the timers that are set, sorted.
func (a *agenda) Timers() []string { return slices.Sorted(maps.Keys(a.renewed().timers)) }

// Later returns the events that wait for their time, timers and those in the lane because it has come included, in no
// order. They must not be modified. It changes nothing: an agenda that is out of date is read from the confirmed state.
func (a *agenda) Later() (list []*model.Waiting) {
	if !a.made || a.stale {
		list = make([]*model.Waiting, 0, a.confirmed.Later.Len())
		a.confirmed.Later.Each(func(w *model.Waiting) { list = append(list, w) })
		return list
	}
	list = make([]*model.Waiting, 0, len(a.bySlot))
	for _, w := range a.bySlot { // any order: Later promises none
		list = append(list, w.Waiting)
	}
	return list
}

// mayWait returns why one more event cannot wait until a time, nil if it can. n counts those that are about to,
// that one included, less those that will not wait any more.
func (a *agenda) mayWait(at int64, n int) error {
	if most := a.cfg.MaxLater; n > 0 && len(a.renewed().bySlot)+n > most {
		return fmt.Errorf("%d events wait for their time in space %s, which is as many as may (MaxLater); send it later, or use fewer spaces' worth of events", most, a.confirmed.Space)
	}
	return model.CheckNotBefore(time.UnixMilli(at), time.UnixMilli(a.clock.wall))
}

// CheckWait returns why an event cannot wait here that a transaction is about to send to its own space for a
// time, nil if it can. succeeded is set if the event that is being handled leaves its place to another.
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

// integrated takes in a commit of another runtime.
func (a *agenda) integrated(c *model.Commit) {
	if slices.ContainsFunc(c.Txs, changes) {
		a.stale = true
	}
}

// refused takes in that the undecided transactions are undone.
func (a *agenda) refused() { a.stale = a.stale || a.unsure }

// nextDue returns when the next event that waits is to be put into the lane, 0 if there is none.
func (a *agenda) nextDue() int64 {
	if w := a.renewed().next(); w != nil {
		return w.NotBefore
	}
	return 0
}

// hasRoom reports whether the lane has room for an event whose time has come.
func (a *agenda) hasRoom() bool { return a.queued < maxQueued }

// stillWaits reports whether an event that is in the lane because its time had come waits, as far as
// that is in the log.
func (a *agenda) stillWaits(ev *model.Event) bool {
	w := a.confirmed.Later.At(ev.Slot)
	return w != nil && w.ID == ev.ID
}
