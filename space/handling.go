package space

import (
	"errors"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space/inspect"
)

// Package ledger decides what to do with the event at the head of the lane (Ledger.Next). This file has the
// space's part: the handlers, and the consistency gate.
//
// The consistency gate (I4): a handler must not act on a derived document that is not up to date, and its
// reads are discovered by running it. An attempt that reads the output of a stale computation is abandoned
// without a trace; the event demands the computation and stays at the head until it has run. The dependencies
// found that way are exact.
//
// The table in rejection.go decides what happens to a rejected attempt. A node's run that a refusal undoes is
// always repeated (see revert); until then its output shows the confirmed value.

// handling calls the handlers of events, each in a transaction.
type handling struct {
	*transactions
	program    *Program
	sizes      *sizes
	budgets    *budgets
	rehearsals *rehearsals

	needs needs
	// limit is that of a handler that did not return in an earlier incarnation.
	limit  time.Duration
	handed model.Event // a copy for the handler
	// firstEvent reports that no event has been handled since nodes last ran.
	firstEvent bool
}

// ledgerHost returns the functions that the ledger calls.
func (h *handling) ledgerHost(integrated func(*model.Commit, []string) error) ledger.Host {
	return ledger.Host{
		Integrated: integrated,
		Attempt:    h.attempt, Unhandled: h.unhandled, Conclude: h.conclude,
		Fits:     func(d *ledger.Draft) error { return h.sizes.save(h.of(d)) },
		Recorded: h.recorded, Postponed: h.postponed, Failed: h.eventFailed, Lost: h.lost, Unconverged: h.unconverged,
		Lacks:   h.lacks,
		Overdue: func() error { return h.needs.overdue(h.graph, h.documentWait()) },
		Release: h.release,
		Instead: h.skipped, Later: h.later,
	}
}

// lacks reports whether the event at the head waits for documents or nodes.
func (h *handling) lacks() bool {
	if !h.needs.lacks(h.graph) {
		return false
	}
	p := &h.budgets.patience
	for _, n := range h.needs.nodes {
		p.tryAgain(n)
	}
	return !p.waits(h.needs.nodes) || h.needs.lacks(h.graph)
}

// release ends the demand of the event at the head.
func (h *handling) release() {
	h.budgets.patience.end()
	h.needs.release(h.graph)
}

// documentWait returns how long the event at the head waits for documents of other spaces, 0 for no limit. An
// attached runtime always waits, because the owner may be able to read them.
func (h *handling) documentWait() time.Duration {
	if h.ledger.Role() == ledger.Attached {
		return 0
	}
	return h.cfg.DocumentWait
}

// attempt calls the handler of ev in a transaction.
func (h *handling) attempt(ev *model.Event) *ledger.Attempt {
	var trace model.Trace
	if f := h.cfg.Trace.HandleStart; f != nil {
		trace = f(ev)
	} else {
		trace = ev.Trace
	}
	tx := h.begin(nil)
	h.inv.attempt()
	a := &tx.attempt
	a.Event, a.Trace, a.MayPass, a.Endless = ev, trace, false, false
	a.Receipt, a.Err = h.callHandler(tx, ev)
	if late := h.cfg.Guard.returned(true); late != nil {
		tx.drop()
		a.Receipt, a.Err = receipts.Failed(ev, late), late
	}
	if a.Waits = tx.stale != nil || tx.missing != nil; !a.Waits && a.Err != nil {
		then := rejectionOf(a.Err).consequences().handler
		a.MayPass, a.Endless = then == thenAgainWithinBudget || then == thenAgain, then == thenAgain
	}
	return a
}

