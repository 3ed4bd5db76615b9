package space

import (
	"cmp"
	linked "container/list" // list is a name in the tests
	"fmt"
	"slices"
	"strings"
	"time"
)

// diagnosisSettings are the limits of a diagnosis. Zero is the default.
type diagnosisSettings struct {
	labels  int // nodes that a marker names; the rest is a count; 10
	history int // markers that are kept, the latest ones; 64
	edges   int // causal edges that are kept, those seen last; 4096

	// A space is busy if it has run for more than busyPercent of a window that is
	// longer than busyWindow, and for more than busyTime in it; 5 s, 30, 1 s.
	busyWindow  time.Duration
	busyPercent int
	busyTime    time.Duration
}

func (s diagnosisSettings) filled() diagnosisSettings {
	s.labels = cmp.Or(s.labels, 10)
	s.history = cmp.Or(s.history, 64)
	s.edges = cmp.Or(s.edges, 4096)
	s.busyWindow = cmp.Or(s.busyWindow, 5*time.Second)
	s.busyPercent = cmp.Or(s.busyPercent, 30)
	s.busyTime = cmp.Or(s.busyTime, time.Second)
	return s
}

// diagnosis says why a space does not come to rest. It is told what passes do, and
// only remembers: no decision may depend on it (row U06). What it reports is no
// verdict: a long wave is deferred too and still converges, so a marker names the
// nodes and calls nothing a circle. Causal circles are recorded for that, on demand.
type diagnosis struct {
	settings diagnosisSettings
	history  []settlingMarker
	unrest   bool // the last pass deferred something
	load     busyWindow
	causes   *causalEdges // nil unless switched on
	found    [][]string   // the circles of the last recording
	auto     autoDiagnosis
}

func newDiagnosis(s diagnosisSettings) *diagnosis {
	return &diagnosis{settings: s.filled()}
}

// settlingMarker is one sign that the space does not come to rest: a pass that
// deferred nodes (rows E14, E15), or a busy window (U04).
type settlingMarker struct {
	pass  uint64   // 0 for a busy window
	count int      // how many nodes the pass deferred
	nodes []string // the first of them

	at           time.Duration // the end of the busy window, 0 for a pass
	busy, window time.Duration
}

