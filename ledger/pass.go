package ledger

import (
	"time"

	"github.com/settlehq/settle/model"
)

// BeginPass starts a pass at the current time: an event that conflicts have undone may have to wait, and
// events whose time has come enter the lane, as far as there is room. It reports whether the clock was set
// back since the last call.
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
		if a.withdrawEarly() || setBack {
			l.recheckHead()
		}
	}
	if l.marks.maybe {
		a.endCancelled(l.marks.all())
	}
	if a.isNew {
		a.isNew = false
		if a.withdrawOvertaking() {
			l.recheckHead()
		}
	}
	a.due()
	return setBack
}

// Due returns the wall time, in milliseconds since 1970, at which an event that waits for its time becomes
// due, or at which the event at the head of the lane expires; 0 for never. It never lies in the past: an
// event that is due and not in the lane waits because the lane or a commit is full, and enters when an event
// is handled or the commit is answered.
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

// nextDue returns the time of the next event that must enter the lane, 0 if this runtime handles no events.
func (l *Ledger) nextDue() int64 {
	if l.cfg.WithoutEvents || !l.Begins() {
		return 0
	}
	return l.agenda.nextDue()
}

// Head returns the event that this runtime must handle next, nil if there is none.
func (l *Ledger) Head() *model.Event {
	if l.cfg.WithoutEvents {
		return nil
	}
	return l.lane.Peek()
}

// HeadInfo describes the event at the head of the lane.
type HeadInfo struct {
	Event *model.Event
	// Known is set if there was an attempt at it, or a pause before the first attempt.
	Known bool
	// Attempts is the number of attempts that ended in a transient error, 0 if none is known; Endless is set if there is another one
	// however many there were.
	Attempts int
	Endless  bool
	// Reason is the first line of the last of these errors, cut to 200 bytes.
	Reason string
	// Lost is the number of attempts recorded in the log that ended without a result.
	Lost int
}

// HeadInfo describes the event at the head of the lane; false if there is none.
func (l *Ledger) HeadInfo() (HeadInfo, bool) {
	ev := l.Head()
	if ev == nil {
		return HeadInfo{}, false
	}
	h := HeadInfo{Event: ev, Known: l.head.knows(ev)}
	if h.Known {
		h.Attempts, h.Endless, h.Reason = l.head.failures, l.head.endless, l.head.reason
	}
	if t := l.poison.tried(ev.Stream, ev.ID); t != nil {
		h.Lost = t.Tries
	}
	return h, true
}

// NotBefore returns the time before which the head of the lane is not handled; it may have passed.
func (l *Ledger) NotBefore() time.Duration { return l.head.notBefore }

// HasWork reports whether another pass at this time would process any event: the one at the head of the lane
// can be handled or ended, or the lane has room for one whose time has come.
func (l *Ledger) HasWork() bool {
	if l.headReady() {
		return true
	}
	due := l.nextDue()
	return due != 0 && due <= l.clock.wall && l.agenda.hasRoom()
}

// headReady reports whether the event at the head of the lane can be handled or ended.
func (l *Ledger) headReady() bool {
	ev := l.Head()
	return ev != nil && (ev.Earlier != nil || l.cancelledOrExpired(ev) != nil || !l.headWaits() && !l.logAnswersFirst())
}

// headWaits reports whether the event at the head of the lane waits for a time or for documents.
func (l *Ledger) headWaits() bool { return l.head.pauses() || l.host.Lacks() }

// logAnswersFirst reports whether the next event must wait for the log's answer: the record of an attempt
// goes into the commit that decides the event before it.
func (l *Ledger) logAnswersFirst() bool {
	return l.poison.recording() && (l.poison.record != nil || l.suffix.sealed != nil)
}

// recheckHead discards what is known of the head if another runtime has handled it, because its needs and
// pauses are not those of the next event.
func (l *Ledger) recheckHead() {
	if ev := l.Head(); ev == nil || !l.head.knows(ev) {
		l.resetHead()
	}
}

// resetHead discards what is known of the head of the lane: its needs, its pause, and its failed attempts.
func (l *Ledger) resetHead() {
	l.head.forget()
	l.host.Release()
}
