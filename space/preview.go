package space

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// A handler that has written and then reads what is derived from it gets the value that follows from its
// writes (docs/adr/0070). The computations that lead there are called over the documents as the handler leaves
// them; nothing else of these calls is kept. They are no runs: the nodes run after the handler, as for any
// change.

// preview has the results of such calls. The next write of the handler discards it.
type preview struct {
	of    *transaction
	calls map[*node]*outlook
	// open are the calls under way, and those of their circles, as in Tarjan's search for components.
	open []*outlook
}

// outlook is what is known of a node that a handler reads from.
type outlook struct {
	node *node
	// moved reports that a read of the node's last run has another value now, differs that its output has.
	moved, differs bool
	err            error
	index, low     int
	open           bool
}

// derive brings what a transaction is about to read in line with the handler's writes.
func (t *transaction) derive(d *doc, path model.Path, shallow bool) {
	if t.preview == nil {
		if t.node != nil || !t.hasReadersOfWrites() {
			return
		}
		t.preview, t.derived = &preview{of: t, calls: map[*node]*outlook{}}, map[*doc]model.Value{}
	}
	at := slices.Clone(path) // if path escaped, every caller of a read would have to allocate it
	probe := dep{node: t.node, doc: d, path: at, shallow: shallow}
	probe.eachWriter(true, func(s *surface) {
		if t.graph.isStale(s.node) {
			if of := t.preview.of; of.stale == nil && !of.lax {
				of.stale = s.node // the attempt is repeated when it is up to date
			}
			return
		}
		if err := t.preview.follow(s); err != nil {
			t.fail(fmt.Errorf("read %s%s, which follows from what the handler has written: %w", d.key, at, err))
		}
	})
}

// hasReadersOfWrites reports whether any node reads a document that the transaction has written.
func (t *transaction) hasReadersOfWrites() bool {
	return slices.ContainsFunc(t.after, func(w docValue) bool {
		return len(w.doc.readers) > 0 || t.graph.hasListingReaders(w.doc.key.doc)
	})
}

// follow brings what a node writes at a surface in line with the handler's writes. That can be had of outputs
// only: other writes are made by runs.
func (p *preview) follow(s *surface) error {
	c := p.settle(s.node)
	if c.err == nil && c.moved && s != &s.node.own {
		return fmt.Errorf("node %s writes there when it runs, which is after the handler; read it in a later event", s.node.id())
	}
	return c.err
}

// settle decides whether a node's output is another one, and calls its function if any of its reads has moved.
func (p *preview) settle(n *node) *outlook {
	if c := p.calls[n]; c != nil {
		return c
	}
	c := &outlook{node: n, index: len(p.calls), low: len(p.calls), open: true}
	p.calls[n] = c
	p.open = append(p.open, c)
	if c.err = p.existence(c); c.err == nil {
		c.moved, c.err = p.moved(c, n, func(*node) bool { return true })
	}
	round := c.low < c.index || p.open[len(p.open)-1] != c
	if c.moved && c.err == nil && !round && n.spec.Output != "" {
		c.differs, c.err = p.call(n)
	}
	if c.low == c.index {
		p.close(c, round)
	}
	return c
}

// close ends the search of a circle, or of a single node. In a circle every value depends on the others, so
// there is none before the runs if any of its nodes has to run.
func (p *preview) close(c *outlook, round bool) {
	at := slices.Index(p.open, c)
	circle := p.open[at:]
	moves := slices.ContainsFunc(circle, func(c *outlook) bool { return c.moved || c.err != nil })
	for _, c := range circle {
		c.open = false
		if round && moves && c.err == nil {
			c.err = fmt.Errorf("node %s is part of a circle, which comes to rest after the handler; read it in a later event", c.node.id())
		}
	}
	p.open = p.open[:at]
}

// existence returns an error if a maker of the node has to run for a reason other than its children: it may
// then remove the node, or replace its function.
func (p *preview) existence(c *outlook) error {
	for m := c.node.parent(); m != nil; m = m.parent() {
		moved, err := p.moved(c, m, func(writer *node) bool { return !writer.descends(m) })
		if err != nil {
			return err
		}
		if moved {
			return fmt.Errorf("node %s is made by node %s, which runs after the handler; read it in a later event", c.node.id(), m.id())
		}
	}
	return nil
}

// descends reports whether m made the node, directly or indirectly.
func (n *node) descends(m *node) bool {
	for n = n.parent(); n != nil; n = n.parent() {
		if n == m {
			return true
		}
	}
	return false
}

// moved reports whether a read of the last run of n has another value after the handler's writes, on behalf
// of c. from selects the writers that count.
func (p *preview) moved(c *outlook, n *node, from func(*node) bool) (moved bool, err error) {
	for _, d := range n.deps {
		if d.declared || d.doc.key.space != "" {
			continue
		}
		counts := true
		d.eachWriter(true, func(s *surface) {
			if err != nil || s.node == c.node {
				return
			}
			if counts = counts && from(s.node); !counts {
				return
			}
			of := p.settle(s.node)
			if of.open {
				c.low = min(c.low, of.low)
				return
			}
			err = p.follow(s)
		})
		if err != nil {
			return false, err
		}
		moved = moved || counts && differ(d.doc.value.At(d.path), p.of.current(d.doc).At(d.path), d.shallow)
	}
	return moved, nil
}

// call calls the function of a node over the handler's documents, and keeps its result for the handler's reads.
func (p *preview) call(n *node) (differs bool, err error) {
	core := p.of.core
	if core.nested >= maxNested {
		return false, fmt.Errorf("more than %d computations read each other for the first time; read it in a later event", maxNested)
	}
	core.nested++ // for a transaction of its own
	tx := core.begin(n)
	tx.rehearsal, tx.preview, tx.derived = true, p, p.of.derived
	for _, w := range p.of.after {
		tx.addPlace(w)
	}
	if f := core.cfg.Trace.PreviewBegan; f != nil {
		f(n.id())
	}
	v, err := callNode(n, tx)
	if f := core.cfg.Trace.PreviewEnd; f != nil {
		f(n.id())
	}
	core.nested--
	core.graph.stats.Previews++
	switch {
	case tx.missing != nil:
		if p.of.missing == nil {
			p.of.missing = tx.missing
		}
		return false, nil
	case err == nil:
		err = tx.err
	}
	if err != nil {
		return false, fmt.Errorf("node %s: %w", n.id(), err)
	}
	if model.Equal(n.own.doc.value, v) {
		return false, nil
	}
	p.of.derived[n.own.doc] = v
	return true, nil
}

// remakes returns an error for a child that the previewed run of a node would have to make first.
func (t *transaction) remakes(spec NodeSpec) error {
	n := t.graph.byID[spec.ID]
	switch {
	case n == nil || n.removed || n.parent() != t.node:
		return fmt.Errorf("node %s would be made, which happens after the handler; read what depends on it in a later event", spec.ID)
	case n.spec.Version != spec.Version:
		return fmt.Errorf("node %s would get another function, which happens after the handler; read what depends on it in a later event", spec.ID)
	}
	return nil
}