// callHandler runs the handler and returns the event's receipt, and the handler's error if it returned one.
// If the handler did not succeed, its writes and sends are dropped from tx.
func (h *handling) callHandler(tx *transaction, ev *model.Event) (*model.Receipt, error) {
	if ev.Invalid != "" {
		return receipts.Refused(ev, ev.Invalid), nil
	}
	f := h.program.handler(ev.Stream)
	if f == nil {
		return receipts.Refused(ev, h.program.unhandled(ev.Stream)), nil
	}
	if h.program.internal[ev.Stream] && model.IsChosen(ev.ID) {
		return receipts.Rejected(ev, fromOutside(ev.Stream)), nil
	}
	h.handed = h.jobs.seenBy(ev)
	var given *model.Event // a copy, because the handler may change it
	if h.cfg.CheckIdempotency {
		given = new(h.handed)
	}
	v, err := callHandler(f, tx, &h.handed)
	if tx.err != nil && (err == nil || rejectionOf(tx.err) == ByVersion) {
		err = tx.err // a handler that goes on knows nothing of the document, and its answer is void
	}
	if err != nil {
		tx.drop()
		if no := (*receipts.Rejection)(nil); errors.As(err, &no) && rejectionOf(err) == ByHandler {
			return receipts.Rejected(ev, no), nil
		}
		return receipts.Failed(ev, err), err
	}
	h.rehearsals.rehearse(f, tx, given, v)
	return receipts.Handled(ev, v), nil
}

// fromOutside returns the rejection of an event that a client has sent on an internal stream.
func fromOutside(stream string) *receipts.Rejection {
	return &receipts.Rejection{Code: model.InternalStream, Message: "a client has sent the event, and only handlers and timers of spaces send on stream " + stream}
}

// unhandled begins the transaction that ends an event without calling its handler. It removes the mark of a
// cancelled event.
func (h *handling) unhandled(ev *model.Event, rc *model.Receipt) *ledger.Attempt {
	tx := h.begin(nil)
	a := &tx.attempt
	a.Event, a.Trace, a.Receipt, a.Err, a.MayPass, a.Endless, a.Waits = ev, ev.Trace, rc, nil, false, false, false
	if key := CancelKey(ev.Stream, ev.ID); rc.Outcome == model.Cancelled && !h.ledger.Value(CancelDoc).Get(key).IsAbsent() {
		tx.delete(CancelDoc, key)
		if tx.err != nil { // a program that derives a document of this name keeps the mark
			tx.drop()
		}
	}
	return a
}

// conclude completes the transaction that ends an event, whatever the outcome: it sets the next time of a
// job, and ends a task.
func (h *handling) conclude(a *ledger.Attempt, dropped bool) {
	tx := h.of(&a.Draft)
	if dropped {
		tx.drop()
	} else {
		if h.firstEvent {
			h.budgets.converged()
		}
		h.inv.handles(a.Event)
	}
	h.jobs.setNext(&tx.attempt.Draft, a.Event)
	if out := a.Receipt.Outcome; out == model.Failed || out != model.Handled && !model.IsChosen(a.Event.ID) {
		// What a client has sent changes nothing unless its handler was called: it may have had no right to send it.
		tx.endTask(h.sizes, a.Event, receipts.Reason(a.Receipt), a.Receipt.Outcome == model.Cancelled)
	}
	h.traceSends(a)
}

// traceSends sets the trace context of what an event sends, if it is not that of its transaction.
func (h *handling) traceSends(a *ledger.Attempt) {
	f := h.cfg.Trace.Sends
	if f == nil || len(a.Sends) == 0 {
		return
	}
	t := f(a.Event, a.Trace)
	for i := range a.Sends {
		a.Sends[i].Trace = t
	}
}

// recorded applies the writes of the transaction that ended an event.
func (h *handling) recorded(a *ledger.Attempt, n uint64) {
	tx := h.of(&a.Draft)
	h.applyWrites(tx, n)
	h.traceHandled(HandleInfo{
		Event: a.Event, Tx: n, Receipt: a.Receipt, Rejection: rejectionOfHandling(a.Receipt, a.Err),
		Writes: a.Writes, Sends: a.Sends, Trace: a.Trace, Stack: tx.stack, Notes: tx.notes,
	})
}

