package space

import (
	"fmt"
)

// A computation or effect may register further nodes while it runs, for instance one per row of a list or per
// device. Children that its next run registers again stay, and do not run because of that; the others are
// removed. So a run declares its children and the difference is applied, as with reads.
//
// None of this is in the log. To start something, a handler writes a document from which a node makes its
// children; so what an attempt starts is kept or undone together with what it wrote (I10), on every runtime.

// Node registers a child of the running node, which exists as long as its parent registers it in every run. A
// new child has provisional demand: it runs once, to show what it is for, and is dormant after that if
// nothing reads it. If another node has a child of this id, the child moves to this one.
//
// If the child exists already, its function is replaced. Variables that the function captures are not
// tracked, so it should read whatever may change, or get another Version. Its places are fixed; its kind may rise: a
// computation that is registered as an effect is one from then on, even if it is registered as a computation later
// (docs/adr/0081). As an effect it does not write its output, which stays.
func (h *Tx) Node(spec NodeSpec) {
	t := h.open()
	if t.err != nil || t.rehearsal {
		if t.preview != nil && t.err == nil {
			if err := t.remakes(spec); err != nil {
				t.fail(err)
			}
		}
		return
	}
	err := spec.check()
	if err == nil {
		err = t.register(spec.declare())
	}
	if err != nil {
		t.fail(fmt.Errorf("register node %q: %w", spec.ID, err))
	}
}

func (t *transaction) register(spec *declaration) error {
	if t.node == nil {
		return fmt.Errorf("nodes are made by computations and effects; write a document that one of them makes its children from")
	}
	p := t.node
	blueprint := p.ext().blueprint
	if blueprint == nil {
		blueprint = map[string]bool{}
		p.more.blueprint = blueprint
	}
	if blueprint[spec.ID] {
		return fmt.Errorf("this run has registered it already")
	}
	t.makeWay(spec)
	if n := t.graph.byID[spec.ID]; n != nil {
		if err := t.keep(n, spec); err != nil {
			return err
		}
		blueprint[spec.ID] = true
		return nil
	}
	n, err := t.graph.register(spec, p)
	if err != nil {
		return err
	}
	blueprint[spec.ID] = true
	t.made = append(t.made, n)
	if n.kind == Computation && n.status == NeverRan {
		t.graph.provide(n)
		t.graph.armGate(n)
	}
	return nil
}

// keep updates an existing child.
func (t *transaction) keep(n *node, spec *declaration) error {
	g := t.graph
	switch {
	case n == t.node || n.parent() == nil && !n.removedMeanwhile:
		return fmt.Errorf("a node of this id is there, and no other node has made it")
	case t.node.descendsFrom(n):
		return fmt.Errorf("it has made this node, directly or indirectly; no node can be its own maker")
	case !n.mayBecome(spec):
		return fmt.Errorf("it is there with other outputs, writes or envelope; those are fixed, use another id")
	}
	t.noteFormer(n)
	n.removedMeanwhile = false
	if n.more.parent != t.node {
		g.leaveParent(n)
		n.more.parent = t.node
		t.node.ext().children = append(t.node.more.children, n)
	}
	if spec.Gate != n.spec.Gate {
		g.changeGate(n, func(gt *gate) { gt.apply(spec.Gate) })
	}
	again := n.spec.Version != spec.Version || n.more.outdated && spec.Version == ""
	n.spec, n.more.outdated = spec, false
	if spec.Kind == Effect && n.kind != Effect {
		g.setKind(n, Effect)
		g.invalidate(n, "kind")
	}
	if again {
		g.invalidate(n, "version")
	}
	return nil
}

// mayBecome reports whether a node can be registered anew with a spec: its places stay, and its kind may rise from
// computation to effect.
func (n *node) mayBecome(spec *declaration) bool {
	same := sameAddresses(n.spec.Writes, spec.Writes) && sameAddresses(n.spec.Envelope, spec.Envelope)
	if spec.Kind == Effect {
		return same && !n.spec.Volatile
	}
	return same && n.output() == spec.Output && (n.spec.Volatile == spec.Volatile || n.kind == Effect && !spec.Volatile)
}

// noteFormer saves the state of a child for the case that the run fails.
func (t *transaction) noteFormer(n *node) {
	f := former{child: n, parent: n.more.parent, spec: n.spec, kind: n.kind, removedMeanwhile: n.removedMeanwhile, outdated: n.more.outdated}
	if f.parent != nil {
		f.parentRuns = f.parent.runs
	}
	t.kept = append(t.kept, f)
}

// descendsFrom reports whether a node was made by another, directly or indirectly.
func (n *node) descendsFrom(maker *node) bool {
	for p := n.parent(); p != nil; p = p.parent() {
		if p == maker {
			return true
		}
	}
	return false
}

// makeWay removes a node of the previous program if the new program registers it with another shape, or
// registers another node with its output.
func (t *transaction) makeWay(spec *declaration) {
	outdated := func(n *node) bool { return n.more != nil && n.more.outdated && !n.running && n != t.node }
	if n := t.graph.byID[spec.ID]; n != nil && outdated(n) && !t.node.descendsFrom(n) && !sameShape(n.spec, spec) {
		t.graph.remove(n)
	}
	if d := t.graph.local(spec.Output); d != nil && d.writer != nil {
		if n := d.writer.node; n.id() != spec.ID && outdated(n) && !t.node.descendsFrom(n) {
			t.graph.remove(n)
		}
	}
}
