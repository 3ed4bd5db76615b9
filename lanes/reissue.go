package lanes

import (
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
)

// If an origin loses commits that had assigned positions, it assigns those positions again. Terms distinguish
// the two (docs/adr/0035). The event under such a position may be a new one, or one that was handled under
// the same or another position, because the origin has handled the causing event again. The receipts of this
// space decide which, and those are in its log: the lane requests them (Reissued), and holds such events
// until it receives them (Recall).

// recalled are the handled events of an origin that the origin may send again.
type recalled struct {
	of      model.Reissued
	handled map[uint64]*model.Receipt // by ReplayKey
}

// unsure reports whether the lane needs the handled events of the origin before it takes the event, which is
// classified as the next one; if so, it requests them.
func (l *Lane) unsure(e *early, r *model.Received, v model.Verdict) bool {
	of, is := r.Reissued(e.origin, v, e.pos, e.term)
	if !is || e.term == 0 || l.recalled[e.origin].of == of {
		return false
	}
	if l.asks == nil {
		l.asks = map[string]model.Reissued{}
	}
	l.asks[e.origin] = of
	return true
}

// Reissued returns the positions whose handled events the lane needs, see Recall; false if there are none, or
// not yet: events with such a position may still be queued.
func (l *Lane) Reissued() (model.Reissued, bool) {
	if len(l.asks) == 0 {
		return model.Reissued{}, false // as always
	}
	for _, origin := range slices.Sorted(maps.Keys(l.asks)) {
		if of := l.asks[origin]; !slices.ContainsFunc(l.entries, func(ev *model.Event) bool { return of.Concerns(ev) }) {
			return of, true
		}
	}
	return model.Reissued{}, false
}

// Recall passes to the lane the events that were handled under positions which their origin has assigned
// again. Events among them that arrive again, under another id, carry their receipt (Event.Earlier).
func (l *Lane) Recall(of model.Reissued, handled []model.Receipt) {
	if l.asks[of.Origin] != of {
		return // it requests other positions by now
	}
	delete(l.asks, of.Origin)
	if l.recalled == nil {
		l.recalled = map[string]recalled{}
	}
	known := recalled{of: of, handled: make(map[uint64]*model.Receipt, len(handled))}
	for i := range handled {
		known.handled[handled[i].ReplayKey] = &handled[i]
	}
	l.recalled[of.Origin] = known
	l.judgeAgain(of.Origin)
}

// judgeAgain classifies the held events of an origin again.
func (l *Lane) judgeAgain(origin string) {
	for _, e := range l.held.takeAll(origin) {
		l.place(e)
	}
}

// withEarlier returns the event with the receipt that it got under another id, if any.
func (l *Lane) withEarlier(ev *model.Event) *model.Event {
	var earlier *model.Receipt
	if ev.ReplayKey != 0 {
		earlier = l.recalled[ev.Origin()].handled[ev.ReplayKey]
	}
	if earlier != nil && earlier.Event == ev.ID {
		earlier = nil
	}
	if ev.Earlier == earlier {
		return ev
	}
	c := *ev
	c.Earlier = earlier
	return &c
}

// outOfTerm returns the reason for refusing an event that is classified as a model.Conflict.
const outOfTerm = "its origin has gone back to an earlier state: the transaction that sent it is lost, or the clock of the server was set back since. " +
	"If it is to be handled, redrive it"

// refuse queues an event that is to be refused.
func (l *Lane) refuse(e early) {
	if e.ev == nil {
		l.readAgain(e)
		return
	}
	c := *e.ev
	if c.Invalid == "" {
		c.Invalid = outOfTerm
	}
	l.push(&c)
}

// asOffered returns a queued event in its state before it was queued.
func asOffered(ev *model.Event) *model.Event {
	if ev.Invalid != outOfTerm {
		return ev
	}
	c := *ev
	c.Invalid = ""
	return &c
}
