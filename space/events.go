package space

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space/inspect"
)

// What is done with the event at the head of the lane, package ledger decides (Ledger.Next). Here is what it
// needs of the space for that: the handlers, and the consistency gate.
//
// The consistency gate (I4): a handler must not act on a derived document that is not up to date. Which
// documents it reads is known by running it: an attempt that meets a stale computation is given up without a
// trace, the computation is demanded on the event's behalf, and the event stays at the head until it has
// run. The closure found that way is exact.
//
// What becomes of an attempt that is rejected, the table in rejection.go says. A node's run that a refusal
// undoes is made again whatever was in the way (see revert). Its output shows the confirmed value until then.

// ledgerHost is what the ledger needs of the space.
func (r *runner) ledgerHost() ledger.Host {
	return ledger.Host{
		Integrated: r.integrated,
		Attempt:    r.attempt, Unhandled: r.unhandled, Conclude: r.conclude, Fits: r.sizes.documentsFit,
		Recorded: r.recorded, Postponed: r.postponed, Failed: r.eventFailed, Lost: r.lost, Unconverged: r.unconverged,
		Lacks:   func() bool { return r.needs.lacks(r.graph) },
		Overdue: func() error { return r.needs.overdue(r.graph, r.documentWait()) },
		Release: func() { r.needs.release(r.graph) },
		Instead: r.skipped, Later: r.later,
	}
}

// documentWait is for how long the head waits for documents of other spaces, 0 for no end of it. What a
// runtime that is attached cannot read, the owner may.
func (r *runner) documentWait() time.Duration {
	if r.ledger.Role() == ledger.Attached {
		return 0
	}
	return r.cfg.DocumentWait
}

// attempt calls the handler of ev in a transaction.
func (r *runner) attempt(ev *model.Event) *ledger.Attempt {
	var trace model.Trace
	if f := r.cfg.Trace.HandleStart; f != nil {
		trace = f(ev)
	} else {
		trace = ev.Trace
	}
	tx := r.begin(nil)
	r.inv.attempt()
	a := &tx.attempt
	a.Event, a.Trace, a.MayPass = ev, trace, false
	a.Receipt, a.Err = r.callHandler(tx, ev)
	if late := r.cfg.Guard.returned(true); late != nil {
		tx.drop()
		a.Receipt, a.Err = receipts.Failed(ev, late), late
	}
	if a.Waits = tx.stale != nil || tx.missing != nil; !a.Waits && a.Err != nil {
		a.MayPass = rejectionOf(a.Err).Consequences().Handler == AgainWithinBudget
	}
	return a
}

// callHandler runs the handler and says how the event ended, and with what error if that was the
// handler's. Writes and sends of a handler that did not succeed are dropped from tx.
func (r *runner) callHandler(tx *Tx, ev *model.Event) (*model.Receipt, error) {
	if ev.Invalid != "" {
		return receipts.Refused(ev, ev.Invalid), nil
	}
	h := r.program.handler(ev.Stream)
	if h == nil {
		return receipts.Refused(ev, r.program.unhandled(ev.Stream)), nil
	}
	r.handed = r.jobs.seenBy(ev)
	var given *model.Event // as it was: the handler may change what it is given
	if r.cfg.CheckIdempotency {
		given = new(r.handed)
	}
	v, err := callHandler(h, tx, &r.handed)
	if err == nil {
		err = tx.err
	}
	if err != nil {
		tx.drop()
		return receipts.Failed(ev, err), err
	}
	r.rehearse(h, tx, given, v)
	return receipts.Handled(ev, v), nil
}

func callHandler(h Handler, tx *Tx, ev *model.Event) (v model.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			// The stack is for the host's log: it differs from run to run, and a receipt
			// is read by strangers.
			tx.stack = debug.Stack()
			err = fmt.Errorf("handler of %s panicked: %v", ev.Stream, p)
		}
	}()
	return h(tx, ev)
}

// unhandled begins the end of an event whose handler is not called. It takes the mark away by which the
// event was cancelled.
func (r *runner) unhandled(ev *model.Event, rc *model.Receipt) *ledger.Attempt {
	tx := r.begin(nil)
	a := &tx.attempt
	a.Event, a.Trace, a.Receipt, a.Err, a.MayPass, a.Waits = ev, ev.Trace, rc, nil, false, false
	if key := CancelKey(ev.Stream, ev.ID); rc.Outcome == model.Cancelled && !r.ledger.Value(CancelDoc).Get(key).IsAbsent() {
		tx.Delete(CancelDoc, key)
		if tx.err != nil { // a program that derives a document of that name keeps the mark
			tx.drop()
		}
	}
	return a
}

// conclude adds to the transaction that ends an event what belongs into it however the event has ended: the
// next time of a job, and the end of a task.
func (r *runner) conclude(a *ledger.Attempt, dropped bool) {
	tx := a.Context.(*Tx)
	if dropped {
		tx.drop()
	} else {
		if r.firstEvent {
			r.budgets.converged()
		}
		r.inv.handles(r, tx)
	}
	r.jobs.setNext(tx, a.Event)
	if a.Receipt.Outcome != model.Handled {
		r.endTask(tx, a.Event, a.Receipt.Error)
	}
}

