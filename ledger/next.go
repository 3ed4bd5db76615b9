package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// Host is what stands on a ledger: the code of the application, and the documents that it sees. Attempt must
// be there. Of the others, nil stands for a host that has nothing to say to them: it shows Ledger.Value,
// applies the writes one by one, and waits for nothing but a time.
type Host struct {
	// Integrated takes in a commit of another runtime: the documents in changed have other values now.
	Integrated func(c *model.Commit, changed []string) error

	// Attempt calls the handler of an event and says what came of it. Nothing takes effect yet.
	Attempt func(ev *model.Event) *Attempt
	// Unhandled begins the end of an event whose handler is not called, with the receipt that it ends in.
	// If there is a mark of its being cancelled (see CancelDoc), the attempt deletes that.
	Unhandled func(ev *model.Event, rc *model.Receipt) *Attempt
	// Conclude completes the transaction that ends an event, with any outcome. dropped is set if no
	// commit could carry the effects of the attempt: they are discarded, and Receipt has the reason.
	Conclude func(a *Attempt, dropped bool)
	// Fits is why the documents that a transaction writes could not be saved, nil if they can.
	Fits func(d *Draft) error
	// Recorded takes in that an attempt has joined the suffix as a transaction. The host applies what it
	// has written, by Note.
	Recorded func(a *Attempt, tx uint64)
	// Postponed takes in that nothing is kept of an attempt for now. until is the time before which it is
	// not made again, 0 for none.
	Postponed func(a *Attempt, why Postponement, until time.Duration)
	// Failed is called for each attempt that has ended in an error, with the number of attempts; again is
	// set if another attempt follows.
	Failed func(a *Attempt, tries int, again bool)
	// Lost returns the error of an event whose handler did not return from any of its attempts; overran is set
	// if it did not return within its limit in the last one.
	Lost func(ev *model.Event, tries int, overran bool) error
	// Unconverged takes in that an event has met conflicts for longer than Config.ConflictWindow.
	Unconverged func(ev *model.Event, conflicts int)

	// Lacks reports whether anything is missing that attempts at the head of the lane have been found to
	// need, Overdue is why it is not to be waited for any longer, nil if it is, and Release lets go of it.
	Lacks   func() bool
	Overdue func() error
	Release func()
	// Instead is a transaction that takes the place of an event which is not to be handled, nil for all
	// others: an event whose time has passed, and whose successor is set.
	Instead func(ev *model.Event) *Draft
	// Later takes in that an event of the lane waits for its time, by a transaction.
	Later func(w *model.Waiting, tx uint64)
}

// fill has the functions that are missing do what a host does without them.
func (h *Host) fill(l *Ledger) {
	or(&h.Integrated, h.Integrated == nil, func(*model.Commit, []string) error { return nil })
	or(&h.Unhandled, h.Unhandled == nil, l.unhandled)
	or(&h.Conclude, h.Conclude == nil, func(a *Attempt, dropped bool) {
		if dropped {
			a.Writes, a.Sends, a.Cancels = nil, nil, nil
		}
	})
	or(&h.Fits, h.Fits == nil, func(*Draft) error { return nil })
	or(&h.Recorded, h.Recorded == nil, func(a *Attempt, _ uint64) { l.apply(a.Writes) })
	or(&h.Postponed, h.Postponed == nil, func(*Attempt, Postponement, time.Duration) {})
	or(&h.Failed, h.Failed == nil, func(*Attempt, int, bool) {})
	or(&h.Lost, h.Lost == nil, func(_ *model.Event, tries int, _ bool) error {
		return fmt.Errorf("the handler never came back: the process ended, or it was given up, in each of %d attempts", tries)
	})
	or(&h.Unconverged, h.Unconverged == nil, func(*model.Event, int) {})
	or(&h.Lacks, h.Lacks == nil, func() bool { return false })
	or(&h.Overdue, h.Overdue == nil, func() error { return nil })
	or(&h.Release, h.Release == nil, func() {})
	or(&h.Instead, h.Instead == nil, func(*model.Event) *Draft { return nil })
	or(&h.Later, h.Later == nil, func(*model.Waiting, uint64) {})
}

// or sets a function that is missing.
func or[F any](f *F, missing bool, to F) {
	if missing {
		*f = to
	}
}

// unhandled begins the end of an event whose handler is not called.
func (l *Ledger) unhandled(ev *model.Event, rc *model.Receipt) *Attempt {
	a := &Attempt{Draft: Draft{Event: ev, Trace: ev.Trace}, Receipt: rc}
	if key := CancelKey(ev.Stream, ev.ID); !l.marks().Get(key).IsAbsent() {
		a.Writes = []model.Write{{Doc: CancelDoc, Path: model.Path{key}, Delete: true}}
	}
	return a
}

// apply notes what writes leave documents with.
func (l *Ledger) apply(writes []model.Write) {
	for i := range writes {
		w := &writes[i]
		if v, err := w.Apply(l.Value(w.Doc)); err == nil { // an attempt has made them
			l.Note(w.Doc, v)
		}
	}
}

