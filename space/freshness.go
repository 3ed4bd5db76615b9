package space

import (
	"time"
)

// Freshness describes how up to date a document is.
type Freshness struct {
	// Pending reports that something upstream of the document has yet to run, or has yet to arrive from
	// another space.
	Pending bool
	// Reason is the reason, "" if there is none. If nothing is pending, it is a problem that waiting does not
	// solve: a computation that fails or does not converge.
	Reason string
	// Until is the earliest time at which the node in Why may run, on the clock of Settle; 0 if it does not
	// wait for a time.
	Until time.Duration
}

// Freshness returns how up to date an observed document is at the end of a Settle: whether its value follows
// from everything that this runtime knows. Events wait for the same condition (see "The consistency gate" in
// the package comment). A document that is not observed is pending.
func (s *Space) Freshness(id string) Freshness {
	o := s.observers[id]
	switch {
	case o == nil:
		return Freshness{Pending: true, Reason: "it is not observed"}
	case halted(s.ledger) != "":
		return Freshness{Pending: true, Reason: "the space is paused: " + halted(s.ledger)}
	case s.graph.isStale(o.node):
		return s.pending(o.node)
	}
	return Freshness{Reason: s.flaw(id)}
}

// pending finds the most distant upstream node that n waits for.
func (s *Space) pending(n *node) (f Freshness) {
	f.Pending = true
	s.graph.upstream(n, func(at *node) {
		if !at.worthWaitingFor() {
			return
		}
		switch f.Reason, f.Until = at.shownAs()+" has yet to be computed", 0; {
		case at.waiting:
			f.Reason = at.shownAs() + " waits for " + at.absentee()
		case at.held:
			f.Reason, f.Until = at.shownAs()+" is held back ("+at.gateName()+")", at.eligibleAt()
		}
	})
	return f
}

// flaw returns why the value of a document is wrong although nothing is pending, "" if it is not.
func (s *Space) flaw(id string) (why string) {
	if len(s.graph.stale) == 0 && s.graph.failures.all == 0 && len(s.rounds.held) == 0 {
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
		default:
			if d := s.rounds.holds(at); d != nil {
				why = "a newer value of " + d.key.String() + " is held back, because it follows from this space in a circle"
			}
		}
	})
	return why
}

func couldNot(what string, n *node) string {
	return what + " could not be computed: " + n.more.lastErr.Error()
}

// upstream visits n and all direct and indirect writers of its reads, once each, nearer ones first.
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
