package lanes

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// DefaultLimit is the number of waiting events that a lane keeps in memory. At a few hundred bytes per event
// it is about a megabyte for a flooded space.
const DefaultLimit = 4096

// Lane is the lane of one space. The zero value is not usable; see New.
type Lane struct {
	limit int

	// entries is the queue in order; entries[:next] are undecided, the rest waits. They are pointers because
	// entries are moved far more often than events are read.
	entries []*model.Event
	next    int
	// jumbled is set if an event may be queued behind one with a higher lane sequence, or one that the cursor
	// has passed; it is cleared when the queue becomes empty.
	jumbled bool

	// floor is the confirmed cursor: every event up to it is done, except the held ones.
	floor uint64
	// seen is the highest lane sequence that was queued, held or dropped here.
	seen uint64
	// gap and refused are the lowest and the highest lane sequence that were offered and left in the stream.
	// The lane is behind while refused exceeds seen; nothing beyond gap is taken before the event at gap (0:
	// unknown).
	gap, refused uint64

	// reclaim are events that a commit set aside and that have yet to be read again. They precede all later
	// events of the stream.
	reclaim []uint64
	// held are events that arrived before their predecessor.
	held held
	// inbound is the last position taken per origin space.
	inbound map[string]model.Received
	// recalled has what Recall has received per origin space, asks what Reissued requests.
	recalled map[string]recalled
	asks     map[string]model.Reissued
	// own are follow-ups that wait for the event that they queue behind, in order.
	own []model.Event
}

// State is the part of the past that a lane needs: the confirmed state of its space, from the log and the
// checkpoint.
type State struct {
	Cursor model.Cursor
	// Inbound is the last position handled per origin space.
	Inbound map[string]model.Received
	// Own are the follow-ups that are committed but not handled, in order.
	Own []model.Event
	// Waits reports whether an event that was queued when its time had come still waits, see Lane.Integrate;
	// nil means that none does.
	Waits func(ev *model.Event) bool
}

// New returns a lane that continues from st. limit 0 means DefaultLimit.
func New(st State, limit int) *Lane {
	if limit == 0 {
		limit = DefaultLimit
	}
	return newLane(st, limit, DefaultHeld)
}

func newLane(st State, limit, holds int) *Lane {
	l := &Lane{
		limit:   limit,
		held:    held{limit: holds},
		floor:   st.Cursor.Floor,
		seen:    st.Cursor.Floor,
		reclaim: slices.Clone(st.Cursor.Held),
		inbound: make(map[string]model.Received, len(st.Inbound)),
		own:     slices.Clone(st.Own),
	}
	for origin, r := range st.Inbound { // any order: a copy
		l.inbound[origin] = r
	}
	slices.Sort(l.reclaim)
	l.releaseOwn(l.floor)
	return l
}

// ReadAfter returns the lane sequence after which the space's events must be read, so that the lane misses
// none that it needs.
func (l *Lane) ReadAfter() uint64 {
	if len(l.reclaim) > 0 && l.reclaim[0] <= l.seen {
		return l.reclaim[0] - 1
	}
	return l.seen
}

// Offer passes an event that was read from the stream to the lane. Events must be offered in lane order and
// without gaps, apart from duplicates due to reading again. Offer returns false if the event was left in the
// stream; a reader of past events must then stop, and Refill returns the sequence to read from again.
func (l *Lane) Offer(ev model.Event) bool {
	switch {
	case l.isReclaimed(ev.Lane):
		if l.Waiting() >= l.limit {
			return false
		}
		l.reclaimOne(entryOf(&ev))
	case ev.Lane <= l.seen:
		l.held.collect(&ev)
	case !l.accepts(ev.Lane):
		l.leave(ev.Lane)
		return false
	default:
		l.accept(entryOf(&ev))
	}
	return true
}

func (l *Lane) isReclaimed(seq uint64) bool {
	_, ok := slices.BinarySearch(l.reclaim, seq)
	return ok
}

// reclaimOne places a set-aside event that was read again.
func (l *Lane) reclaimOne(e early) {
	if i, _ := slices.BinarySearch(l.reclaim, e.lane); i == 0 {
		l.reclaim = l.reclaim[1:] // as always
	} else {
		l.reclaim = slices.Delete(l.reclaim, i, i+1)
	}
	l.place(e)
	l.releaseOwn(l.seen)
}

// accepts reports whether the event at seq, which is beyond seen, can be queued now: there is room, the
// set-aside events have been read, and no event that was left in the stream precedes it.
func (l *Lane) accepts(seq uint64) bool {
	switch {
	case len(l.reclaim) > 0 || l.Waiting() >= l.limit:
		return false
	case l.gap != 0 && seq > l.gap:
		return false
	}
	return l.refused <= l.seen || seq <= l.refused
}

