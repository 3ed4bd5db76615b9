package ledger

import (
	"time"

	"github.com/settlehq/settle/model"
)

// BeginPass takes in the time: an event that conflicts have undone may have to wait, and those whose time has
// come go into the lane, as many as there is room for. It reports whether the clock was set back since it was
// called last.
func (l *Ledger) BeginPass() (setBack bool) {
	if n := l.head.pauseAfterConflict(l.Head()); n > 0 {
		l.outcomes.counts.Unconverged++
		l.host.Unconverged(l.Head(), n)
	}
	if l.cfg.WithoutEvents {
		return false
	}
	a := l.agenda.renewed()
	if setBack = l.clock.setBack; setBack || a.isNew {
		l.clock.setBack = false
		if a.takeBackEarly() || setBack {
			l.recheckHead()
		}
	}
	if l.marks.maybe {
		a.endCancelled(l.marks.all())
	}
	if a.isNew {
		a.isNew = false
		if a.takeBackOvertaking() {
			l.recheckHead()
		}
	}
	a.due()
	return setBack
}

// Due returns the wall time, in milliseconds since 1970, at which there is something to do again for an event
// that waits for its time, or at which the event at the head of the lane expires; 0 for never. It is never one that
// has passed. What keeps an event out of the lane that is due already is that the lane is full, or that a
// commit is: it comes in when an event is handled or the commit answered.
func (l *Ledger) Due() int64 {
	due := l.nextDue()
	if due <= l.clock.wall {
		due = 0
	}
	if ev := l.Head(); ev != nil && ev.Expires > 0 {
		if at := ev.Expires + 1; at > l.clock.wall && (due == 0 || at < due) {
			due = at
		}
	}
	return due
}

// nextDue returns when the next event that waits is to be put into the lane, 0 if this runtime puts none.
func (l *Ledger) nextDue() int64 {
	if l.cfg.WithoutEvents || !l.Begins() {
		return 0
	}
	return l.agenda.nextDue()
}

// Head returns the event that this runtime is to handle next, nil if there is none.
func (l *Ledger) Head() *model.Event {
	if l.cfg.WithoutEvents {
		return nil
	}
	return l.lane.Peek()
}

// HeadInfo is what is known of the event at the head of the lane.
type HeadInfo struct {
	Event *model.Event
	// Known is set if there was an attempt at it, or a pause before the first.
	Known bool
	// Attempts is how many attempts ended in an error that may pass, 0 if nothing is known.
	Attempts int
	// Lost is how many attempts the log has a record of that have ended without a result.
	Lost int
}

// HeadInfo returns what is known of the event at the head of the lane, false if there is none.
func (l *Ledger) HeadInfo() (HeadInfo, bool) {
	ev := l.Head()
	if ev == nil {
		return HeadInfo{}, false
	}
	h := HeadInfo{Event: ev, Known: l.head.knows(ev)}
	if h.Known {
		h.Attempts = l.head.failures
	}
	if t := l.poison.tried(ev.Stream, ev.ID); t != nil {
		h.Lost = t.Tries
	}
	return h, true
}

// NotBefore returns the time before which nothing is done with the head of the lane, which may have passed.
func (l *Ledger) NotBefore() time.Duration { return l.head.notBefore }

// HasWork reports whether another pass at this time would do something for events: the one at the head of the lane can
// be handled, or is not to be handled any more; or the lane has room for one whose time has come.
func (l *Ledger) HasWork() bool {
	if l.headReady() {
		return true
	}
	due := l.nextDue()
	return due != 0 && due <= l.clock.wall && l.agenda.hasRoom()
}

// headReady reports whether the event at the head of the lane can be handled, or is not to be handled any
// more.
func (l *Ledger) headReady() bool {
	ev := l.Head()
	return ev != nil && (ev.Earlier != nil || l.takenBack(ev) != nil || !l.headWaits() && !l.logAnswersFirst())
}

// headWaits reports whether the event at the head of the lane waits for a time or for documents.
func (l *Ledger) headWaits() bool { return l.head.pauses() || l.host.Lacks() }

// logAnswersFirst reports whether the log is to answer before the next event can be handled: the record of
// an attempt goes into the commit that decides the event before it.
func (l *Ledger) logAnswersFirst() bool {
	return l.poison.careful() && (l.poison.record != nil || l.suffix.sealed != nil)
}

// recheckHead forgets what is known of the head if another event is in front now, because another
// runtime has handled it: what it waited for, and its pauses, are not those of the next one.
func (l *Ledger) recheckHead() {
	if ev := l.Head(); ev == nil || !l.head.knows(ev) {
		l.letGo()
	}
}

// letGo forgets what is known of the head of the lane: what it was found to need, its pause, and the
// attempts that have failed.
func (l *Ledger) letGo() {
	l.head.forget()
	l.host.Release()
}
