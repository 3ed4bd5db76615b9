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
// waits until a receipt, or its being cancelled, is in the log.
//
// The ledger knows the time as the host has set it with Clock, and asks to be called again at Due.

// agenda is what waits, as the undecided transactions leave it: an overlay over replica.Later.
type agenda struct {
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
	// made is set once the agenda follows from the confirmed state, stale while it has to be made anew, and renewed
	// until BeginPass has seen that it was. undecided is set while a transaction may be undone that has changed any of this.
	made, undecided, stale, renewed bool
}

// waiting is an event that waits.
type waiting struct {
	*model.Waiting
	queued bool // its time has come, and it is in the lane
}

// maxQueued bounds the events that are in the lane because their time has come. They would fill it when
// an owner comes back after a week.
const maxQueued = 1024

// renew makes the agenda anew: the confirmed state has moved on without it.
func (a *agenda) renew(confirmed *replica.Later, lane *lanes.Lane) *agenda {
	*a = agenda{made: true, renewed: true}
	confirmed.Each(a.enter)
	a.passTaken()
	lane.Withdraw(func(ev *model.Event) bool {
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
	for a.low = max(a.low, 1); a.bySlot[a.low] != nil; a.low++ {
	}
}

// add takes in an event that begins to wait with a transaction that is undecided. Such ones come behind
// those that are in the log already.
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
	a.enter(&w)
	a.passTaken()
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

// next is the first event whose time has not come, or for which there was no room in the lane, nil if
// there is none.
func (a *agenda) next() *model.Waiting {
	return a.queue.First(func(w *model.Waiting) bool {
		at := a.bySlot[w.Slot]
		return at != nil && at.Waiting == w && !at.queued
	})
}

// due puts the events into the lane whose time has come, in order, as many as there is room for.
func (a *agenda) due(wall int64, space string, lane *lanes.Lane) {
	for a.queued < maxQueued {
		w := a.next()
		if w == nil || w.NotBefore > wall {
			return
		}
		a.queue.Take()
		a.bySlot[w.Slot].queued = true
		a.queued++
		lane.Follow(w.Event(space))
	}
}

// cancelled puts cancelled events that wait for their time into the lane, where they end.
func (a *agenda) cancelled(marks model.Value, space string, lane *lanes.Lane) {
	for _, mark := range marks.All() { // any order: sorted keys
		slot, _ := mark.Get("slot").AsInt()
		w := a.bySlot[uint64(slot)]
		if slot <= 0 || w == nil || w.queued || marks.Get(CancelKey(w.Stream, w.ID)).IsAbsent() {
			continue
		}
		w.queued = true
		a.queued++
		a.undecided = true // as the mark may be
		lane.Follow(w.Event(space))
	}
}

// takeBackEarly takes events out of the lane whose time is to come: the clock was set back, or they had been
// cancelled by a transaction that is undone. It reports whether there was any.
func (a *agenda) takeBackEarly(wall int64, lane *lanes.Lane) (taken bool) {
	lane.Withdraw(func(ev *model.Event) bool {
		w := a.bySlot[ev.Slot]
		if w == nil || w.NotBefore <= wall {
			return false
		}
		w.queued = false
		a.queued--
		a.queue.Add(w.Waiting)
		taken = true
		return true
	})
	return taken
}

// takeBackOvertaking takes events out of the lane that came due while one did not wait that comes before
// them: an undone transaction had cancelled it, or put it off. They are queued again behind it. It
// reports whether it has looked for any.
func (a *agenda) takeBackOvertaking(lane *lanes.Lane) bool {
	first := a.next()
	if first == nil || a.queued == 0 {
		return false
	}
	lane.Withdraw(func(ev *model.Event) bool {
		w := a.bySlot[ev.Slot]
		if w == nil || !first.Before(w.Waiting) {
			return false
		}
		w.queued = false
		a.queued--
		return true
	})
	return true
}

// change takes in what a transaction has changed that has joined the suffix. What it has cancelled
// leaves the lane too.
func (a *agenda) change(tx *model.Tx, lane *lanes.Lane) {
	if rc := tx.Receipt; rc != nil && rc.Slot > 0 {
		a.remove(rc.Slot, rc.Event)
	}
	for _, c := range tx.Cancels {
		if a.remove(c.Slot, c.ID) {
			lane.Withdraw(func(ev *model.Event) bool { return ev.ID == c.ID && ev.Slot == c.Slot })
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
func changes(tx *model.Tx) bool {
	return tx.Later != nil || len(tx.Cancels) > 0 || tx.Receipt != nil && tx.Receipt.Slot > 0 ||
		slices.ContainsFunc(tx.Sends, func(m model.Send) bool { return m.Slot > 0 })
}

// place gives the sends of a transaction that wait their slots, and lists what it cancels. A timer that
// is set again keeps its slot.
func (a *agenda) place(d *Draft, space string, tx *model.Tx) {
	for _, name := range d.Cancels {
		if slot, set := a.timers[name]; set {
			a.cancel(d, tx, slot)
		}
	}
	n := 0
	for i := range d.Sends {
		m := &d.Sends[i]
		if !waitsIn(space, m) {
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

// waitsIn reports whether a send is to wait in the space that sends it.
func waitsIn(space string, s *model.Send) bool { return s.To == space && s.NotBefore != 0 }

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

// renewedAgenda is the agenda, made anew if it is out of date.
func (l *Ledger) renewedAgenda() *agenda {
	if l.agenda.made && !l.agenda.stale {
		return &l.agenda
	}
	return l.agenda.renew(&l.replica.Later, l.lane)
}

// Timer is what waits under the name of a timer, nil for nothing.
func (l *Ledger) Timer(name string) *model.Waiting {
	a := l.renewedAgenda()
	slot, set := a.timers[name]
	if !set {
		return nil
	}
	return a.bySlot[slot].Waiting
}

// Timers are the names of the timers that are set, sorted.
func (l *Ledger) Timers() []string {
	return slices.Sorted(maps.Keys(l.renewedAgenda().timers))
}

// mayWait is why one more event cannot wait until a time. n counts those that are about to, that one
// included, less those that will not wait any more.
func (l *Ledger) mayWait(at int64, n int) error {
	if most := l.cfg.MaxLater; n > 0 && len(l.renewedAgenda().bySlot)+n > most {
		return fmt.Errorf("%d events wait for their time in space %s, which is as many as may (MaxLater); send it later, or use fewer spaces' worth of events", most, l.replica.Space)
	}
	return model.CheckNotBefore(time.UnixMilli(at), time.UnixMilli(l.wall))
}

// CheckWait is why an event cannot wait here that a transaction is about to send to its own space for a
// time, nil if it can. succeeded says that the event that is being handled leaves its place to another.
func (l *Ledger) CheckWait(d *Draft, s *model.Send, succeeded bool) error {
	n := 1
	for i := range d.Sends {
		if waitsIn(l.replica.Space, &d.Sends[i]) {
			n++
		}
	}
	if l.mayWait(s.NotBefore, n) == nil {
		return nil
	}
	return l.mayWait(s.NotBefore, n-l.renewedAgenda().leaves(d, s, succeeded))
}

// BeginPass takes in the time: an event that conflicts have undone may have to wait, and those whose time has
// come go into the lane, as many as there is room for. It reports whether the clock was set back since it was
// called last.
func (l *Ledger) BeginPass() (setBack bool) {
	if l.conflicts != nil && l.conflicts.pending {
		l.pauseAfterConflict()
	}
	if l.cfg.WithoutEvents {
		return false
	}
	a := l.renewedAgenda()
	if setBack = l.wallBack; setBack || a.renewed {
		l.wallBack = false
		if a.takeBackEarly(l.wall, l.lane) || setBack {
			l.recheckHead()
		}
	}
	if l.mayBeMarked {
		a.cancelled(l.marks(), l.replica.Space, l.lane)
	}
	if a.renewed {
		a.renewed = false
		if a.takeBackOvertaking(l.lane) {
			l.recheckHead()
		}
	}
	a.due(l.wall, l.replica.Space, l.lane)
	return setBack
}

// Due is the wall time, in milliseconds since 1970, at which there is something to do again for an event
// that waits for its time, or the event at the head of the lane expires; 0 for never. It is never one that
// has passed. What keeps an event out of the lane that is due already is that this is full, or that a
// commit is: it comes in when an event is handled or the commit answered.
func (l *Ledger) Due() int64 {
	due := l.nextDue()
	if due <= l.wall {
		due = 0
	}
	if ev := l.Head(); ev != nil && ev.Expires > 0 {
		if at := ev.Expires + 1; at > l.wall && (due == 0 || at < due) {
			due = at
		}
	}
	return due
}

// HasDue reports whether there is room in the lane for an event whose time has come.
func (l *Ledger) HasDue() bool {
	due := l.nextDue()
	return due != 0 && due <= l.wall && l.agenda.queued < maxQueued
}

// nextDue is when the next event that waits is to be put into the lane, 0 if there is none.
func (l *Ledger) nextDue() int64 {
	if l.cfg.WithoutEvents || !l.at.begins() {
		return 0
	}
	if w := l.renewedAgenda().next(); w != nil {
		return w.NotBefore
	}
	return 0
}

// stillWaits reports whether an event that is in the lane because its time had come waits, as far as
// that is in the log.
func (l *Ledger) stillWaits(ev *model.Event) bool {
	w := l.replica.Later.At(ev.Slot)
	return w != nil && w.ID == ev.ID
}