func (l *Lane) leave(seq uint64) {
	l.refused = max(l.refused, seq)
	if l.gap == 0 || seq < l.gap {
		l.gap = seq
	}
}

func (l *Lane) accept(e early) {
	l.releaseOwn(e.lane - 1)
	l.seen = e.lane
	if l.seen >= l.gap {
		l.gap = 0
	}
	l.place(e)
	l.releaseOwn(e.lane)
}

// LeftInStream records that an event of the space, at lane sequence seq, was not offered because the caller
// had no room.
func (l *Lane) LeftInStream(seq uint64) {
	if seq > l.seen {
		l.refused = max(l.refused, seq)
	}
}

// place queues, holds or drops an event according to its position. A duplicate
// leaves no trace: the cursor passes events that are neither queued nor held.
func (l *Lane) place(e early) {
	if e.origin == "" {
		l.push(e.ev) // it has no position, or a meaningless one
		return
	}
	r := l.inbound[e.origin]
	switch v := e.verdict(&r); v {
	case model.Early:
		l.held.add(e)
	case model.InTurn, model.Reissue:
		switch {
		case l.unsure(&e, &r, v):
			l.held.add(e)
		case l.follow(e):
			l.releaseHeld(e.origin, r)
		}
	case model.Conflict:
		l.refuse(e)
	case model.Repetition:
	}
}

// follow queues the next event of an origin, and reports whether the event is in memory. If not, it is read
// again, before any later event.
func (l *Lane) follow(e early) bool {
	if e.ev == nil {
		l.readAgain(e)
		return false
	}
	r := l.inbound[e.origin]
	r.Take(e.pos, e.term)
	l.inbound[e.origin] = r
	l.push(l.withEarlier(e.ev))
	return true
}

func (l *Lane) readAgain(e early) {
	i, _ := slices.BinarySearch(l.reclaim, e.lane)
	l.reclaim = slices.Insert(l.reclaim, i, e.lane)
}

// push appends an event to the queue.
func (l *Lane) push(ev *model.Event) {
	l.jumbled = l.jumbled || ev.Lane != 0 && (ev.Lane < l.seen || ev.Lane <= l.floor)
	l.entries = append(l.entries, ev)
}

// releaseHeld queues the events that waited for the position that an origin has just reached. If that was not
// the next position of a term, or two events have the same turn, the held events of the origin are classified
// again.
func (l *Lane) releaseHeld(origin string, was model.Received) {
	for l.held.of[origin] > 0 {
		r := l.inbound[origin]
		decided := func(e *early) bool { return e.verdict(&r) != model.Early }
		if !r.Steps(&was) || l.held.has(turn{origin, r.Position}, decided) {
			l.judgeAgain(origin)
			return
		}
		e, ok := l.held.take(turn{origin, r.Position + 1}, decided)
		switch {
		case !ok:
			return
		case l.unsure(&e, &r, model.InTurn):
			l.held.add(e)
			return
		case !l.follow(e):
			return
		}
		was = r
	}
}

// releaseOwn queues the follow-ups whose place is at or before lane sequence reached. Events that were set
// aside come first: they were queued before any follow-up that is not handled yet, or they stay held.
func (l *Lane) releaseOwn(reached uint64) {
	if len(l.reclaim) > 0 {
		return
	}
	n := 0
	for n < len(l.own) && l.own[n].Behind <= reached {
		ev := l.own[n]
		l.push(&ev)
		n++
	}
	l.own = l.own[n:]
}

// Follow queues a follow-up that the space sent to itself, and returns it with Behind set. Follow-ups never
// overtake each other.
func (l *Lane) Follow(ev model.Event) model.Event {
	ev.Behind = l.Seen()
	if len(l.own) > 0 || len(l.reclaim) > 0 {
		l.own = append(l.own, ev)
	} else {
		l.push(&ev)
	}
	return ev
}

// Withdraw removes the events for which gone returns true among those that had waited for their time
// (Event.Slot), unless they are undecided.
func (l *Lane) Withdraw(gone func(ev *model.Event) bool) {
	due := func(ev *model.Event) bool { return ev.Slot > 0 && gone(ev) }
	kept := slices.DeleteFunc(slices.Clone(l.entries[l.next:]), due)
	l.entries = append(l.entries[:l.next:l.next], kept...)
	l.own = slices.DeleteFunc(l.own, func(ev model.Event) bool { return due(&ev) })
}

