package space

import (
	"fmt"
	"slices"
)

// audit compares the incremental bookkeeping of the graph with a rebuild from its roots, checks the
// invariants of node, and returns the violations. It visits everything, so it is for tests and the build tag
// invariants.
func (g *graph) audit() []string {
	a := &audit{g: g, live: map[*node]bool{}, refs: map[*doc]int32{}, surfaces: map[*surface]int32{}}
	for _, n := range g.nodes {
		if n != nil && (n.kind == Effect || n.materializer() || n.demand > 0) {
			a.mark(n)
		}
	}
	for _, n := range g.nodes {
		if n != nil {
			a.count(n)
		}
	}
	for _, n := range g.nodes {
		if n != nil {
			a.node(n)
		}
	}
	a.documents()
	a.totals()
	return a.wrong
}

type audit struct {
	g        *graph
	live     map[*node]bool
	refs     map[*doc]int32
	surfaces map[*surface]int32
	due      int
	failing  int
	// failingLive are those that are live.
	failingLive int
	back        int
	wrong       []string
}

func (a *audit) fail(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

// mark marks a node and everything it depends on as live.
func (a *audit) mark(n *node) {
	for work := []*node{n}; len(work) > 0; {
		n, work = work[len(work)-1], work[:len(work)-1]
		if a.live[n] {
			continue
		}
		a.live[n] = true
		for _, d := range n.deps {
			if d.indexed {
				d.eachWriter(false, func(s *surface) { work = append(work, s.node) })
			}
		}
	}
}

func (a *audit) count(n *node) {
	for _, d := range n.deps {
		if !d.indexed {
			continue
		}
		if d.back {
			a.back++
		}
		if a.live[n] {
			a.refs[d.doc]++
			d.eachWriter(false, func(s *surface) { a.surfaces[s]++ })
		}
	}
}

func (a *audit) node(n *node) {
	if n.live != a.live[n] {
		a.fail("node %s: live is %v, a rebuild says %v (I2)", n.id(), n.live, a.live[n])
	}
	if n.status == Clean && len(causeNames(n)) > 0 {
		a.fail("node %s is clean and has causes %v", n.id(), causeNames(n))
	}
	if n.status == NeverRan && n.runs > 0 {
		a.fail("node %s never ran, and has %d runs", n.id(), n.runs)
	}
	if n.failed() {
		a.failing++
		if a.live[n] {
			a.failingLive++
		}
	}
	if n.more != nil && n.more.failedAt != 0 && a.g.failures.live[n.more.failedAt-1] != n {
		a.fail("node %s is not at its place in the list of those that fail", n.id())
	}
	if n.due() {
		a.due++
		if !n.queued && !n.held && !n.waiting && !n.running {
			a.fail("node %s is due, and nothing will run it", n.id())
		}
	}
	if want := n.status == Invalid || n.status == NeverRan && a.g.mayMatter(n); want != (n.staleAt != 0) {
		a.fail("node %s is %s: among the stale is %v", n.id(), n.status, n.staleAt != 0)
	}
	n.eachSurface(false, func(s *surface) {
		if s.refs != a.surfaces[s] {
			a.fail("node %s, surface %s%s: %d refs, a rebuild says %d", n.id(), s.doc.key, s.path, s.refs, a.surfaces[s])
		}
	})
	a.edges(n)
}

// edges checks that every read is indexed where it should be, and that the order agrees with it (I9).
func (a *audit) edges(n *node) {
	for _, d := range n.deps {
		if d.indexed == d.covered {
			a.fail("node %s reads %s: indexed is %v, covered is %v", n.id(), d, d.indexed, d.covered)
		}
		if !d.indexed {
			continue
		}
		if !slices.Contains(d.doc.readers, d) || d.doc.readers[d.slot] != d {
			a.fail("node %s reads %s: it is not in its slot", n.id(), d)
		}
		d.eachWriter(true, func(s *surface) {
			if !d.back && s.node.height >= n.height {
				a.fail("node %s at height %d reads what %s at height %d writes (I9)", n.id(), n.height, s.node.id(), s.node.height)
			}
		})
	}
}

func (a *audit) documents() {
	away, pending := 0, 0
	visit := func(d *doc) {
		if d.key.space == "" && d.refs != a.refs[d] {
			a.fail("document %s: %d refs, a rebuild says %d", d.key, d.refs, a.refs[d])
		}
		if !d.loaded && len(d.readers) > 0 {
			away++
			if d.awayAt == 0 {
				a.fail("document %s is read and not here, and not among those", d.key)
			}
		}
		if !d.loaded && d.refs > 0 {
			pending++
		}
		if d.paths != nil && d.paths.root.size != len(d.readers) {
			a.fail("document %s: %d readers, %d in the index", d.key, len(d.readers), d.paths.root.size)
		}
	}
	for _, d := range a.g.docs { // any order: documents are independent
		visit(d)
	}
	for _, d := range a.g.far { // any order: documents are independent
		visit(d)
	}
	if away != len(a.g.away) || pending != a.g.pending {
		a.fail("%d documents are away and %d pending, a rebuild says %d and %d", len(a.g.away), a.g.pending, away, pending)
	}
}

func (a *audit) totals() {
	if a.due != a.g.dueCount {
		a.fail("%d nodes are due, the count says %d", a.due, a.g.dueCount)
	}
	if a.failing != a.g.failures.all {
		a.fail("%d nodes have failed, the count says %d", a.failing, a.g.failures.all)
	}
	if a.failingLive != len(a.g.failures.live) {
		a.fail("%d live nodes have failed, the list has %d", a.failingLive, len(a.g.failures.live))
	}
	for i, n := range a.g.gated {
		if !n.held || !n.due() || n.more.gate.place != i {
			a.fail("node %s is among the gated, held is %v, live %v, %s, place %d for %d", n.id(), n.held, n.live, n.status, n.more.gate.place, i)
		}
		if at := n.eligibleAt(); at != n.more.gate.heldAt {
			a.fail("node %s may run at %s and is held until %s", n.id(), at, n.more.gate.heldAt)
		}
	}
	if a.back != a.g.backEdges {
		a.fail("%d edges close circles, the count says %d", a.back, a.g.backEdges)
	}
}
