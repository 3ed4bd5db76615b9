package space

import "slices"

// Whom the breaker of echo.go listens to, and what it holds back.

// noteRemote remembers that another runtime's commit has woken the node by a document
// that it may write itself. Most nodes never do.
func (n *node) noteRemote(d *doc) {
	mine := d.writer != nil && d.writer.node == n || slices.ContainsFunc(d.others, func(s *surface) bool { return s.node == n })
	if mine && !slices.Contains(n.ext().remote, d) {
		n.more.remote = append(n.more.remote, d)
	}
}

// noteEcho judges a run by what it did to the documents that others had changed: after
// are those that it is about to write.
func (s *Space) noteEcho(n *node, after []docValue) {
	if n.more == nil || len(n.more.remote) == 0 {
		return
	}
	remote := n.more.remote
	n.more.remote = nil
	for _, d := range remote {
		if !slices.ContainsFunc(after, func(v docValue) bool { return v.doc == d }) {
			if c := s.echo.quietRun(n.id(), d.key.doc); c != nil {
				s.echoOver(*c)
			}
			continue
		}
		s.stats.Echoes++
		trip, cleared := s.echo.step(n.id(), d.key.doc, s.graph.now)
		if cleared != nil {
			s.echoOver(*cleared)
		}
		n.more.gate.echoUntil = s.echo.deferredUntil(n.id())
		if trip {
			s.echoTripped(n, d)
		}
	}
}

func (s *Space) echoTripped(n *node, d *doc) {
	s.report(ErrorInfo{Node: n.id(), Err: &EchoError{Node: n.id(), Doc: d.key.doc}, Attempt: int(n.runs)})
	if f := s.cfg.Trace.Echo; f != nil {
		f(EchoInfo{Node: n.id(), Doc: d.key.doc, Until: n.more.gate.echoUntil})
	}
}

// EchoError says that a node and another runtime write a document in answer to each
// other, each time something else. The node is slowed down.
type EchoError struct{ Node, Doc string }

func (e *EchoError) Error() string {
	return "node " + e.Node + " and another runtime write " + e.Doc + " in answer to each other; it is slowed down. A node that writes what it reads must come to an end"
}

func (s *Space) echoOver(c echoCleared) {
	if n := s.graph.byID[c.node]; n != nil && n.more != nil {
		n.more.gate.echoUntil = s.echo.deferredUntil(c.node)
		s.graph.regate(n)
	}
	if f := s.cfg.Trace.Echo; f != nil {
		f(EchoInfo{Node: c.node, Doc: c.doc, Cleared: c.reason})
	}
}

// sweepEcho lets go of what has been quiet.
func (s *Space) sweepEcho() {
	for _, c := range s.echo.sweep(s.graph.now) {
		s.echoOver(c)
	}
}

// endEchoes forgets a node that goes.
func (s *Space) endEchoes(n *node) {
	for _, c := range s.echo.retire(n.id()) {
		s.echoOver(c)
	}
}
