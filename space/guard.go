package space

import (
	"fmt"
	"slices"
	"time"
)

// Guard is how a host watches over the code of the application: the core has no clock, and
// cannot go on while code that it has called does not return. A host that gives such code up
// gives up the whole Space with it, and makes another one out of the log; what the code does
// then, it does to a space that appends nothing any more (docs/adr/0034). What the functions
// answer is an input, like the time. All of it is optional.
type Guard struct {
	// Used is called whenever code uses its transaction. It may end the goroutine there, of a
	// space that is given up, and else does nothing.
	Used func()
	// Returned is called when a handler, or a node, has come back, or an attempt has ended
	// without one having been called. The error, of a handler, is what the attempt ends in
	// instead of what it has returned.
	Returned func(handler bool) error
	// Host is what Tx.Host returns.
	Host any
}

func (g *Guard) returned(handler bool) error {
	if g.Returned == nil {
		return nil
	}
	return g.Returned(handler)
}

func (t *Tx) used() {
	if f := t.core.cfg.Guard.Used; f != nil {
		f()
	}
}

// Host is what the runtime offers around the transaction, for layers above; nil if that is
// nothing.
func (t *Tx) Host() any { return t.core.cfg.Guard.Host }

// LimitError says that a handler or a node did not return within its limit.
type LimitError struct {
	// Stream and Event are those of the handler, or Node is the node.
	Stream, Event string
	Node          string
	Limit         time.Duration
	// Attempts is how many there were that never returned; 0 for one that has, too late.
	Attempts int
}

func (e *LimitError) Error() string {
	if e.Node != "" {
		return fmt.Sprintf("node %s has not returned within %s and is given up; its document stays as it was. What takes long belongs in an action or an input", e.Node, e.Limit)
	}
	attempts := ""
	if e.Attempts > 0 {
		attempts = fmt.Sprintf(" in any of %d attempts", e.Attempts)
	}
	return fmt.Sprintf("event %s: the handler of stream %s has not returned within %s%s. What takes long belongs in an action, whose end is an event; settle.Within gives a handler another limit", e.Event, e.Stream, e.Limit, attempts)
}

// Overrun is code that an earlier life of the space, in this process, was given up for, as it
// did not return.
type Overrun struct {
	// Stream and Event are those of the handler, or Node is the node.
	Stream, Event string
	Node          string
	Limit         time.Duration
	// Until is the time before which a node is not run again.
	Until time.Duration
}

// Overran tells the space of code that did not return, before it takes over. An event whose
// handler that was counts one more attempt that never came back (Config.LostAttempts). A node
// is held back, and nobody waits for it meanwhile: they have what it wrote last.
func (s *Space) Overran(o Overrun) {
	if o.Node == "" {
		s.runner.overruns.limit = o.Limit
		s.ledger.Overran(o.Stream, o.Event)
		return
	}
	s.graph.arrival = s.arrived
	s.runner.overruns.note(o)
}

// overruns is what is known of code that did not return in an earlier life.
type overruns struct {
	graph *graph
	hooks *hooks
	// limit is that of the handler, which package ledger knows.
	limit time.Duration
	// nodes have not been registered yet, resting are those that are held back for it.
	nodes   map[string]Overrun
	resting []*node
}

func (r *overruns) note(o Overrun) {
	if r.nodes == nil {
		r.nodes = map[string]Overrun{}
	}
	r.nodes[o.Node] = o
	if n := r.graph.byID[o.Node]; n != nil {
		r.hold(n)
	}
}

// arrived takes in that a node was registered of which something is known from before.
func (s *Space) arrived(n *node) {
	s.runner.observations.resumeChild(n)
	s.runner.overruns.hold(n)
}

// hold holds a node back that did not return.
func (r *overruns) hold(n *node) {
	o, did := r.nodes[n.id()]
	if !did {
		return
	}
	delete(r.nodes, n.id())
	err := &LimitError{Node: o.Node, Limit: o.Limit}
	r.graph.setErr(n, err)
	r.graph.changeGate(n, func(gt *gate) { gt.backoffUntil, gt.streak = o.Until, patience })
	r.resting = append(r.resting, n)
	r.hooks.report(ErrorInfo{Node: o.Node, Err: err, Rejection: ByTransientError, Transient: true})
}

// endRests has events wait again for nodes that may run again.
func (r *overruns) endRests() {
	r.resting = slices.DeleteFunc(r.resting, func(n *node) bool {
		over := n.removed || n.more.gate.backoffUntil <= r.graph.now
		if over && !n.removed {
			n.more.gate.streak = 0
		}
		return over
	})
}

// Within limits how long the handler of a stream may take; negative for no limit. Without,
// the host says how long.
func (p *Program) Within(stream string, d time.Duration) error {
	if d == 0 {
		return fmt.Errorf("program %s: stream %s: a limit of 0 leaves no time at all; a negative one stands for none", p.Name, stream)
	}
	if p.handlers[stream] == nil {
		return fmt.Errorf("program %s: stream %s has no handler to limit; register it first", p.Name, stream)
	}
	if p.limits == nil {
		p.limits = map[string]time.Duration{}
	}
	p.limits[stream] = d
	return nil
}

// HandlerLimit is the limit of a stream's handler, negative for none, 0 if the program says
// nothing of it.
func (p *Program) HandlerLimit(stream string) time.Duration { return p.limits[stream] }
