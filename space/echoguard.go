package space

import "slices"

// echoGuard slows down nodes that answer another runtime's writes with their own. It reports runs to the
// breaker and holds back the nodes that the breaker defers.
type echoGuard struct {
	breaker *echoBreaker
	graph   *graph
	hooks   *hooks
}

// note compares the documents that other runtimes changed before the run with what it did to them. after has
// the documents that the run is about to write.
func (e *echoGuard) note(n *node, after []docValue) {
	if n.more == nil || len(n.more.remote) == 0 {
		return
	}
	remote := n.more.remote
	n.more.remote = nil
	for _, d := range remote {
		if !slices.ContainsFunc(after, func(v docValue) bool { return v.doc == d }) {
			if c := e.breaker.quietRun(n.id(), d.key.doc); c != nil {
				e.over(*c)
			}
			continue
		}
		e.graph.stats.Echoes++
		trip, cleared := e.breaker.step(n.id(), d.key.doc, e.graph.now)
		if cleared != nil {
			e.over(*cleared)
		}
		e.hold(n)
		if trip {
			e.tripped(n, d)
		}
	}
}

func (e *echoGuard) hold(n *node) {
	n.more.gate.echoUntil, n.more.gate.echoSteps = e.breaker.deferredUntil(n.id()), e.breaker.stepsInForce(n.id())
}

func (e *echoGuard) tripped(n *node, d *doc) {
	e.hooks.report(ErrorInfo{Node: n.id(), Err: &EchoError{Node: n.id(), Doc: d.key.doc}, Attempt: int(n.runs)})
	if f := e.graph.trace.Echo; f != nil {
		f(EchoInfo{Node: n.id(), Doc: d.key.doc, Until: n.more.gate.echoUntil})
	}
}

func (e *echoGuard) over(c echoCleared) {
	if n := e.graph.byID[c.node]; n != nil && n.more != nil {
		e.hold(n)
		e.graph.regate(n)
	}
	if f := e.graph.trace.Echo; f != nil {
		f(EchoInfo{Node: c.node, Doc: c.doc, Cleared: c.reason})
	}
}

// sweep releases the nodes of pairs that have been quiet for long enough.
func (e *echoGuard) sweep() {
	for _, c := range e.breaker.sweep(e.graph.now) {
		e.over(c)
	}
}

// retire removes a node.
func (e *echoGuard) retire(n *node) {
	for _, c := range e.breaker.retire(n.id()) {
		e.over(c)
	}
}
