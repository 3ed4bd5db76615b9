package ledger

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// head is what is known of the event at the head of the lane. What it waits for besides a time, the host
// knows (see Host.Lacks).
type head struct {
	of receipts.Key
	// attempts counts those that ended in an error that may pass, and notBefore is when the next may
	// be made.
	attempts  int
	notBefore time.Duration
}

// conflicts is how an event fares whose attempts another runtime's commits undo. It is kept over the
// refusal, unlike head.
type conflicts struct {
	event receipts.Key
	n     int
	since time.Duration
	// reported says that the window has ended, which is reported once.
	reported bool
	// pending says that a refusal has undone an attempt at the head of the lane. When the next may be
	// made is decided when the time is known.
	pending bool
}

func keyOf(ev *model.Event) receipts.Key { return receipts.Key{Stream: ev.Stream, ID: ev.ID} }

// Doubled is from, doubled for each of n after the first, but no more than most.
func Doubled(from, most time.Duration, n int) time.Duration {
	for ; n > 1 && from < most; n-- {
		from *= 2
	}
	return min(from, most)
}

// jitter is a number below 256 that differs between runtimes, so that two that have met do not meet
// again, and is the same whenever it is asked for.
func jitter(runtime, event string, n int) uint8 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %s %d", runtime, event, n)
	return uint8(h.Sum32() >> 8)
}

// Head is the event that this runtime is to handle next, nil if there is none.
func (l *Ledger) Head() *model.Event {
	if l.cfg.WithoutEvents {
		return nil
	}
	return l.lane.Peek()
}

// HeadInfo is what is known of the event at the head of the lane.
type HeadInfo struct {
	Event *model.Event
	// Known says that there was an attempt at it, or a pause before the first; else what follows is 0.
	Known bool
	// Attempts is how many attempts ended in an error that may pass.
	Attempts int
	// Lost is how many attempts the log has a mark of that have ended without a result.
	Lost int
}

// HeadInfo says how the event at the head of the lane stands, false if there is none.
func (l *Ledger) HeadInfo() (HeadInfo, bool) {
	ev := l.Head()
	if ev == nil {
		return HeadInfo{}, false
	}
	h := HeadInfo{Event: ev, Known: l.head.of == keyOf(ev)}
	if h.Known {
		h.Attempts = l.head.attempts
	}
	if t := l.tried(ev); t != nil {
		h.Lost = t.Tries
	}
	return h, true
}

// recheckHead lets go of what is known of the head if another event is in front now, because another
// runtime has handled it: what it waited for, and its pauses, are not those of the next one.
func (l *Ledger) recheckHead() {
	if ev := l.Head(); ev == nil || keyOf(ev) != l.head.of {
		l.LetGo()
	}
}

// LetGo forgets what is known of the head of the lane: what it was found to need, its pause, and the
// attempts that have failed.
func (l *Ledger) LetGo() {
	l.head = head{}
	l.host.Release()
}

// NotBefore is the time before which nothing is done with the head of the lane, which may have passed.
func (l *Ledger) NotBefore() time.Duration { return l.head.notBefore }

// Failures is how many attempts at the head of the lane have ended in an error that may pass.
func (l *Ledger) Failures() int { return l.head.attempts }

func (l *Ledger) headWaits() bool { return l.head.notBefore > l.now || l.host.Lacks() }

// HeadReady reports whether the event at the head of the lane can be handled, or is not to be handled any
// more.
func (l *Ledger) HeadReady() bool {
	ev := l.Head()
	return ev != nil && (ev.Earlier != nil || l.takenBack(ev) != nil || !l.headWaits() && !l.logAnswersFirst())
}

// putOff has the head wait before the next attempt, after an error that may pass.
func (l *Ledger) putOff(ev *model.Event) {
	l.head.of = keyOf(ev)
	l.head.attempts++
	l.head.notBefore = l.now + Doubled(l.cfg.RetryMin, l.cfg.RetryMax, l.head.attempts)
}

// attempts is how often the handler of ev was tried, this time included.
func (l *Ledger) attempts(ev *model.Event) int {
	n := 1
	if l.head.of == keyOf(ev) {
		n += l.head.attempts
	}
	if t := l.tried(ev); t != nil && t.Tries > 0 {
		n += t.Tries - 1
	}
	return n
}

// pauseAfterConflict sets when the next attempt at the head of the lane may be made, after a refusal has
// undone one: at once after the first, then after growing delays. Conflicts never use up the
// budget of retries.
func (l *Ledger) pauseAfterConflict() {
	c, ev := l.conflicts, l.Head()
	c.pending = false
	if ev == nil {
		return
	}
	if c.event != keyOf(ev) {
		*c = conflicts{event: keyOf(ev), since: l.now}
	}
	c.n++
	var wait time.Duration
	if c.n > 1 {
		wait = l.ConflictPause(ev.ID, c.n)
	}
	if l.now-c.since >= l.cfg.ConflictWindow {
		wait = l.cfg.PauseMax
		if !c.reported {
			c.reported = true
			l.counts.Unconverged++
			l.host.Unconverged(ev, c.n)
		}
	}
	l.head.of, l.head.notBefore = keyOf(ev), l.now+wait
}

// ConflictPause is how long to wait before the next attempt at what has met its n-th conflict, the second
// or a later one: 25 ms, doubled up to 1 s, less up to a quarter, by which runtimes differ.
func (l *Ledger) ConflictPause(id string, n int) time.Duration {
	wait := Doubled(l.cfg.PauseMin, l.cfg.PauseMax, n-1)
	return wait - wait/4*time.Duration(jitter(l.cfg.Runtime, id, n))/256
}
