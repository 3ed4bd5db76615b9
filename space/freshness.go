package space

import (
	"time"
)

// Freshness says how up to date a document is.
type Freshness struct {
	// Pending says that something which the document is computed from has yet to run, or
	// has yet to come from another space.
	Pending bool
	// Why says what that is. If nothing is pending, it says what cannot be helped by
	// waiting: a computation that fails or does not converge; "" if there is none.
	Why string
	// Until is the earliest time at which what Why names may run, as Settle counts it; 0 if
	// it waits for something else.
	Until time.Duration
}

// Freshness says how up to date a document is that is being observed: at the end of a
// Settle, that is whether its value follows from everything this runtime knows (compare
// what events wait for, in the package comment). Without an Observe it is pending.
func (s *Space) Freshness(id string) Freshness {
	o := s.observers[id]
	switch {
	case o == nil:
		return Freshness{Pending: true, Why: "nobody observes it"}
	case halted(s.ledger) != "":
		return Freshness{Pending: true, Why: "the space stands still: " + halted(s.ledger)}
	case s.graph.isStale(o.node):
		return s.pending(o.node)
	}
	return Freshness{Why: s.flaw(id)}
}

// pending finds what n waits for, as far upstream as can be: what is nearer waits for that.
func (s *Space) pending(n *node) (f Freshness) {
	f.Pending = true
	s.graph.upstream(n, func(at *node) {
		if !at.lacking() {
			return
		}
		switch f.Why, f.Until = at.shownAs()+" has yet to be computed", 0; {
		case at.waiting:
			f.Why = at.shownAs() + " waits for " + at.absentee()
		case at.held:
			f.Why, f.Until = at.shownAs()+" is held back ("+at.gateName()+")", at.eligibleAt()
		}
	})
	return f
}

// flaw returns why the value of a document is not what it should be, although nothing is pending.
func (s *Space) flaw(id string) (why string) {
	if len(s.graph.stale) == 0 && s.graph.failing == 0 {
		return ""
	}
	if d := s.graph.lookup(docKey{doc: id}); d != nil && d.writer != nil && d.writer.node.failed() {
		return couldNot(id, d.writer.node)
	}
	s.graph.upstream(s.observers[id].node, func(at *node) {
		switch {
		case why != "" || at.removed:
		case at.failed():
			why = couldNot(at.shownAs(), at)
		case at.status != Clean:
			why = at.shownAs() + " does not come to rest"
		}
	})
	return why
}

func couldNot(what string, n *node) string {
	return what + " could not be computed: " + n.more.lastErr.Error()
}

// upstream visits n and all that write what it reads, and so on, each once, nearer ones
// first.
func (g *graph) upstream(n *node, visit func(*node)) {
	seen, list := map[*node]bool{n: true}, []*node{n}
	for i := 0; i < len(list); i++ {
		visit(list[i])
		for _, d := range list[i].deps {
			d.eachWriter(true, func(w *surface) {
				if !seen[w.node] {
					seen[w.node] = true
					list = append(list, w.node)
				}
			})
		}
	}
}