func (m settlingMarker) String() string {
	if m.count == 0 {
		return fmt.Sprintf("busy for %v of %v until %v", m.busy.Round(time.Millisecond), m.window.Round(time.Millisecond), m.at)
	}
	s := fmt.Sprintf("pass %d deferred %d: %s", m.pass, m.count, strings.Join(m.nodes, ", "))
	if more := m.count - len(m.nodes); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// markers returns what is in the history, oldest first.
func (d *diagnosis) markers() []settlingMarker { return slices.Clone(d.history) }

func (d *diagnosis) mark(m settlingMarker) {
	if len(d.history) == d.settings.history {
		d.history = slices.Delete(d.history, 0, 1)
	}
	d.history = append(d.history, m)
}

// deferred takes in which nodes a pass held back at its end, in the order in which
// they are to be listed. It reports whether to warn, which is once per episode; an
// episode ends with a pass that deferred nothing, and leaves no marker (E14, E15).
func (d *diagnosis) deferred(pass uint64, nodes []string) (warn bool) {
	warn = !d.unrest && len(nodes) > 0
	d.unrest = len(nodes) > 0
	if d.unrest {
		named := slices.Clone(nodes[:min(len(nodes), d.settings.labels)])
		d.mark(settlingMarker{pass: pass, count: len(nodes), nodes: named})
	}
	return warn
}

// nonSettling reports whether the last pass deferred something.
func (d *diagnosis) nonSettling() bool { return d.unrest }

// busyWindow is a stretch of time up to now, and how much of it passes took.
type busyWindow struct {
	begun bool
	start time.Duration
	busy  time.Duration
	high  bool // an episode is under way, and has its marker
}

// busy takes in that a pass has ended now and took so long. It reports whether to
// warn, which is once per episode (U04). An episode ends when the window slides and
// is not busy: a load that hovers around the limit is one episode.
func (d *diagnosis) busy(now, took time.Duration) (warn bool) {
	w := &d.load
	w.add(now, took)
	window := now - w.start
	if window <= d.settings.busyWindow {
		return false
	}
	high := d.settings.high(w.busy, window)
	if warn = high && !w.high; warn {
		w.high = true
		d.mark(settlingMarker{at: now, busy: w.busy, window: window})
	}
	if w.slide(now, 2*d.settings.busyWindow) {
		w.high = high
	}
	return warn
}

func (s *diagnosisSettings) high(busy, window time.Duration) bool {
	return busy > s.busyTime && busy*100 > window*time.Duration(s.busyPercent)
}

func (w *busyWindow) add(now, took time.Duration) {
	if !w.begun {
		w.begun, w.start = true, now-took
	}
	w.busy += took
}

// slide halves a window that is longer than limit, and its busy time with it, until
// it is not. The ratio stays: if only the busy time of the last hour were halved once,
// and the window cut to seconds, an hour of calm would look like a busy one.
func (w *busyWindow) slide(now, limit time.Duration) (slid bool) {
	for now-w.start > limit {
		w.start += (now - w.start) / 2
		w.busy /= 2
		slid = true
	}
	return slid
}

// causalEdge says that writer wrote doc, which made reader invalid.
type causalEdge struct{ writer, doc, reader string }

// causalEdges are the edges that were seen last, the latest in front. What goes round
// in a circle is seen again and again, and therefore stays.
type causalEdges struct {
	at     map[causalEdge]*linked.Element
	recent linked.List // of causalEdge
}

// traceCauses begins to record causal edges, from nothing, or stops and forgets them.
func (d *diagnosis) traceCauses(on bool) {
	d.causes = nil
	if on {
		d.causes = &causalEdges{at: map[causalEdge]*linked.Element{}}
	}
}

// caused takes in that writer wrote doc, which made reader invalid (S10). A writer ""
// is no node, and nothing comes back to it. Switched off, this is a branch.
func (d *diagnosis) caused(writer, doc, reader string) {
	if d.causes != nil && writer != "" {
		d.causes.add(causalEdge{writer, doc, reader}, d.settings.edges)
	}
}

func (c *causalEdges) add(e causalEdge, limit int) {
	if at := c.at[e]; at != nil {
		c.recent.MoveToFront(at)
		return
	}
	if c.recent.Len() >= limit {
		delete(c.at, c.recent.Remove(c.recent.Back()).(causalEdge))
	}
	c.at[e] = c.recent.PushFront(e)
}

// circles returns the causal circles of what was recorded, each once, as a node, the
// document that it wrote, the node that this made invalid, and so on; the last
// document is the one that the first node read. Circles can be many more than nodes,
// so not all are listed: for each node in order of names that lies on a circle and on
// none listed before, the shortest one through it. So each node that lies on a circle
// is on a listed one, and the result depends on the edges alone, not on their order.
func (d *diagnosis) circles() [][]string {
	if d.causes == nil {
		return nil
	}
	return newCausalGraph(d.causes).circles()
}

// causalGraph is a set of causal edges, with the nodes numbered in order of names.
type causalGraph struct {
	names []string
	next  [][]causalStep // from each node, in order of readers; one step per reader
	part  []int          // the strongly connected component of each node
	seen  []int          // the search that met the node last
}

type causalStep struct {
	doc string
	to  int
}

func newCausalGraph(c *causalEdges) *causalGraph {
	edges := make([]causalEdge, 0, c.recent.Len())
	g := &causalGraph{}
	for at := c.recent.Front(); at != nil; at = at.Next() {
		e := at.Value.(causalEdge)
		edges = append(edges, e)
		g.names = append(g.names, e.writer, e.reader)
	}
	slices.Sort(g.names)
	g.names = slices.Compact(g.names)
	slices.SortFunc(edges, func(a, b causalEdge) int {
		return cmp.Or(cmp.Compare(a.writer, b.writer), cmp.Compare(a.reader, b.reader), cmp.Compare(a.doc, b.doc))
	})
	g.link(edges)
	return g
}

// link makes steps of edges, which are sorted. Of several documents by which one node
// leads to another, the first stands for all.
func (g *causalGraph) link(edges []causalEdge) {
	g.next = make([][]causalStep, len(g.names))
	g.seen = slices.Repeat([]int{-1}, len(g.names))
	for i, e := range edges {
		if i > 0 && e.writer == edges[i-1].writer && e.reader == edges[i-1].reader {
			continue
		}
		from, to := g.number(e.writer), g.number(e.reader)
		g.next[from] = append(g.next[from], causalStep{e.doc, to})
	}
}

func (g *causalGraph) number(name string) int {
	i, _ := slices.BinarySearch(g.names, name)
	return i
}

func (g *causalGraph) circles() (circles [][]string) {
	g.part = causalComponents(g.next)
	listed := make([]bool, len(g.names))
	for n := range g.names {
		if listed[n] {
			continue
		}
		if way := g.around(n); way != nil {
			circles = append(circles, g.spell(way))
			for _, s := range way {
				listed[s.to] = true
			}
		}
	}
	return circles
}

// causalVisit is a node that a search has come to, and how.
type causalVisit struct {
	causalStep
	from int // the visit before, -1 for the first
}

// around returns the shortest way from n back to n, nil if there is none. It searches
// breadth first, and only where n can be reached from.
func (g *causalGraph) around(n int) []causalStep {
	visits := []causalVisit{{causalStep{to: n}, -1}}
	for i := 0; i < len(visits); i++ {
		for _, s := range g.next[visits[i].to] {
			if s.to == n {
				return causalWay(append(visits, causalVisit{s, i}))
			}
			if g.part[s.to] == g.part[n] && g.seen[s.to] != n {
				g.seen[s.to] = n
				visits = append(visits, causalVisit{s, i})
			}
		}
	}
	return nil
}

// causalWay returns the steps that lead to the last of the visits.
func causalWay(visits []causalVisit) (way []causalStep) {
	for v := visits[len(visits)-1]; v.from >= 0; v = visits[v.from] {
		way = append(way, v.causalStep)
	}
	slices.Reverse(way)
	return way
}

// spell names the nodes and documents of a way that ends where it began.
func (g *causalGraph) spell(way []causalStep) (circle []string) {
	at := way[len(way)-1].to
	for _, s := range way {
		circle = append(circle, g.names[at], s.doc)
		at = s.to
	}
	return circle
}

// causalComponents numbers the strongly connected components of a graph, from 1, and returns
// the number of each node (Tarjan's algorithm). The recursion is as deep as the longest
// chain, which the table of edges bounds.
func causalComponents(next [][]causalStep) []int {
	n := len(next)
	t := tarjan{next: next, part: make([]int, n), order: make([]int, n), low: make([]int, n)}
	for n := range next {
		if t.order[n] == 0 {
			t.visit(n)
		}
	}
	return t.part
}

// tarjan is the state of that algorithm. A node has been met if its order is not 0,
// and its component is complete if its part is not.
type tarjan struct {
	next       [][]causalStep
	part       []int
	order, low []int // when the node was met, and the earliest one that it leads back to
	met, parts int
	open       []int // met, and not in a complete component yet
}

func (t *tarjan) visit(n int) {
	t.met++
	t.order[n], t.low[n] = t.met, t.met
	t.open = append(t.open, n)
	for _, s := range t.next[n] {
		switch {
		case t.order[s.to] == 0:
			t.visit(s.to)
			t.low[n] = min(t.low[n], t.low[s.to])
		case t.part[s.to] == 0:
			t.low[n] = min(t.low[n], t.order[s.to])
		}
	}
	if t.low[n] == t.order[n] {
		t.complete(n)
	}
}

// complete makes a component of n and of what was met since and is open.
func (t *tarjan) complete(n int) {
	t.parts++
	for t.part[n] == 0 {
		last := len(t.open) - 1
		t.part[t.open[last]] = t.parts
		t.open = t.open[:last]
	}
}
