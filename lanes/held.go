package lanes

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/model"
)

// DefaultHeld is how many of the events that came before their predecessor a lane keeps in
// memory. Of those beyond it only the place is kept; they are read from the stream again when
// their turn has come.
const DefaultHeld = 4096

// turn is the place of an event among those of its origin.
type turn struct {
	origin string
	pos    uint64
}

// early is an event on its way into the queue. ev is nil if it is not kept in memory.
type early struct {
	turn
	lane uint64
	ev   *model.Event
	gone bool // see held.order
}

func entryOf(ev *model.Event) early {
	return early{turn: turn{ev.Origin(), ev.Position}, lane: ev.Lane, ev: ev}
}

// held are events that came before their predecessor. To add one, and to take one out, costs
// the same however many there are.
type held struct {
	limit int // of those that are kept in memory
	at    map[turn]*early
	// order has them in lane order, and among them some that were taken out.
	order []*early
	kept  int // in memory
	// steps counts what was looked at, for the tests.
	steps int
}

func (h *held) len() int { return len(h.at) }

// add holds an event, unless another is in its place: it came twice.
func (h *held) add(e early) {
	h.steps++
	if h.at[e.turn] != nil {
		return
	}
	if e.ev != nil && h.kept >= h.limit {
		e.ev = nil
	}
	if e.ev != nil {
		h.kept++
	}
	if h.at == nil {
		h.at = map[turn]*early{}
	}
	h.at[e.turn] = &e
	h.insert(&e)
}

// insert keeps the order. What comes later stands further behind in the lane, as a rule.
func (h *held) insert(e *early) {
	h.tidy()
	i, _ := slices.BinarySearchFunc(h.order, e.lane, func(o *early, lane uint64) int {
		h.steps++
		return cmp.Compare(o.lane, lane)
	})
	h.order = slices.Insert(h.order, i, e)
}

// tidy forgets what was taken out when it is most of what there is.
func (h *held) tidy() {
	if len(h.order) < 2*len(h.at)+64 {
		return
	}
	h.steps += len(h.order)
	h.order = slices.DeleteFunc(h.order, func(e *early) bool { return e.gone })
}

// take takes the event out whose turn it is.
func (h *held) take(t turn) (e early, ok bool) {
	h.steps++
	there := h.at[t]
	if there == nil {
		return early{}, false
	}
	e = *there
	delete(h.at, t)
	if e.ev != nil {
		h.kept--
	}
	there.ev, there.gone = nil, true
	h.tidy()
	return e, true
}

// collect keeps an event that is held and was read again, if there is room.
func (h *held) collect(ev *model.Event) {
	if h.kept == len(h.at) || h.kept >= h.limit {
		return
	}
	e := entryOf(ev)
	if there := h.at[e.turn]; there != nil && there.ev == nil && there.lane == e.lane {
		there.ev = ev
		h.kept++
	}
}

// below are the lane sequences of those up to one.
func (h *held) below(seq uint64) (list []uint64) {
	for _, e := range h.order {
		if !e.gone && e.lane <= seq {
			list = append(list, e.lane)
		}
	}
	return list
}

// all are those that are held, in lane order.
func (h *held) all() []early {
	list := make([]early, 0, len(h.at))
	for _, e := range h.order {
		if !e.gone {
			list = append(list, *e)
		}
	}
	return list
}

func byLane(a, b early) int { return cmp.Compare(a.lane, b.lane) }
