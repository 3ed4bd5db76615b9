package ledger

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// A handler may kill its process: it uses all memory, or calls os.Exit. The next owner would handle
// the same event and end likewise, and so on, if the log did not record the number of attempts
// (docs/adr/0016). So an owner whose predecessor left no receipt, or an attempt without a result,
// is careful:
//
//	before an attempt at the head of the lane, the log gets a record with the number of attempts
//	one event goes into each commit, so that others are not lost with it
//	after Config.LostAttempts of them the event fails
//
// until it has handled as many events as a commit may hold, or all events in the lane. An attempt that returns
// without a result (it has to wait, or is to be retried) is retracted in the log: only the end of a process
// counts. An attached runtime does none of this: it would mistake a slow runtime for a dead one.
//
// A handler that does not return ends the ledger of its space, and not the process. The next ledger,
// which is notified by Overran, is careful too, and the attempt counts.

// poisonGuard keeps an event whose handler ends its process from ending one process after another.
type poisonGuard struct {
	// left is how many events are to be handled with care, as far as they are there.
	left int
	// record is the record of an attempt that goes into the next commit.
	record *model.Trying
	// overran is the last attempt that did not return, of an earlier life; counted reports that the log has a
	// record of it.
	overran *receipts.Key
	counted bool
}

// Overran records that the handler of an event did not return in an earlier life of the space in this
// process, and whether the log had a record of that attempt (AttemptRecorded). It is called before the runtime enters.
func (l *Ledger) Overran(stream, event string, recorded bool) {
	l.poison.overran, l.poison.counted = &receipts.Key{Stream: stream, ID: event}, recorded
}

// AttemptRecorded reports whether the log has a record of the attempt at an event that is being made now.
func (l *Ledger) AttemptRecorded(stream, event string) bool {
	return l.recorded(&model.Event{Stream: stream, ID: event})
}

// beginLife decides whether the runtime, which has just entered, is to be careful.
func (l *Ledger) beginLife() {
	g := poisonGuard{overran: l.poison.overran, counted: l.poison.counted}
	lives := &l.replica.Lives
	if l.cfg.LostAttempts > 0 && l.at.role == Owner && (lives.Barren > 0 || lives.Trying != nil || g.overran != nil) {
		g.left = l.cfg.MaxGroup
	}
	l.poison = g
}

// logAnswersFirst reports whether the log is to answer before the next event can be handled: the record of
// an attempt goes into the commit that decides the event before it.
func (l *Ledger) logAnswersFirst() bool {
	return l.poison.left > 0 && (l.poison.record != nil || l.suffix.sealed != nil)
}

// tried is the record of attempts at ev that the log has, nil if there is none.
func (l *Ledger) tried(ev *model.Event) *model.Trying {
	if t := l.replica.Trying; t != nil && t.Event == ev.ID && t.By == receipts.By(ev.Stream) {
		return t
	}
	return nil
}

// recorded reports whether the log has a record of the attempt at ev that is to be made now.
func (l *Ledger) recorded(ev *model.Event) bool {
	t := l.tried(ev)
	return t != nil && !t.Back && l.replica.TriedBy == l.at.epoch
}

// lostAttempts is how many attempts at ev have ended without a result, and whether the last of them did
// not return.
func (l *Ledger) lostAttempts(ev *model.Event) (n int, overran bool) {
	t := l.tried(ev)
	if t != nil {
		n = t.Tries
	}
	overran = l.poison.overran != nil && *l.poison.overran == keyOf(ev)
	if overran && !l.poison.counted && (t == nil || t.Back && l.replica.TriedBy != l.at.epoch) {
		n++ // that attempt had no record
	}
	return n, overran
}

// recordAttempt has the next commit say that an attempt at ev is about to be made, after n that were lost.
func (l *Ledger) recordAttempt(ev *model.Event, n int) {
	l.poison.record = &model.Trying{By: receipts.By(ev.Stream), Event: ev.ID, Tries: n + 1}
}

// staggerRetry has the head wait for a moment of its own, once in a life, before it is tried again: a
// second at most, then four, and so on. A process that dies takes other spaces with it, whose events were
// being tried at that time and are not to blame; and runtimes that take a space from each other, or share
// it, may find the record of one that is alive and about to commit. It reports whether the head is to wait
// now.
func (l *Ledger) staggerRetry(ev *model.Event, n int) bool {
	if l.head.of == keyOf(ev) || l.replica.TriedBy == l.at.epoch {
		return false
	}
	wait := l.cfg.PauseMax / 256 * time.Duration(jitter(l.replica.Space, ev.ID, n)) << (2 * min(n-1, 4))
	l.head.of, l.head.notBefore = keyOf(ev), l.now+wait
	return wait > 0
}

// retractAttempt has the log forget the attempt that it has a record of, if that has had no result, and
// one that has not begun.
func (l *Ledger) retractAttempt() {
	l.poison.record = nil
	t := l.replica.Trying
	if l.poison.left == 0 || t == nil || t.Back || l.replica.TriedBy != l.at.epoch || l.lane.Undecided() > 0 {
		return
	}
	l.poison.record = &model.Trying{By: t.By, Event: t.Event, Tries: t.Tries - 1, Back: true}
}

// handledCarefully takes in that an event was handled while the runtime is careful.
func (l *Ledger) handledCarefully() {
	if l.poison.left--; l.lane.Waiting() == 0 {
		l.poison.left = 0
	}
}