// Draft is a transaction before it is recorded.
type Draft struct {
	// Event is what it handles or ends, nil if it answers none, and By says whose it is then.
	Event  *model.Event
	By     string
	Writes []model.Write
	Sends  []model.Send
	// Cancels are the timers that are cancelled.
	Cancels []string
	Group   string
	Trace   model.Trace
	// Context is the host's own.
	Context any
}

// waitsIn reports whether anything that the transaction sends is to wait in the space that sends it.
func (d *Draft) waitsIn(space string) bool {
	for i := range d.Sends {
		if waitsIn(space, &d.Sends[i]) {
			return true
		}
	}
	return false
}

// Attempt is one try at handling an event, or its end without one.
type Attempt struct {
	Draft
	Receipt *model.Receipt
	// Err is the error that the event ends in, nil if it is handled, or none is to blame. MayPass says that
	// another attempt may not end in it.
	Err     error
	MayPass bool
	// Waits says that the attempt has met something that is not there yet: it has had no result.
	Waits bool
}

// Postponement is why nothing is kept of an attempt for now.
type Postponement uint8

const (
	// Parked: it waits for what it lacked.
	Parked Postponement = iota
	// PutOff: it is made again after an error that may pass.
	PutOff
	// Crowded: the open group has no room for it.
	Crowded
)

// Progress is what became of the event at the head of the lane.
type Progress uint8

const (
	// Idle: there is no event.
	Idle Progress = iota
	// Handled: it has a receipt now, or waits outside of the lane.
	Handled
	// Blocked: it waits for what it lacks, a time, room in a commit, or the log.
	Blocked
)

// Next takes the next step for the event at the head of the lane. All possible outcomes
// of an event are decided here; an outcome takes effect with its commit.
//
//	handled under another id     it gets the receipt of that id (see Recall)
//	cancelled, or expired        it ends without its handler
//	waits for documents          it stays where it is; it fails when that has taken too long
//	before its time              it leaves the lane, and waits in the state of the space
//	after its time               another transaction takes its place
//	may have killed a process    the log gets a record of the attempt first, or it fails
//	else                         its handler is called:
//	    lacks documents            the attempt is given up without a trace
//	    has a transient error      it is retried later, within a budget
//	    else                       it ends in a receipt, and the lane moves on
func (l *Ledger) Next() Progress {
	ev := l.Head()
	if ev == nil {
		return Idle
	}
	if ev.Earlier != nil {
		return l.end(l.host.Unhandled(ev, receipts.Repeated(ev)))
	}
	if rc := l.takenBack(ev); rc != nil {
		return l.end(l.host.Unhandled(ev, rc))
	}
	if l.headWaits() {
		if err := l.host.Overdue(); err != nil && !l.logAnswersFirst() {
			return l.fail(ev, err, l.head.attempts+1)
		}
		return Blocked
	}
	if ev.Slot == 0 && ev.Lane > 0 && ev.NotBefore > l.wall && ev.Invalid == "" {
		return l.letWait(ev)
	}
	if d := l.host.Instead(ev); d != nil {
		l.LetGo()
		if _, err := l.Record(d); err != nil {
			return Blocked // there is room in the next one
		}
		return Handled
	}
	careful := l.poison.left > 0
	if careful && l.logAnswersFirst() {
		return Blocked
	}
	if careful && !l.recorded(ev) {
		lost, overran := l.lostAttempts(ev)
		if lost >= l.cfg.LostAttempts {
			return l.fail(ev, l.host.Lost(ev, lost, overran), lost)
		}
		if lost == 0 || !l.staggerRetry(ev, lost) {
			l.recordAttempt(ev, lost)
		}
		return Blocked
	}
	p := l.attempt(ev)
	switch {
	case !careful:
	case p == Handled:
		l.handledCarefully()
	default:
		l.retractAttempt()
	}
	return p
}

// attempt calls the handler of ev.
func (l *Ledger) attempt(ev *model.Event) Progress {
	a := l.host.Attempt(ev)
	if a.Waits {
		l.head.of = keyOf(ev)
		l.host.Postponed(a, Parked, l.head.notBefore)
		return Blocked
	}
	l.counts.Attempts++
	if a.Err == nil {
		return l.end(a)
	}
	again := a.MayPass && l.head.attempts+1 < l.cfg.EventRetries
	l.host.Failed(a, l.head.attempts+1, again)
	if again {
		l.putOff(ev)
		l.host.Postponed(a, PutOff, l.head.notBefore)
		return Blocked
	}
	return l.end(a)
}

// fail ends an event with an error that is not its handler's.
func (l *Ledger) fail(ev *model.Event, err error, tries int) Progress {
	a := l.host.Unhandled(ev, receipts.Failed(ev, err))
	a.Err = err
	l.host.Failed(a, tries, false)
	return l.end(a)
}