// applyWrites applies the writes of a transaction of a handler or of the application.
func (h *handling) applyWrites(tx *transaction, n uint64) {
	for _, w := range tx.after {
		h.ledger.Note(w.doc.key.doc, w.value)
		h.graph.change(w.doc, w.value, origin{group: tx.attempt.Group, at: n, paths: pathsIn(tx.attempt.Writes, w.doc)})
	}
}

// postponed abandons an attempt for now. What it lacked is demanded until the next one.
func (h *handling) postponed(a *ledger.Attempt, why ledger.Postponement, until time.Duration) {
	tx := h.of(&a.Draft)
	info := HandleInfo{Event: a.Event, Trace: a.Trace, Until: until}
	switch why {
	case ledger.Parked:
		h.graph.stats.Parked++
		h.needs.add(h.graph, tx.missing, tx.stale, h.documentWait())
		if tx.missing == nil {
			h.budgets.patience.tryAgain(tx.stale)
		}
		info.Waits = tx.waits()
	case ledger.PutOff:
		info.Err, info.Rejection, info.Stack = a.Err, rejectionOf(a.Err), tx.stack
	}
	h.traceHandled(info)
}

func (h *handling) traceHandled(info HandleInfo) {
	if w := h.graph.recorder; w.On() {
		w.Ran(handleEntry(&info), info.Writes)
	}
	if f := h.cfg.Trace.HandleEnd; f != nil {
		f(info)
	}
}

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

// eventFailed reports an attempt that returned an error.
func (h *handling) eventFailed(a *ledger.Attempt, tries int, again bool) {
	h.hooks.report(ErrorInfo{
		Stream: a.Event.Stream, Event: a.Event.ID, Err: a.Err, Stack: h.of(&a.Draft).stack, Rejection: rejectionOf(a.Err),
		Transient: again, Attempt: tries,
	})
}

// lost returns the error for an event whose handler is not called again, because too many attempts were lost.
func (h *handling) lost(ev *model.Event, tries int, overran bool) error {
	if overran {
		return &LimitError{Stream: ev.Stream, Event: ev.ID, Limit: h.limit, Attempts: tries}
	}
	return &LostError{Event: ev.ID, Attempts: tries}
}

// unconverged reports an event that met conflicts for too long.
func (h *handling) unconverged(ev *model.Event, conflicts int) {
	h.hooks.report(ErrorInfo{Stream: ev.Stream, Event: ev.ID, Err: &ConvergenceError{Event: ev.ID, Conflicts: conflicts}, Transient: true, Attempt: conflicts})
}

func (h *handling) later(w *model.Waiting, tx uint64) {
	if f := h.cfg.Trace.Later; f != nil {
		f(LaterInfo{Event: w.ID, Stream: w.Stream, NotBefore: w.NotBefore, Tx: tx})
	}
}

// skipped returns the transaction that skips a job's event that is too late, nil for any other event.
func (h *handling) skipped(ev *model.Event) *ledger.Draft {
	if !h.jobs.tooLate(ev) {
		return nil
	}
	tx := h.begin(nil)
	tx.attempt.By = byCron
	h.jobs.skip(&tx.attempt.Draft, ev)
	return &tx.attempt.Draft
}

// dispatchSome handles events until the lane is empty, its head must wait, or the commit is full.
func (h *handling) dispatchSome() int {
	n := 0
	for !h.ledger.Closed() && !h.ledger.Full() {
		h.firstEvent = n == 0
		if h.ledger.Next() != ledger.Handled {
			break
		}
		n++
	}
	return n
}

func (h *handling) addDirect(tx *transaction, by string) (uint64, error) {
	tx.attempt.By, tx.attempt.Direct = by, true
	n, err := h.ledger.Record(&tx.attempt.Draft)
	if err != nil {
		return 0, err
	}
	if w := h.graph.recorder; w.On() {
		w.Wrote(by, n, tx.attempt.Writes)
	}
	h.applyWrites(tx, n)
	return n, nil
}
