package space

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/ledger"
)

// A space can change its program while it is loaded (docs/adr/0026). The documents, the lane, the suffix and
// the log do not depend on the program, so they stay as they are, and the graph is adjusted to the new
// program as it is to the children that a run registers:
//
//	same id and shape            stays, with its reads and its readers; runs again if its
//	                             Version differs or is missing, or its last run failed
//	another shape, or new        is registered: it runs when something needs it
//	gone                         is removed; its writes stay
//	has made nodes               runs again to make the nodes of the new program; of
//	                             them, those of the same shape and Version do not run
//
// The change takes place between two groups, so that one program has made all transactions of a commit. If
// the sealed group is under way and is refused, the new program repeats its work.

// Change makes the space run another program from the next transaction on or, if there are unsealed
// transactions, as soon as they are sealed. If Change is called again before that, the last call counts. The
// documents and all waiting events stay. A handler that failed with a transient error is retried at once,
// with a new budget. Jobs get the new schedules.
//
// A node that Register has added is removed if the program has a node with its id or its output. A document
// that is no longer derived becomes an ordinary document with its last value.
func (s *Space) Change(p *Program) error {
	defer s.stepped()
	if s.graph.ticked {
		return fmt.Errorf("change to program %s: not from within a handler, a run or a hook", p.Name)
	}
	if err := p.check(); err != nil {
		return err
	}
	s.next = p
	s.turnOver()
	return nil
}

// Program returns the program that the space runs.
func (s *Space) Program() *Program { return s.handling.program }

func (s *Space) mayTurnOver() bool {
	return s.next != nil && s.ledger.Phase() != ledger.Refused && !s.ledger.Open()
}

// turnOver changes the program if that was requested and is possible now.
func (s *Space) turnOver() {
	if !s.mayTurnOver() {
		return
	}
	p := s.next
	if s.next = nil; p != s.handling.program {
		s.changeOver(p)
	}
}

func (s *Space) changeOver(p *Program) {
	info := ProgramInfo{Name: p.Name, Version: p.Version, Before: s.handling.program.Version}
	old := s.handling.program
	s.handling.program, s.handling.tasks, s.hooks.program = p, p.tasks, p.Name
	s.ledger.Runs(p.Version)
	s.jobs.specs, s.jobs.check = p.crons, true
	for id, o := range s.runner.observations.resumable { // any order: nodes are independent
		if o.Version == "" {
			delete(s.runner.observations.resumable, id) // its code is unknown
		}
	}
	info.Gone = s.graph.makeRoom(old, p)
	for _, spec := range p.nodes {
		switch n := s.graph.byID[spec.ID]; {
		case n == nil:
			s.graph.mustRegister(spec)
			info.New++
		case s.replace(n, spec):
			info.Changed++
		default:
			info.Kept++
		}
	}
	info.Makers = s.graph.rerunMakers()
	if f := s.cfg.Trace.Program; f != nil {
		f(info)
	}
}

// makeRoom removes nodes that the new program does not have, and nodes that conflict with its nodes.
func (g *graph) makeRoom(old, p *Program) (gone int) {
	wanted := make(map[string]*declaration, len(p.nodes))
	for _, spec := range p.nodes {
		wanted[spec.ID] = spec
	}
	for i := range g.nodes {
		n := g.nodes[i]
		if n == nil {
			continue // or it was removed with its maker
		}
		spec, output := wanted[n.id()], n.output()
		programs := n.parent() == nil && old.ids[n.id()]
		switch {
		case programs && spec != nil && fits(n, spec):
		case programs || spec != nil || output != "" && p.outputs[output] != "":
			if maker := n.parent(); maker != nil {
				maker.more.renewing = true
			}
			g.remove(n)
			if spec == nil {
				gone++
			}
		}
	}
	return gone
}

// fits reports whether a node can keep its id under another spec.
func fits(n *node, spec *declaration) bool {
	return sameShape(n.spec, spec) && (n.status != NeverRan || sameAddresses(n.spec.DeclaredReads, spec.DeclaredReads))
}

// mustRegister registers a node of a program. Its names were checked when it was added to the program, and no
// other node conflicts with it, so an error is a bug here.
func (g *graph) mustRegister(spec *declaration) {
	if _, err := g.register(spec, nil); err != nil {
		panic(fmt.Sprintf("space: change of program: %v", err))
	}
}

// replace gives a node another spec, and reports whether its code differs.
func (s *Space) replace(n *node, spec *declaration) (changed bool) {
	g, before := s.graph, n.spec
	n.spec = spec
	if spec.Gate != before.Gate {
		g.changeGate(n, func(gt *gate) { gt.apply(spec.Gate) })
		s.runner.observations.note(n)
	}
	switch changed = spec.Version == "" || spec.Version != before.Version; {
	case changed:
		g.renew(n, before)
	case n.failed():
		g.invalidate(n, causeFailed)
	}
	return changed
}

// Reasons for a run after a change of the program.
const (
	causeVersion = "version"
	causeProgram = "program"
	causeFailed  = "failed"
)

// renew makes a node run again because its code differs, and lifts its backoffs, which the previous code may
// have caused. If the node was last clean under this code and nothing has changed since, it is clean.
func (g *graph) renew(n *node, before *declaration) {
	x := n.ext()
	if x.cleanAs != "" && x.cleanAs == n.spec.Version && n.onlyBecause(causeVersion) {
		x.causes, x.cleanAs, x.gate.armed = nil, "", false
		g.setStatus(n, Clean)
		g.letGo(n)
		return
	}
	if n.status == Clean && len(x.children) == 0 && !x.renewing {
		x.cleanAs = before.Version
	}
	x.retries = 0
	n.resetBackoff()
	x.gate.givenUp = false
	if !n.onlyBecause(causeVersion) {
		g.invalidate(n, causeVersion)
	}
	g.regate(n)
}

// onlyBecause reports whether a node has exactly one cause.
func (n *node) onlyBecause(cause string) bool {
	c := n.causes()
	return n.status == Invalid && len(c.reads) == 0 && len(c.other) == 1 && c.other[0] == cause
}

// rerunMakers makes nodes that have made others run again: the others belong to the previous program until they
// are registered again. A maker that nothing needs runs once for that.
func (g *graph) rerunMakers() (makers int) {
	for _, n := range g.nodes {
		if n == nil || n.more == nil {
			continue
		}
		n.more.outdated = n.more.parent != nil
		if len(n.more.children) == 0 && !n.more.renewing {
			continue
		}
		makers++
		n.more.renewing = true
		if !slices.Contains(n.more.causes, causeProgram) {
			g.invalidate(n, causeProgram)
		}
		if !n.live {
			g.provide(n)
		}
	}
	return makers
}
