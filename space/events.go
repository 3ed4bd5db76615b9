package space

import (
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// What becomes of an attempt that is rejected is told by the table in rejection.go. Besides
// that, an attempt may have to wait, without a trace: for a computation that is not up to
// date or a document that is not here, and for room in the commit. Nobody is answered by an
// attempt: it takes effect with its commit.
//
// A node's run that a refusal undoes is made again whatever was in the way (see revert). Its
// output shows the confirmed value until then.

// progress is what became of the event at the head of the lane.
type progress uint8

const (
	// idle: there is no event.
	idle progress = iota
	// handled: it has a receipt now.
	handled
	// blocked: it waits for a computation to run, a foreign document to arrive, a time,
	// or room in a commit.
	blocked
)

// dispatch handles the event at the head of the lane, if it can be (seed 001
// section 7.5).
//
// The consistency gate (I4): a handler must not act on a derived document that is
// not up to date. Which documents it reads is known by running it: an attempt
// that meets a stale computation is given up without a trace, the computation is
// demanded on the event's behalf, and the event stays at the head until it has
// run. The closure found that way is exact. first says that nothing has been handled
// since the last runs.
func (s *Space) dispatch(first bool) progress {
	ev := s.peek()
	if ev == nil {
		return idle
	}
	if rc := s.takenBack(ev); rc != nil {
		return s.endUnhandled(ev, rc, first)
	}
	if s.headWaits() {
		if err := s.overdue(); err != nil && !s.careWaits() {
			return s.giveUpWaiting(ev, err, first)
		}
		return blocked
	}
	if s.early(ev) {
		return s.letWait(ev, first)
	}
	if s.tooLate(ev) {
		return s.skip(ev)
	}
	if s.care.left > 0 {
		return s.handleWithCare(ev, first)
	}
	return s.handle(ev, first)
}

// peek is the event that this runtime is to handle next, or nil.
func (s *Space) peek() *model.Event {
	if s.cfg.WithoutEvents {
		return nil
	}
	return s.lane.Peek()
}

// handle makes one attempt at ev.
func (s *Space) handle(ev *model.Event, first bool) progress {
	var trace model.Trace
	if f := s.cfg.Trace.HandleStart; f != nil {
		trace = f(ev)
	} else {
		trace = ev.Trace
	}
	tx := s.begin(nil)
	tx.event = ev
	s.inv.attempt()
	rc, err := s.receipt(tx, ev)
	if late := s.cfg.Guard.returned(true); late != nil {
		tx.drop()
		rc, err = receipts.Failed(ev, late), late
	}
	if tx.stale != nil || tx.missing != nil {
		s.waitFor(tx)
		s.traceHandled(HandleInfo{Event: ev, Trace: trace, Waits: tx.waits(), Until: s.head.notBefore})
		return blocked
	}
	s.stats.Attempts++
	if err != nil {
		again := s.tryAgain(err)
		s.eventFailed(ev, tx, err, again)
		if again {
			s.putOff(ev)
			s.traceHandled(HandleInfo{Event: ev, Trace: trace, Err: err, Rejection: rejectionOf(err), Until: s.head.notBefore, Stack: tx.stack})
			return blocked
		}
	}
	return s.endEvent(tx, ev, rc, err, first, trace)
}

// endEvent makes the end of an event a transaction, and goes on to the next.
func (s *Space) endEvent(tx *Tx, ev *model.Event, rc *model.Receipt, err error, first bool, trace model.Trace) progress {
	if first {
		s.converged()
	}
	s.inv.handles(s, tx)
	s.setNext(tx, ev)
	if rc.Outcome != model.Handled {
		s.endTask(tx, ev, rc.Error)
	}
	if n := s.attempts(ev); n > 1 {
		rc.Attempts = n
	}
	n, ok := s.record(tx, ev, rc, trace)
	if !ok {
		s.traceHandled(HandleInfo{Event: ev, Trace: trace})
		return blocked
	}
	s.traceHandled(HandleInfo{
		Event: ev, Tx: n, Receipt: rc, Rejection: rejectionOfHandling(rc, err),
		Writes: tx.writes, Sends: tx.sends, Trace: trace, Stack: tx.stack,
	})
	s.endWait()
	s.lane.Take()
	s.follow(tx.sends)
	return handled
}

// tryAgain reports whether the attempt is to be made again after an error: it is said to
// be transient, and the budget is not used up.
func (s *Space) tryAgain(err error) bool {
	return rejectionOf(err).Consequences().Handler == AgainWithinBudget && s.head.attempts+1 < s.cfg.EventRetries
}

// putOff has the head wait before the next attempt, after an error that may pass.
func (s *Space) putOff(ev *model.Event) {
	s.head.of = keyOf(ev)
	s.head.attempts++
	s.head.notBefore = s.now + doubled(s.cfg.RetryMin, s.cfg.RetryMax, s.head.attempts)
}

func (s *Space) traceHandled(info HandleInfo) {
	if w := s.graph.watch; w != nil {
		w.handled(s, &info)
	}
	if f := s.cfg.Trace.HandleEnd; f != nil {
		f(info)
	}
}

// receipt runs the handler and says how the event ended, and with what error if that was
// the handler's. Writes and sends of a handler that did not succeed are dropped from tx.
func (s *Space) receipt(tx *Tx, ev *model.Event) (*model.Receipt, error) {
	if ev.Invalid != "" {
		return receipts.Refused(ev, ev.Invalid), nil
	}
	h := s.program.handler(ev.Stream)
	if h == nil {
		return receipts.Refused(ev, s.program.unhandled(ev.Stream)), nil
	}
	s.hand(ev)
	var given *model.Event // as it was: the handler may change what it is given
	if s.cfg.CheckIdempotency {
		given = new(s.handed)
	}
	v, err := callHandler(h, tx, &s.handed)
	if err == nil {
		err = tx.err
	}
	if err != nil {
		tx.drop()
		return receipts.Failed(ev, err), err
	}
	s.rehearse(h, tx, given, v)
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

// record adds the handling to the suffix and applies its writes. A handling that
// no commit could carry becomes a failed one. It reports false if the open group
// has no room for the handling, which must then be made again.
func (s *Space) record(tx *Tx, ev *model.Event, rc *model.Receipt, trace model.Trace) (n uint64, ok bool) {
	if err := s.documentsFit(tx); err != nil {
		s.dropHandling(tx, ev, err)
		*rc = *receipts.Failed(ev, err)
	}
	rec := model.Tx{N: s.nextTx(), By: receipts.By(ev.Stream), Receipt: rc, Writes: tx.writes, Trace: trace, Group: tx.group}
	s.inv.records(&rec)
	s.launch(&rec, tx)
	err := s.suffix.add(&rec, s.cfg.MaxCommitBytes)
	if errors.Is(err, errTxTooLarge) {
		s.registry.Revoke(rec.N)
		s.dropHandling(tx, ev, err)
		*rc = *receipts.Failed(ev, err)
		rec.Writes, rec.Sends, rec.Cancels, rec.Trace = tx.writes, nil, nil, model.Trace{}
		s.launch(&rec, tx)
		err = s.suffix.add(&rec, s.cfg.MaxCommitBytes)
	}
	switch {
	case errors.Is(err, ErrNoRoom):
		s.registry.Revoke(rec.N)
		return 0, false
	case err != nil:
		panic(fmt.Sprintf("space: a receipt alone does not fit into a commit: %v", err))
	}
	s.changeAgenda(&rec)
	for _, w := range tx.after {
		s.write(w, origin{group: tx.group, at: rec.N, paths: tx.pathsIn(w.doc)})
	}
	return rec.N, true
}

// dropHandling forgets what an attempt has done that no commit could carry.
func (s *Space) dropHandling(tx *Tx, ev *model.Event, err error) {
	tx.drop()
	s.setNext(tx, ev)
	s.endTask(tx, ev, err.Error())
}

// launch completes the sends of a transaction and ties them to it.
func (s *Space) launch(rec *model.Tx, tx *Tx) {
	s.placeLater(tx, rec)
	sends := tx.sends
	for i := range sends {
		sends[i].Trace = rec.Trace
		if sends[i].To == s.cfg.Space && sends[i].Slot == 0 {
			sends[i].Behind = s.lane.Seen()
		}
	}
	s.registry.Launch(s.txID(rec.N), sends)
	rec.Sends = sends
}

// follow queues the sends that stay in the space and wait for no time.
func (s *Space) follow(sends []model.Send) {
	for i := range sends {
		if sends[i].To == s.cfg.Space && sends[i].Slot == 0 {
			s.lane.Follow(sends[i].Event())
		}
	}
}

// head is what is known of the event at the head of the lane.
type head struct {
	of receipts.Key
	// nodes and docs are what it has been found to need, one attempt after the other.
	// All of it is kept up to date until the event is handled: if the first were let go
	// while the second is waited for, no attempt might ever meet both.
	nodes []*node
	docs  []*doc
	// attempts counts those that ended in a transient error, and notBefore is when the
	// next may be made.
	attempts  int
	notBefore time.Duration
	// awaits is a document of another space that is not here and that the event waits for, since
	// when it was found to.
	awaits *doc
	since  time.Duration
}

func keyOf(ev *model.Event) receipts.Key { return receipts.Key{Stream: ev.Stream, ID: ev.ID} }

// recheckHead lets go of what is known of the head if another event is in front now,
// because another runtime has handled it: its demand and its pauses are not those of the
// next one.
func (s *Space) recheckHead() {
	if ev := s.peek(); ev == nil || keyOf(ev) != s.head.of {
		s.endWait()
	}
}

func (s *Space) headWaits() bool {
	if s.head.notBefore > s.now {
		return true
	}
	for _, d := range s.head.docs {
		if !d.loaded {
			return true
		}
	}
	return slices.ContainsFunc(s.head.nodes, s.graph.isStale)
}

// waitFor keeps the head where it is until what the attempt lacked is there.
func (s *Space) waitFor(tx *Tx) {
	s.stats.Parked++
	h := &s.head
	h.of = keyOf(tx.event)
	switch {
	case tx.missing != nil:
		h.docs = append(h.docs, tx.missing)
		s.graph.needDoc(tx.missing, true)
	case !slices.Contains(h.nodes, tx.stale):
		h.nodes = append(h.nodes, tx.stale)
		s.graph.demandRun(tx.stale)
	}
	s.noteAwaited()
}

// endWait takes the event's demand back.
func (s *Space) endWait() {
	h := s.head
	s.head = head{}
	for _, d := range h.docs {
		s.graph.needDoc(d, false)
	}
	for _, n := range h.nodes {
		s.graph.releaseRun(n)
	}
}

// conflicts is how an event fares whose attempts another runtime's commits undo. It is
// kept over the refusal, unlike head.
type conflicts struct {
	event receipts.Key
	n     int
	since time.Duration
	// told says that the window has ended, which is reported once.
	told bool
}

// conflicted notes that an attempt at the head of the lane was undone by a refusal, and
// says when the next may be made: at once after the first, then later and later
// (DESIGN 5.6). Conflicts never use up the budget of retries. It is called at the next
// Settle, when the time is known.
func (s *Space) conflicted(ev *model.Event) {
	c := &s.conflicts
	if c.event != keyOf(ev) {
		*c = conflicts{event: keyOf(ev), since: s.now}
	}
	c.n++
	var wait time.Duration
	if c.n > 1 {
		wait = s.conflictPause(ev.ID, c.n)
	}
	if s.now-c.since >= s.cfg.ConflictWindow {
		wait = s.cfg.RetryMax
		if !c.told {
			c.told = true
			s.stats.Unconverged++
			s.report(ErrorInfo{Stream: ev.Stream, Event: ev.ID, Err: &ConvergenceError{Event: ev.ID, Conflicts: c.n}, Transient: true, Attempt: c.n})
		}
	}
	s.head.of, s.head.notBefore = keyOf(ev), s.now+wait
}

// conflictPause is how long to wait before the next attempt at what has met its n-th
// conflict, the second or a later one.
func (s *Space) conflictPause(id string, n int) time.Duration {
	wait := doubled(s.cfg.RetryMin, s.cfg.RetryMax, n-1)
	return wait - wait/4*time.Duration(jitter(s.cfg.Runtime, id, n))/256
}

// noteConflict takes in that a refusal has undone an attempt at the head of the lane.
func (s *Space) noteConflict() {
	if !s.upset {
		return
	}
	s.upset = false
	if ev := s.peek(); ev != nil {
		s.conflicted(ev)
	}
}

// jitter is a number below 256 that differs between runtimes, so that two that have met
// do not meet again, and is the same whenever it is asked for.
func jitter(runtime, event string, n int) uint8 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %s %d", runtime, event, n)
	return uint8(h.Sum32() >> 8)
}