// end makes the end of an event a transaction, and goes on to the next. An end that no commit could carry
// becomes a failure. If the open group has no room, the attempt is to be made again.
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
	if errors.Is(err, ErrTooLarge) {
		l.failInstead(a, err)
		tx.Writes, tx.Sends, tx.Cancels, tx.Trace = a.Writes, nil, nil, model.Trace{}
		err = l.join(&tx, &a.Draft)
	}
	switch {
	case errors.Is(err, ErrNoRoom):
		l.host.Postponed(a, Crowded, 0)
		return Blocked
	case err != nil:
		panic(fmt.Sprintf("ledger: a receipt alone does not fit into a commit: %v", err))
	}
	l.host.Recorded(a, tx.N)
	l.LetGo()
	l.lane.Take()
	l.followUp(a.Sends)
	return Handled
}

// failInstead makes an attempt a failed one that no commit could carry.
func (l *Ledger) failInstead(a *Attempt, err error) {
	*a.Receipt = *receipts.Failed(a.Event, err)
	l.host.Conclude(a, true)
}

// join makes a transaction part of the suffix: it completes its sends, ties them to it, and takes in what
// begins to wait and what does not any more. A transaction for which there is no room leaves no trace but
// its number.
func (l *Ledger) join(tx *model.Tx, d *Draft) error {
	if len(d.Cancels) > 0 || d.waitsIn(l.replica.Space) {
		l.renewedAgenda().place(d, l.replica.Space, tx)
	}
	for i := range d.Sends {
		s := &d.Sends[i]
		s.Trace = tx.Trace
		if s.To == l.replica.Space && s.Slot == 0 {
			s.Behind = l.lane.Seen()
		}
	}
	l.registry.Launch(model.TxID{Space: l.replica.Space, Epoch: l.at.epoch, N: tx.N}, d.Event, d.Sends)
	tx.Sends = d.Sends
	if err := l.suffix.add(tx, l.cfg.MaxCommitBytes); err != nil {
		l.registry.Revoke(tx.N)
		return err
	}
	if rc := tx.Receipt; rc != nil && rc.Slot > 0 {
		l.renewedAgenda()
	}
	l.agenda.change(tx, l.lane)
	return nil
}

// followUp queues the sends that stay in the space and wait for no time.
func (l *Ledger) followUp(sends []model.Send) {
	for i := range sends {
		if sends[i].To == l.replica.Space && sends[i].Slot == 0 {
			l.lane.Follow(sends[i].Event())
		}
	}
}

// letWait has an event of the lane wait for its time.
func (l *Ledger) letWait(ev *model.Event) Progress {
	err := l.mayWait(ev.NotBefore, 1)
	if err == nil {
		w := model.Waiting{
			ID: ev.ID, Stream: ev.Stream, Payload: ev.Payload, NotBefore: ev.NotBefore, Expires: ev.Expires,
			Slot: l.renewedAgenda().slot(0), Lane: ev.Lane, Position: ev.Position, Term: ev.Term, ReplayKey: ev.ReplayKey, Depth: ev.Depth, Trace: ev.Trace,
		}
		tx := model.Tx{N: l.NextTx(), By: receipts.LaterBy(ev.Stream), Later: &w}
		switch err = l.suffix.add(&tx, l.cfg.MaxCommitBytes); {
		case err == nil:
			l.host.Later(&w, tx.N)
			l.LetGo()
			l.lane.Take()
			l.agenda.change(&tx, l.lane)
			return Handled
		case errors.Is(err, ErrNoRoom):
			return Blocked
		}
	}
	return l.end(l.host.Unhandled(ev, receipts.Refused(ev, err.Error())))
}

// Record makes a transaction that answers no event, and returns its number. The host applies what it has
// written, by Note. The error is ErrNoRoom or ErrTooLarge.
func (l *Ledger) Record(d *Draft) (uint64, error) {
	tx := model.Tx{N: l.NextTx(), By: d.By, Writes: d.Writes, Group: d.Group}
	if err := l.join(&tx, d); err != nil {
		return 0, err
	}
	l.followUp(d.Sends)
	return tx.N, nil
}

// Direct notes that the latest transaction was made by the application: should it be undone, its number is
// among Dropped.Direct.
func (l *Ledger) Direct(tx uint64) { l.suffix.open.direct = append(l.suffix.open.direct, tx) }

// NextTx is a number for a transaction.
func (l *Ledger) NextTx() uint64 {
	l.suffix.lastTx++
	return l.suffix.lastTx
}

// Add makes a transaction that sends nothing, with a number of NextTx, part of the suffix.
func (l *Ledger) Add(tx *model.Tx) error { return l.suffix.add(tx, l.cfg.MaxCommitBytes) }

// Note takes in the value that a document has after the transactions that are made so far.
func (l *Ledger) Note(doc string, v model.Value) {
	l.suffix.note(doc, v)
	l.mayBeMarked = l.mayBeMarked || doc == CancelDoc
}
