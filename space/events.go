package space

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// progress is what became of the event at the head of the lane.
type progress uint8

const (
	// idle: there is no event.
	idle progress = iota
	// handled: it has a receipt now.
	handled
	// blocked: it waits for a computation to run, a foreign document to arrive, or
	// room in a commit.
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
	ev := s.lane.Peek()
	if ev == nil {
		return idle
	}
	if s.headWaits() {
		return blocked
	}
	return s.handle(ev, first)
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
	rc := s.receipt(tx, ev)
	if tx.stale != nil || tx.missing != nil {
		s.waitFor(tx)
		s.traceHandled(HandleInfo{Event: ev, Trace: trace, Waits: tx.waits()})
		return blocked
	}
	if first {
		s.converged()
	}
	n, ok := s.record(tx, ev, rc, trace)
	if !ok {
		s.traceHandled(HandleInfo{Event: ev, Trace: trace})
		return blocked
	}
	s.stats.count(rc.Outcome)
	s.traceHandled(HandleInfo{Event: ev, Tx: n, Receipt: rc, Sends: tx.sends, Trace: trace, Stack: tx.stack})
	s.endWait()
	s.lane.Take()
	s.follow(tx.sends)
	return handled
}

func (s *Space) traceHandled(info HandleInfo) {
	if f := s.cfg.Trace.HandleEnd; f != nil {
		f(info)
	}
}

// receipt runs the handler and says how the event ended. Writes and sends of a
// handler that did not succeed are dropped from tx.
func (s *Space) receipt(tx *Tx, ev *model.Event) *model.Receipt {
	if ev.Invalid != "" {
		return receipts.Refused(ev, ev.Invalid)
	}
	h := s.program.handlers[ev.Stream]
	if h == nil {
		return receipts.Refused(ev, fmt.Sprintf("program %s has no handler for stream %s", s.program.Name, ev.Stream))
	}
	s.handed = *ev // the lane's own is not the handler's to change
	v, err := callHandler(h, tx, &s.handed)
	if err == nil {
		err = tx.err
	}
	if err != nil {
		tx.drop()
		return receipts.Failed(ev, err)
	}
	return receipts.Handled(ev, v)
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
		tx.drop()
		*rc = *receipts.Failed(ev, err)
	}
	rec := model.Tx{N: s.nextTx(), By: receipts.By(ev.Stream), Receipt: rc, Writes: tx.writes, Trace: trace}
	for i := range tx.sends {
		tx.sends[i].Trace = trace
		if tx.sends[i].To == s.cfg.Space {
			tx.sends[i].Behind = s.lane.Seen()
		}
	}
	s.registry.Launch(s.txID(rec.N), tx.sends)
	rec.Sends = tx.sends
	err := s.suffix.add(&rec, s.cfg.MaxCommitBytes)
	if errors.Is(err, errTxTooLarge) {
		s.registry.Revoke(rec.N)
		tx.drop()
		*rc = *receipts.Failed(ev, err)
		rec.Writes, rec.Sends, rec.Trace = nil, nil, model.Trace{}
		err = s.suffix.add(&rec, s.cfg.MaxCommitBytes)
	}
	switch {
	case errors.Is(err, errNoRoom):
		s.registry.Revoke(rec.N)
		return 0, false
	case err != nil:
		panic(fmt.Sprintf("space: a receipt alone does not fit into a commit: %v", err))
	}
	for _, w := range tx.after {
		s.write(w, nil)
	}
	return rec.N, true
}

// follow queues the sends that stay in the space.
func (s *Space) follow(sends []model.Send) {
	for i := range sends {
		if sends[i].To == s.cfg.Space {
			s.lane.Follow(sends[i].Event())
		}
	}
}

// head is what the event at the head of the lane has been found to need, one attempt
// after the other. All of it is kept up to date until the event is handled: if the
// first were let go while the second is waited for, no attempt might ever meet both.
type head struct {
	nodes []*node
	docs  []*doc
}

func (s *Space) headWaits() bool {
	for _, d := range s.head.docs {
		if !d.loaded {
			return true
		}
	}
	for _, n := range s.head.nodes {
		if s.graph.staleUpstream(n.output) != nil {
			return true
		}
	}
	return false
}

// waitFor keeps the head where it is until what the attempt lacked is there.
func (s *Space) waitFor(tx *Tx) {
	s.stats.Parked++
	h := &s.head
	switch {
	case tx.missing != nil:
		h.docs = append(h.docs, tx.missing)
		s.graph.addRef(tx.missing)
	case !slices.Contains(h.nodes, tx.stale):
		h.nodes = append(h.nodes, tx.stale)
		s.graph.demandRun(tx.stale)
	}
}

// endWait takes the event's demand back.
func (s *Space) endWait() {
	h := s.head
	s.head = head{}
	for _, d := range h.docs {
		s.graph.dropRef(d)
	}
	for _, n := range h.nodes {
		s.graph.releaseRun(n)
	}
}

// backoff is how long a node waits after its streak-th exhausted pass in a row.
func (s *Space) backoff(streak int) time.Duration {
	d := s.cfg.BackoffMin
	for range streak - 1 {
		d = min(2*d, s.cfg.BackoffMax)
	}
	return d
}