// recorded applies what the transaction that ends an event has written.
func (r *runner) recorded(a *ledger.Attempt, n uint64) {
	tx := a.Context.(*Tx)
	r.applyWrites(tx, n)
	r.traceHandled(HandleInfo{
		Event: a.Event, Tx: n, Receipt: a.Receipt, Rejection: rejectionOfHandling(a.Receipt, a.Err),
		Writes: a.Writes, Sends: a.Sends, Trace: a.Trace, Stack: tx.stack,
	})
}

// applyWrites shows what a transaction of a handler or of the application has written.
func (r *runner) applyWrites(tx *Tx, n uint64) {
	for _, w := range tx.after {
		r.ledger.Note(w.doc.key.doc, w.value)
		r.graph.change(w.doc, w.value, origin{group: tx.attempt.Group, at: n, paths: tx.pathsIn(w.doc)})
	}
}

// postponed takes in that nothing is kept of an attempt for now. What it lacked is demanded until then.
func (r *runner) postponed(a *ledger.Attempt, why ledger.Postponement, until time.Duration) {
	tx := a.Context.(*Tx)
	info := HandleInfo{Event: a.Event, Trace: a.Trace, Until: until}
	switch why {
	case ledger.Parked:
		r.graph.stats.Parked++
		r.needs.add(r.graph, tx.missing, tx.stale, r.documentWait())
		info.Waits = tx.waits()
	case ledger.PutOff:
		info.Err, info.Rejection, info.Stack = a.Err, rejectionOf(a.Err), tx.stack
	}
	r.traceHandled(info)
}

func (r *runner) traceHandled(info HandleInfo) {
	if w := r.graph.recorder; w.On() {
		w.Ran(handleEntry(&info), info.Writes)
	}
	if f := r.cfg.Trace.HandleEnd; f != nil {
		f(info)
	}
}

// handleEntry is an attempt that has ended, for the recorder.
func handleEntry(info *HandleInfo) inspect.RunEntry {
	e := inspect.RunEntry{
		Stream: info.Event.Stream, Event: info.Event.ID, By: "handler of " + info.Event.Stream + ", event " + info.Event.ID,
		Tx: info.Tx, Waits: info.Waits, Err: info.Err,
	}
	if info.Receipt != nil {
		e.Outcome = info.Receipt.Outcome
	}
	return e
}

// eventFailed reports an attempt that ended in an error.
func (r *runner) eventFailed(a *ledger.Attempt, tries int, again bool) {
	r.hooks.report(ErrorInfo{
		Stream: a.Event.Stream, Event: a.Event.ID, Err: a.Err, Stack: a.Context.(*Tx).stack, Rejection: rejectionOf(a.Err),
		Transient: again, Attempt: tries,
	})
}

// lost is the error of an event whose handler is not called any more.
func (r *runner) lost(ev *model.Event, tries int, overran bool) error {
	if overran {
		return &LimitError{Stream: ev.Stream, Event: ev.ID, Limit: r.overruns.limit, Attempts: tries}
	}
	return &LostError{Event: ev.ID, Attempts: tries}
}

// unconverged reports an event that has met conflicts for too long.
func (r *runner) unconverged(ev *model.Event, conflicts int) {
	r.hooks.report(ErrorInfo{Stream: ev.Stream, Event: ev.ID, Err: &ConvergenceError{Event: ev.ID, Conflicts: conflicts}, Transient: true, Attempt: conflicts})
}

func (r *runner) later(w *model.Waiting, tx uint64) {
	if f := r.cfg.Trace.Later; f != nil {
		f(LaterInfo{Event: w.ID, Stream: w.Stream, NotBefore: w.NotBefore, Tx: tx})
	}
}

// skipped is the transaction that takes the place of the event of a job that is too late, nil for any other
// event.
func (r *runner) skipped(ev *model.Event) *ledger.Draft {
	if !r.jobs.tooLate(ev) {
		return nil
	}
	tx := r.begin(nil)
	tx.attempt.By = byCron
	r.jobs.skip(tx, ev)
	return &tx.attempt.Draft
}

// dispatchSome handles events until the lane is empty, its head must wait, or the
// commit is full.
func (r *runner) dispatchSome() int {
	n := 0
	for !r.ledger.Closed() && !r.ledger.Full() {
		r.firstEvent = n == 0
		if r.ledger.Next() != ledger.Handled {
			break
		}
		n++
	}
	return n
}

func (r *runner) addDirect(tx *Tx, by string) (uint64, error) {
	tx.attempt.By = by
	n, err := r.ledger.Record(&tx.attempt.Draft)
	if err != nil {
		return 0, err
	}
	r.ledger.Direct(n)
	if w := r.graph.recorder; w.On() {
		w.Wrote(by, n, tx.attempt.Writes)
	}
	r.applyWrites(tx, n)
	return n, nil
}
