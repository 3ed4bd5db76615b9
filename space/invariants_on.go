//go:build invariants

package space

import (
	"fmt"
	"strings"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// invariants checks I1 to I9 after every step of every space, in a program that is built with the tag of this
// name. A violation panics: there is no valid state to continue from. The checks examine everything at every
// step, so they are for tests.
type invariants struct {
	// seen has the values that the last completed run of each node read.
	seen map[*node][]seenValue
	// handlerReads are the addresses that the current attempt has read.
	handlerReads []*dep
	steps        int
}

const checking = true

type seenValue struct {
	dep   *dep
	value model.Value
}

func violated(id, format string, args ...any) {
	panic("invariant " + id + ": " + fmt.Sprintf(format, args...))
}

// manyNodes is the size from which a space is checked only after every n-th step, where n is its number of
// nodes: otherwise the total cost would be quadratic.
const manyNodes = 200

// step is called at the end of every input.
func (v *invariants) step(g *graph, l *ledger.Ledger, idle bool) {
	if n := len(g.nodes); n > manyNodes {
		if v.steps++; v.steps%n != 0 {
			return
		}
	}
	if wrong := g.audit(); len(wrong) > 0 {
		violated("I2, I9", "%s", strings.Join(wrong, "; "))
	}
	v.overlay(g, l)
	if !l.Closed() && l.Running() && idle {
		v.atRest(g)
	}
}

// overlay checks that each document shows the replica with the suffix over it, or, if it is volatile, the
// result of its node (I7: nothing else decides its value after a restart).
func (v *invariants) overlay(g *graph, l *ledger.Ledger) {
	for id, d := range g.docs { // any order: documents are independent
		if d.isVolatile() {
			continue
		}
		if d.key.isListing() {
			if want := g.list(id); !model.Equal(d.value, want) {
				violated("I1", "listing %s shows %s; the documents say %s", id, d.value, want)
			}
			continue
		}
		want := l.Value(id)
		if !model.Equal(d.value, want) {
			violated("I7", "document %s shows %s; the log and the undecided transactions say %s", id, d.value, want)
		}
	}
}

// atRest checks that every live node has read the present values (I1). Its own writes are excepted
// (docs/adr/0007), and so is a held node that nothing waits for.
func (v *invariants) atRest(g *graph) {
	for _, n := range g.nodes {
		if n == nil || !n.live || n.held {
			continue
		}
		if n.status != Clean {
			violated("I1", "live node %s is %s at rest", n.id(), n.status)
		}
		for _, seen := range v.seen[n] {
			d := seen.dep
			if d.indexed && !n.mayWriteAt(d.doc, d.path) && !v.mayReach(n, d) && differ(seen.value, d.doc.value.At(d.path), d.shallow) {
				violated("I1", "live node %s saw %s at %s, where %s is now", n.id(), seen.value, d, d.doc.value.At(d.path))
			}
		}
	}
}

// mayReach reports whether the node may write inside the place that d reads.
func (v *invariants) mayReach(n *node, d *dep) bool {
	reach := n.spec.Group != "" // a node is not notified of changes by its own group
	n.eachSurface(true, func(s *surface) { reach = reach || s.doc == d.doc && s.overlaps(d) })
	return reach
}

// runs is called when a run begins; nested is the number of enclosing runs, and caused reports whether the
// run has causes.
func (v *invariants) runs(g *graph, b *budgets, n *node, nested int, caused bool) {
	if nested == 0 && !n.live {
		violated("I2", "dormant node %s runs", n.id())
	}
	_, completed := v.seen[n]
	if completed && !caused && (n.more == nil || n.more.retries == 0) {
		violated("I3", "node %s runs again, and nothing that it read has changed", n.id())
	}
	if int(n.passRuns) > b.cfg.RunBudget {
		violated("I6", "node %s has run %d times in this pass, %d are allowed", n.id(), n.passRuns, b.cfg.RunBudget)
	}
	if nested == 0 {
		v.order(g, b, n)
	}
}

// order checks that no node that n reads from has yet to run in this sweep (I9).
func (v *invariants) order(g *graph, b *budgets, n *node) {
	for _, d := range n.deps {
		if !d.indexed || d.back {
			continue
		}
		d.eachWriter(true, func(w *surface) {
			m := w.node
			if m.due() && m.queued && m.height > g.queue.at && b.mayRun(m) && !m.materializer() {
				violated("I9", "node %s runs before %s, which it reads from", n.id(), m.id())
			}
		})
	}
}

// ran is called when a run has ended.
func (v *invariants) ran(n *node) {
	if v.seen == nil {
		v.seen = map[*node][]seenValue{}
	}
	seen := v.seen[n][:0]
	for _, d := range n.deps {
		seen = append(seen, seenValue{d, d.doc.value.At(d.path)})
	}
	v.seen[n] = seen
	if n.removed {
		delete(v.seen, n)
	}
}

// undone is called when a run was undone: its reads do not count.
func (v *invariants) undone(n *node) { delete(v.seen, n) }

// attempt is called when an attempt at an event begins.
func (v *invariants) attempt() { v.handlerReads = v.handlerReads[:0] }

// wrote is called when a run's changes have been applied; before is the former status of the node.
func (v *invariants) wrote(n *node, before Status) {
	if n.status != before {
		violated("I5", "node %s is %s because of what it wrote itself", n.id(), n.status)
	}
}

// reads is called for every read by a handler.
func (v *invariants) reads(ev *model.Event, d *doc, path model.Path, flat bool) {
	if ev != nil {
		v.handlerReads = append(v.handlerReads, &dep{doc: d, path: path, shallow: flat})
	}
}

// handles is called when an attempt is about to take effect: events are handled in the order of their lane,
// and nothing that the handler read is out of date (I4).
func (v *invariants) handles(ev *model.Event) {
	for _, d := range v.handlerReads {
		d.eachWriter(true, func(w *surface) {
			if n := staleAbove(w.node, map[*node]bool{}); n != nil {
				violated("I4", "event %s reads %s, and %s is %s", ev.ID, d, n.id(), n.status)
			}
		})
	}
	v.handlerReads = v.handlerReads[:0]
}

// staleAbove finds a stale upstream node by the simplest possible search.
func staleAbove(n *node, visited map[*node]bool) *node {
	if visited[n] {
		return nil
	}
	visited[n] = true
	if n.worthWaitingFor() {
		return n
	}
	var found *node
	for _, d := range n.deps {
		if d.indexed {
			d.eachWriter(true, func(w *surface) {
				if found == nil {
					found = staleAbove(w.node, visited)
				}
			})
		}
	}
	return found
}

// passed is called at the end of a pass (I6).
func (v *invariants) passed(maxIterations int, info PassInfo) {
	v.handlerReads = v.handlerReads[:0]
	if info.Events == 0 && info.Iterations > maxIterations {
		violated("I6", "a pass took %d iterations, %d are allowed", info.Iterations, maxIterations)
	}
}

// records is called for every commit that will be appended to the log (I8).
func (v *invariants) records(c *model.Commit) {
	for i := range c.Txs {
		if tx := &c.Txs[i]; tx.By == "" || tx.N == 0 {
			violated("I8", "transaction %d does not say whose it is", tx.N)
		}
	}
}