// Peek returns the event to handle next, or nil. The pointer is valid until
// the lane is changed.
func (l *Lane) Peek() *model.Event {
	if l.next == len(l.entries) {
		return nil
	}
	return l.entries[l.next]
}

// Take makes the event that Peek returned undecided.
func (l *Lane) Take() { l.next++ }

// Waiting returns the number of queued events that no handler has seen.
func (l *Lane) Waiting() int { return len(l.entries) - l.next }

// Room returns the number of further events that the lane accepts.
func (l *Lane) Room() int { return max(0, l.limit-l.Waiting()) }

// Undecided returns the number of events whose handling is not in the log yet.
func (l *Lane) Undecided() int { return l.next }

// Seen returns the lane sequence behind which a follow-up that is sent now will queue: the highest that was
// offered to the lane, or the place of a follow-up that is not queued yet.
func (l *Lane) Seen() uint64 {
	if n := len(l.own); n > 0 {
		return max(l.seen, l.own[n-1].Behind)
	}
	return l.seen
}

// Held returns the number of events that arrived before their predecessor.
func (l *Lane) Held() int { return l.held.len() }

// Quiet reports whether no event waits: none is queued and not taken, held, or still to be read from the
// stream. Some may be undecided.
func (l *Lane) Quiet() bool {
	return l.Waiting() == 0 && l.held.len() == 0 && len(l.own) == 0 &&
		len(l.reclaim) == 0 && l.refused <= l.seen
}

// Done reports whether no work is left: no event is queued, held, or still to be read from the stream.
func (l *Lane) Done() bool {
	return len(l.entries) == 0 && l.Quiet()
}

// Refill reports whether events must be read from the stream again, and the sequence after which. These are
// events that were left there for lack of room and, once there is room, those that an earlier owner had set
// aside or that are not kept in memory.
func (l *Lane) Refill() (after uint64, ok bool) {
	switch {
	case l.Waiting() > l.limit/2:
		return 0, false
	case len(l.reclaim) > 0:
		return l.reclaim[0] - 1, true
	}
	return l.seen, l.refused > l.seen
}

// Cursor returns the cursor for a commit that decides the first n undecided entries.
func (l *Lane) Cursor(n int) model.Cursor {
	c := model.Cursor{Floor: l.floorAfter(n)}
	for _, seq := range l.reclaim {
		if seq <= c.Floor {
			c.Held = append(c.Held, seq)
		}
	}
	c.Held = append(c.Held, l.openBelow(c.Floor, n)...)
	if !slices.IsSorted(c.Held) {
		slices.Sort(c.Held)
	}
	return c
}

// floorAfter returns everything seen if no lane event is left after the first n entries, and otherwise the
// sequence that those entries reach.
func (l *Lane) floorAfter(n int) uint64 {
	if !slices.ContainsFunc(l.entries[n:], func(ev *model.Event) bool { return ev.Lane != 0 }) {
		return l.seen
	}
	floor := l.floor
	for i := range l.entries[:n] {
		floor = max(floor, l.entries[i].Lane)
	}
	return floor
}

// openBelow returns the lane events at or below floor that the first n entries do not decide: held ones, and
// those that were queued behind the n entries, out of lane order.
func (l *Lane) openBelow(floor uint64, n int) []uint64 {
	open := l.held.below(floor)
	if !l.jumbled {
		return open
	}
	for i := range l.entries[n:] {
		if seq := l.entries[n+i].Lane; seq != 0 && seq <= floor {
			open = append(open, seq)
		}
	}
	return open
}

// Confirm makes the first n undecided entries done: the commit with cursor c is in the log.
func (l *Lane) Confirm(n int, c model.Cursor) {
	if n > l.next {
		panic(fmt.Sprintf("lanes: %d entries confirmed, %d were taken", n, l.next))
	}
	l.floor = c.Floor
	l.next -= n
	l.entries = slices.Delete(l.entries, 0, n)
	l.jumbled = l.jumbled && len(l.entries) > 0
}

// Rewind returns every undecided entry to the front of the queue: the commit with them was refused.
// Follow-ups for which dead returns true are removed, wherever they are, because the transactions that sent
// them were undone (I10).
func (l *Lane) Rewind(dead func(ev *model.Event) bool) {
	l.next = 0
	gone := func(ev *model.Event) bool { return ev.Lane == 0 && dead(ev) }
	l.entries = slices.DeleteFunc(l.entries, gone)
	l.own = slices.DeleteFunc(l.own, func(ev model.Event) bool { return gone(&ev) })
}
