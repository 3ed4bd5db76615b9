package ledger

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// Progress is the result of a step for the event at the head of the lane.
type Progress uint8

const (
	// Idle means that there is no event.
	Idle Progress = iota
	// Handled means that the event now has a receipt, or waits outside the lane.
	Handled
	// Blocked means that it waits for documents, a time, room in a commit, or an answer of the log.
	Blocked
)

// Next takes the next step for the event at the head of the lane. It decides all possible outcomes of an
// event; an outcome takes effect with its commit.
//
//	handled under another id     it gets the receipt of that id (see lanes.Lane.Recall)
//	cancelled, or expired        it ends without a call of its handler
//	waits for documents          it stays where it is; it fails when that has taken too long
//	before its time              it leaves the lane, and waits in the state of the space
//	after its time               another transaction takes its place
//	may have ended a process     the log gets a record of the attempt first, or it fails
//	else                         its handler is called:
//	    lacks documents            the attempt is abandoned without a trace
//	    has a transient error      it is retried later, within a budget or without an end
//	    else                       it ends in a receipt, and the lane advances
//	an end without room          it is attempted again in the next commit
//	an end too large to commit   it fails
func (l *Ledger) Next() Progress {
	ev := l.Head()
	if ev == nil {
		return Idle
	}
	if ev.Earlier != nil {
		return l.end(l.host.Unhandled(ev, receipts.Repeated(ev)))
	}
	if rc := l.cancelledOrExpired(ev); rc != nil {
		return l.end(l.host.Unhandled(ev, rc))
	}
	if l.headWaits() {
		if err := l.host.Overdue(); err != nil && !l.logAnswersFirst() {
			return l.fail(ev, err, l.head.failures+1)
		}
		return Blocked
	}
	if ev.Slot == 0 && ev.Lane > 0 && ev.NotBefore > l.clock.wall && ev.Invalid == "" {
		return l.letWait(ev)
	}
	if d := l.host.Instead(ev); d != nil {
		l.resetHead()
		if _, err := l.Record(d); err != nil {
			return Blocked // the next group has room
		}
		return Handled
	}
	if l.poison.recording() {
		return l.attemptRecorded(ev)
	}
	return l.attempt(ev)
}

// cancelledOrExpired returns the receipt of an event that was cancelled or has expired, nil if it must be handled.
func (l *Ledger) cancelledOrExpired(ev *model.Event) *model.Receipt {
	if mark := l.marks.of(ev.Stream, ev.ID); !mark.IsAbsent() {
		why, _ := mark.Get("why").AsString()
		return receipts.Cancelled(ev, why)
	}
	if ev.Expires > 0 && l.clock.wall > ev.Expires && ev.Invalid == "" {
		return receipts.Expired(ev)
	}
	return nil
}

// attemptRecorded calls the handler of ev after the log has recorded the attempt, unless too many attempts
// were lost.
func (l *Ledger) attemptRecorded(ev *model.Event) Progress {
	if l.logAnswersFirst() {
		return Blocked
	}
	if !l.poison.recorded(ev.Stream, ev.ID) {
		lost, overran := l.poison.lost(ev)
		switch {
		case lost >= l.cfg.LostAttempts:
			return l.fail(ev, l.host.Lost(ev, lost, overran), lost)
		case lost > 0 && l.staggers(ev, lost):
		default:
			l.poison.recordAttempt(ev, lost)
		}
		return Blocked
	}
	p := l.attempt(ev)
	if p == Handled {
		l.poison.handled()
	} else {
		l.poison.retract()
	}
	return p
}

// staggers delays the first attempt at ev in this incarnation if earlier ones were lost. It reports whether
// ev must wait now.
func (l *Ledger) staggers(ev *model.Event, lost int) bool {
	if l.head.knows(ev) || l.poison.ofThisLife() {
		return false
	}
	wait := l.poison.stagger(ev, lost)
	l.head.pause(ev, wait)
	return wait > 0
}

// attempt calls the handler of ev.
func (l *Ledger) attempt(ev *model.Event) Progress {
	a := l.host.Attempt(ev)
	if a.Waits {
		l.head.parks(ev)
		l.host.Postponed(a, Parked, l.head.notBefore)
		return Blocked
	}
	l.outcomes.counts.Attempts++
	if a.Err == nil {
		return l.end(a)
	}
	again := a.MayPass && (a.Endless || l.head.failures+1 < l.cfg.EventRetries)
	l.host.Failed(a, l.head.failures+1, again)
	if again {
		l.head.failed(ev, a)
		l.host.Postponed(a, PutOff, l.head.notBefore)
		return Blocked
	}
	return l.end(a)
}

// fail ends an event with an error that did not come from its handler.
func (l *Ledger) fail(ev *model.Event, err error, tries int) Progress {
	a := l.host.Unhandled(ev, receipts.Failed(ev, err))
	a.Err = err
	l.host.Failed(a, tries, false)
	return l.end(a)
}

