package lanes

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/model"
)

// DefaultHeld is the number of events that arrived before their predecessor and that a lane keeps in memory.
// For further ones it keeps only the sequence; they are read from the stream again at their turn.
const DefaultHeld = 4096

// turn is the position of an event among those of its origin.
type turn struct {
	origin string
	pos    uint64
}

// early is an event that waits for its predecessor. ev is nil if it is not kept in memory.
type early struct {
	turn
	term, prevTerm uint64

	lane uint64
	ev   *model.Event
	gone bool // see held.order
}

func entryOf(ev *model.Event) early {
	return early{turn: turn{ev.Origin(), ev.Position}, term: ev.Term, prevTerm: ev.PrevTerm, lane: ev.Lane, ev: ev}
}

// verdict classifies the event, given the last position taken from its origin.
func (e *early) verdict(r *model.Received) model.Verdict { return r.Judge(e.pos, e.term, e.prevTerm) }

// held are the events that arrived before their predecessor. Adding and removing one costs the same
// regardless of their number.
type held struct {
	limit int // number of events kept in memory
	// at usually has one event for each turn, and several of different terms where an origin has assigned a
	// position again.
	at map[turn][]*early
	n  int
	// of counts the events by origin.
	of map[string]int
	// order has the events in lane order, including some that were removed.
	order []*early
	kept  int // in memory
	// steps counts examined entries, for the tests.
	steps int
}

func (h *held) len() int { return h.n }

// add holds an event. If its place is taken, it is a duplicate and is dropped.
func (h *held) add(e early) {
	h.steps++
	if slices.ContainsFunc(h.at[e.turn], func(o *early) bool { return o.term == e.term }) {
		return
	}
	if e.ev != nil && h.kept >= h.limit {
		e.ev = nil
	}
	if e.ev != nil {
		h.kept++
	}
	if h.at == nil {
		h.at, h.of = map[turn][]*early{}, map[string]int{}
	}
	h.at[e.turn] = append(h.at[e.turn], &e)
	h.n++
	h.of[e.origin]++
	h.insert(&e)
}

// insert keeps the order. Later events usually have higher lane sequences.
func (h *held) insert(e *early) {
	h.tidy()
	i, _ := slices.BinarySearchFunc(h.order, e.lane, func(o *early, lane uint64) int {
		h.steps++
		return cmp.Compare(o.lane, lane)
	})
	h.order = slices.Insert(h.order, i, e)
}

// tidy drops removed entries when they are in the majority.
func (h *held) tidy() {
	if len(h.order) < 2*h.n+64 {
		return
	}
	h.steps += len(h.order)
	h.order = slices.DeleteFunc(h.order, func(e *early) bool { return e.gone })
}

// take removes and returns the first wanted event with a turn.
func (h *held) take(t turn, wanted func(e *early) bool) (e early, ok bool) {
	h.steps++
	for _, there := range h.at[t] {
		if wanted(there) {
			return h.remove(there), true
		}
	}
	return early{}, false
}

// has reports whether there is a wanted event with a turn.
func (h *held) has(t turn, wanted func(e *early) bool) bool {
	h.steps++
	return slices.ContainsFunc(h.at[t], wanted)
}

// takeAll removes and returns the events of an origin, in lane order.
func (h *held) takeAll(origin string) (list []early) {
	if h.of[origin] == 0 {
		return nil
	}
	h.steps += len(h.order)
	for _, e := range slices.Clone(h.order) {
		if !e.gone && e.origin == origin {
			list = append(list, h.remove(e))
		}
	}
	return list
}

func (h *held) remove(there *early) early {
	e := *there
	if others := slices.DeleteFunc(h.at[e.turn], func(o *early) bool { return o == there }); len(others) > 0 {
		h.at[e.turn] = others
	} else {
		delete(h.at, e.turn)
	}
	h.n--
	if h.of[e.origin]--; h.of[e.origin] == 0 {
		delete(h.of, e.origin)
	}
	if e.ev != nil {
		h.kept--
	}
	there.ev, there.gone = nil, true
	h.tidy()
	return e
}

// collect adds the contents of a held event that was read again, if there is room.
func (h *held) collect(ev *model.Event) {
	if h.kept == h.n || h.kept >= h.limit {
		return
	}
	e := entryOf(ev)
	for _, there := range h.at[e.turn] {
		if there.ev == nil && there.lane == e.lane {
			there.ev = ev
			h.kept++
		}
	}
}

// below returns the lane sequences of the held events up to seq.
func (h *held) below(seq uint64) (list []uint64) {
	for _, e := range h.order {
		if !e.gone && e.lane <= seq {
			list = append(list, e.lane)
		}
	}
	return list
}

// all returns the held events, in lane order.
func (h *held) all() []early {
	list := make([]early, 0, h.n)
	for _, e := range h.order {
		if !e.gone {
			list = append(list, *e)
		}
	}
	return list
}

func byLane(a, b early) int { return cmp.Compare(a.lane, b.lane) }
