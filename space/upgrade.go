package space

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/ledger"
)

// A space goes on with another program while it is awake (docs/adr/0026). Nothing of what a
// program is stands in the documents, the lane, the suffix or the log, so all of that stays
// as it is, and the graph is brought in line with the new program as it is with what a run
// has registered:
//
//	of the same id and shape     stays, with its reads and its readers; runs again if its
//	                             Version is another, or it has none, or its last run failed
//	of another shape, or new     is registered: it runs when something needs it
//	gone                         is removed; what it has written stays
//	has made nodes               runs again, so that those are of the new program, too; of
//	                             them, those of the same shape and Version do not
//
// The change takes place between two groups, so that every transaction of a commit was made
// by one program. The sealed group may be under way: if it is refused, its work is done again
// by the new program.

// Change has the space run another program from the next transaction on, or, if some are made
// and not sealed yet, as soon as they are. Of several that are asked for meanwhile, the last
// counts. The documents and all that waits stay. A handler that failed for a reason that may
// pass is tried again at once, with a new budget. Jobs get the new schedules.
//
// A node that Register has added is removed if the program has one of its id, or one with its
// output. A document that was derived, and is not any more, is an ordinary document from then
// on, with the value that it has.
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

// Program is the program that the space runs.
func (s *Space) Program() *Program { return s.handling.program }

// mayTurnOver reports whether a change has been asked for that can take place now.
func (s *Space) mayTurnOver() bool {
	return s.next != nil && s.ledger.Phase() != ledger.Refused && !s.ledger.Open()
}

// turnOver changes the program if that is to be and can be.
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
	s.ledger.LetGo() // the new handler says itself what it lacks
	s.jobs.specs, s.jobs.check = p.crons, true
	for id, o := range s.runner.observations.resumable { // any order: each by itself
		if o.Version == "" {
			delete(s.runner.observations.resumable, id) // there is no telling for what code it would hold
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
	info.Makers = s.graph.makeAnew()
	if f := s.cfg.Trace.Program; f != nil {
		f(info)
	}
}

// makeRoom removes what the new program does not have, and what would be in its way.
func (g *graph) makeRoom(old, p *Program) (gone int) {
	wanted := make(map[string]*declaration, len(p.nodes))
	for _, spec := range p.nodes {
		wanted[spec.ID] = spec
	}
	for i := range g.nodes {
		n := g.nodes[i]
		if n == nil {
			continue // or removed by now, with the one that had made it
		}
		spec, output := wanted[n.id()], n.spec.Output
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

// fits reports whether a node can go on with another spec of its id.
func fits(n *node, spec *declaration) bool {
	return sameShape(n.spec, spec) && (n.status != NeverRan || sameAddresses(n.spec.DeclaredReads, spec.DeclaredReads))
}

// mustRegister registers a node of a program. Its names were checked when it was added to the
// program, and there is room for it, so an error is a mistake here.
func (g *graph) mustRegister(spec *declaration) {
	if _, err := g.register(spec, nil); err != nil {
		panic(fmt.Sprintf("space: change of program: %v", err))
	}
}

// replace goes on with a node under another spec, and reports whether its code is another.
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

// Why a node runs again after a change of the program.
const (
	causeVersion = "version"
	causeProgram = "program"
	causeFailed  = "failed"
)

// renew has a node run again because its code is another, from a clean slate: what it is held
// back for, the former code may be to blame. If the code is the one again under which it was
// clean last, and nothing has changed since, it is clean.
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
	n.forgive()
	if !n.onlyBecause(causeVersion) {
		g.invalidate(n, causeVersion)
	}
	g.regate(n)
}

// onlyBecause reports whether a node is to run again for one reason, and no other.
func (n *node) onlyBecause(cause string) bool {
	c := n.causes()
	return n.status == Invalid && len(c.reads) == 0 && len(c.other) == 1 && c.other[0] == cause
}

// makeAnew has the nodes that have made others run again: those are the former program's until
// they are registered again. One that nothing needs runs once for that.
func (g *graph) makeAnew() (makers int) {
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