// end records the end of an event as a transaction, and advances the lane. An end that no commit could carry
// becomes a failure. If the open group has no room, the attempt must be repeated.
func (l *Ledger) end(a *Attempt) Progress {
	ev := a.Event
	l.host.Conclude(a, false)
	if n := l.attempts(ev); n > 1 {
		a.Receipt.Attempts = n
	}
	if err := l.host.Fits(&a.Draft); err != nil {
		l.failInstead(a, err)
	}
	tx := model.Tx{N: l.NextTx(), By: receipts.By(ev.Stream), Receipt: a.Receipt, Writes: a.Writes, Trace: a.Trace, Group: a.Group}
	err := l.join(&tx, &a.Draft)
	if errors.Is(err, ErrTooLarge) && !a.Receipt.Returned.IsAbsent() {
		a.Receipt.Returned = model.Value{} // the outcome does not depend on what the notice contains
		err = l.join(&tx, &a.Draft)
	}
	if errors.Is(err, ErrTooLarge) {
		l.failInstead(a, err)
		tx.Writes, tx.Sends, tx.Cancels, tx.Trace = a.Writes, nil, nil, model.Trace{}
		err = l.join(&tx, &a.Draft)
	}
	switch {
	case errors.Is(err, ErrNoRoom):
		l.host.Postponed(a, NoRoom, 0)
		return Blocked
	case err != nil:
		panic(fmt.Sprintf("ledger: a receipt alone does not fit into a commit: %v", err))
	}
	l.host.Recorded(a, tx.N)
	l.passHead()
	l.followUp(a.Sends)
	return Handled
}

// attempts returns how often the handler of ev was tried, including this time.
func (l *Ledger) attempts(ev *model.Event) int {
	n := 1
	if l.head.knows(ev) {
		n += l.head.failures
	}
	if t := l.poison.tried(ev.Stream, ev.ID); t != nil && t.Tries > 0 {
		n += t.Tries - 1
	}
	return n
}

// failInstead turns an attempt that no commit could carry into a failed one.
func (l *Ledger) failInstead(a *Attempt, err error) {
	*a.Receipt = *receipts.Failed(a.Event, err)
	l.host.Conclude(a, true)
}

// letWait moves an event of the lane that came early into the state of the space. One that cannot wait is
// refused.
func (l *Ledger) letWait(ev *model.Event) Progress {
	err := l.agenda.mayWait(ev.NotBefore, 1)
	if err == nil {
		w := model.Waiting{
			ID: ev.ID, Stream: ev.Stream, Payload: ev.Payload, NotBefore: ev.NotBefore, Expires: ev.Expires,
			Slot: l.agenda.renewed().slot(0), Lane: ev.Lane, Position: ev.Position, Term: ev.Term, ReplayKey: ev.ReplayKey, Depth: ev.Depth, Trace: ev.Trace,
		}
		tx := model.Tx{N: l.NextTx(), By: receipts.LaterBy(ev.Stream), Later: &w}
		switch err = l.join(&tx, &Draft{Event: ev}); {
		case err == nil:
			l.host.Later(&w, tx.N)
			l.passHead()
			return Handled
		case errors.Is(err, ErrNoRoom):
			return Blocked
		}
	}
	return l.end(l.host.Unhandled(ev, receipts.Refused(ev, err.Error())))
}

// passHead takes the event at the head off the lane, because a transaction has decided it.
func (l *Ledger) passHead() {
	l.resetHead()
	l.lane.Take()
}

// Record makes a transaction that handles no event, and returns its number. The host applies its writes by
// calling Note. The error is ErrNoRoom or ErrTooLarge.
func (l *Ledger) Record(d *Draft) (uint64, error) {
	tx := model.Tx{N: l.NextTx(), By: d.By, Writes: d.Writes, Trace: d.Trace, Group: d.Group}
	if err := l.join(&tx, d); err != nil {
		return 0, err
	}
	if d.Direct {
		l.suffix.direct(tx.N)
	}
	l.followUp(d.Sends)
	return tx.N, nil
}

// AddSending is Add for the run of a node that sends events to its own space: they are queued behind those that wait, and
// exist if and only if the transaction does.
func (l *Ledger) AddSending(tx *model.Tx, sends []model.Send) error {
	d := Draft{Sends: sends}
	if err := l.join(tx, &d); err != nil {
		return err
	}
	l.followUp(d.Sends)
	return nil
}

// join makes a transaction part of the suffix: it completes and registers its sends, and updates the agenda.
// A transaction that does not fit leaves no trace but its number.
func (l *Ledger) join(tx *model.Tx, d *Draft) error {
	if len(d.Cancels) > 0 || d.waitsIn(l.replica.Space) {
		l.agenda.renewed().place(d, tx)
	}
	for i := range d.Sends {
		s := &d.Sends[i]
		if s.Trace == (model.Trace{}) {
			s.Trace = tx.Trace
		}
		if s.To == l.replica.Space && s.Slot == 0 {
			s.Behind = l.lane.Seen()
		}
	}
	l.registry.Launch(model.TxID{Space: l.replica.Space, Epoch: l.phaseState.epoch, N: tx.N}, d.Event, d.Sends)
	tx.Sends = d.Sends
	if err := l.Add(tx); err != nil {
		l.registry.Revoke(tx.N)
		return err
	}
	if rc := tx.Receipt; rc != nil && rc.Slot > 0 {
		l.agenda.renewed()
	}
	l.agenda.change(tx)
	return nil
}

// followUp queues the sends that stay in the space and do not wait for a time.
func (l *Ledger) followUp(sends []model.Send) {
	for i := range sends {
		if sends[i].To == l.replica.Space && sends[i].Slot == 0 {
			l.lane.Follow(sends[i].Event())
		}
	}
}
