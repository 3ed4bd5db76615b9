package questions

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/worker"
)

// graph answers which nodes a space has.
func (s *Server) graph(ctx context.Context, q *Query) (*Graph, error) {
	about, i, err := s.see(ctx, q, worker.InspectOptions{})
	if err != nil || i == nil {
		return &Graph{About: about}, err
	}
	nodes := i.Nodes()
	if q.Of != "" {
		if _, there := i.Node(q.Of); !there {
			return nil, &model.ServiceError{Code: model.CodeNotFound, Text: notFound(&Query{Space: q.Space, Of: q.Of, As: KindNode}, i, &about)}
		}
		near := neighbourhood(i, q.Of, max(q.Depth, 1))
		nodes = slices.DeleteFunc(nodes, func(n inspect.Node) bool { return !near[n.ID] })
	}
	nodes = slices.DeleteFunc(nodes, func(n inspect.Node) bool { return isObserver(n.ID) })
	slices.SortStableFunc(nodes, func(a, b inspect.Node) int {
		return cmp.Or(cmp.Compare(a.Height, b.Height), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	out := &Graph{About: about, Total: len(nodes)}
	out.addPage(i, nodes, q)
	out.markCircles(i, nodes)
	out.markRounds(i)
	out.Observed = observed(i)
	h := i.History()
	if len(h.Markers) > 0 && h.NonSettling {
		out.Unsettled = bounded(h.Markers[len(h.Markers)-1].Nodes)
	}
	for _, c := range h.Circles()[:min(len(h.Circles()), maxPlaces)] {
		var way []string
		for _, step := range c {
			way = append(way, step.Node, step.Doc)
		}
		out.Turning = append(out.Turning, way)
	}
	return out, nil
}

func isObserver(id string) bool {
	_, is := inspect.Observed(id)
	return is
}

// observed returns the observed documents.
func observed(i *worker.Inspected) (docs []string) {
	for _, n := range i.Nodes() {
		if doc, is := inspect.Observed(n.ID); is && n.Live {
			docs = append(docs, doc)
		}
	}
	slices.Sort(docs)
	return docs[:min(len(docs), MaxNodes)]
}

// neighbourhood returns the nodes that are at most so many edges away from one.
func neighbourhood(i *worker.Inspected, id string, depth int) map[string]bool {
	near := map[string]bool{id: true}
	for tier := []string{id}; depth > 0 && len(tier) > 0; depth-- {
		var next []string
		for _, at := range tier {
			for _, e := range slices.Concat(i.Readers(at), i.Writers(at)) {
				if !near[e.Node] {
					near[e.Node] = true
					next = append(next, e.Node)
				}
			}
		}
		tier = next
	}
	return near
}

// addPage adds a page of the nodes, with the edges that lead to them.
func (g *Graph) addPage(i *worker.Inspected, nodes []inspect.Node, q *Query) {
	from := min(q.After, len(nodes))
	to := min(from+q.Limit, len(nodes))
	if to < len(nodes) {
		g.Next = to
	}
	shown := map[string]bool{}
	for k := range nodes {
		shown[nodes[k].ID] = true
	}
	for k := range nodes[from:to] {
		n := &nodes[from+k]
		g.Nodes = append(g.Nodes, graphNode(i, n))
		for _, e := range i.Writers(n.ID) {
			if !shown[e.Node] {
				continue
			}
			if len(g.Edges) == maxEdges {
				g.Cut = true
				break
			}
			g.Edges = append(g.Edges, GraphEdge{From: e.Node, To: n.ID, Address: clip(e.Address), Order: e.Envelope})
		}
	}
}

func graphNode(i *worker.Inspected, n *inspect.Node) GraphNode {
	out := GraphNode{
		ID: n.ID, Kind: n.Kind, Output: n.Output, State: n.RunState.String(), Live: n.Live, Root: n.Root, Height: n.Height,
		Runs: n.Stats.Runs, Errors: n.Stats.Errors, Parent: n.Parent, Waits: n.Waits,
	}
	out.Observed = slices.ContainsFunc(i.Readers(n.ID), func(e inspect.Edge) bool { return isObserver(e.Node) && e.Live })
	if n.Stats.LastErr != nil {
		out.Error = clip(n.Stats.LastErr.Error())
	}
	if n.RunState == inspect.Gated {
		out.Gate, out.Until = n.Gate, i.Time(n.Until).UTC()
	}
	for k := range n.Reads {
		r := &n.Reads[k]
		name := r.Doc
		if r.Space != "" {
			name = "@" + r.Space + "/" + r.Doc
		} else if len(i.WritersOf(r.Doc)) > 0 {
			continue
		}
		if !slices.Contains(out.Sources, name) && len(out.Sources) < maxPlaces {
			out.Sources = append(out.Sources, name)
		}
	}
	return out
}

// markCircles finds the circles of a graph, and marks the nodes of the page that are on one.
func (g *Graph) markCircles(i *worker.Inspected, nodes []inspect.Node) {
	of := map[string]int{}
	for _, circle := range circles(i, nodes) {
		if len(g.Circles) == maxPlaces {
			break
		}
		g.Circles = append(g.Circles, bounded(circle))
		for _, id := range circle {
			of[id] = len(g.Circles)
		}
	}
	for k := range g.Nodes {
		g.Nodes[k].Circle = of[g.Nodes[k].ID]
	}
}

// markRounds adds the circles over several spaces, and marks the nodes of the page through which one leads: they read, directly or through
// others, a document of it that is in another space, and write one of this space.
func (g *Graph) markRounds(i *worker.Inspected) {
	for _, r := range i.State().Rounds[:min(len(i.State().Rounds), maxPlaces)] {
		g.Rounds = append(g.Rounds, r.Docs)
		var from, to []string
		for _, at := range r.Docs {
			space, doc, _ := strings.Cut(at, "/")
			if space == i.State().Space {
				to = append(to, i.WritersOf(doc)...)
			} else {
				from = append(from, i.ReadersOf(space, doc)...)
			}
		}
		after, before := reachable(from, i.Readers), reachable(to, i.Writers)
		for k := range g.Nodes {
			if n := &g.Nodes[k]; n.Round == 0 && after[n.ID] && before[n.ID] {
				n.Round = len(g.Rounds)
			}
		}
	}
}

// reachable returns the nodes that edges lead to from some, these included.
func reachable(from []string, next func(string) []inspect.Edge) map[string]bool {
	seen := map[string]bool{}
	for len(from) > 0 {
		id := from[len(from)-1]
		from = from[:len(from)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		for _, e := range next(id) {
			if !e.Envelope {
				from = append(from, e.Node)
			}
		}
	}
	return seen
}

// circleOf returns the circle that a node is on, nil if it is on none.
func circleOf(i *worker.Inspected, id string) []string {
	for _, c := range circles(i, i.Nodes()) {
		if slices.Contains(c, id) {
			return bounded(c)
		}
	}
	return nil
}

// circles returns the sets of nodes that read, directly or through each other, what they write.
func circles(i *worker.Inspected, nodes []inspect.Node) (out [][]string) {
	t := tarjan{i: i, order: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for k := range nodes {
		if id := nodes[k].ID; t.order[id] == 0 {
			t.visit(id)
		}
	}
	return t.found
}

// tarjan finds strongly connected components of more than one node. It keeps its own stack: a graph may be deep.
type tarjan struct {
	i          *worker.Inspected
	order, low map[string]int
	open       map[string]bool
	stack      []string
	found      [][]string
}

// visited is a node whose readers are being visited.
type visited struct {
	id      string
	readers []inspect.Edge
}

func (t *tarjan) enter(id string) visited {
	n := len(t.order) + 1
	t.order[id], t.low[id], t.open[id] = n, n, true
	t.stack = append(t.stack, id)
	return visited{id, t.i.Readers(id)}
}

func (t *tarjan) visit(root string) {
	for path := []visited{t.enter(root)}; len(path) > 0; {
		at := &path[len(path)-1]
		if len(at.readers) > 0 {
			next := at.readers[0]
			at.readers = at.readers[1:]
			switch {
			case next.Envelope:
			case t.order[next.Node] == 0:
				path = append(path, t.enter(next.Node))
			case t.open[next.Node]:
				t.low[at.id] = min(t.low[at.id], t.order[next.Node])
			}
			continue
		}
		t.leave(at.id)
		if path = path[:len(path)-1]; len(path) > 0 {
			up := path[len(path)-1].id
			t.low[up] = min(t.low[up], t.low[at.id])
		}
	}
}

func (t *tarjan) leave(id string) {
	if t.low[id] != t.order[id] {
		return
	}
	at := slices.Index(t.stack, id)
	part := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, of := range part {
		t.open[of] = false
	}
	if len(part) > 1 {
		slices.Sort(part)
		t.found = append(t.found, part)
	}
}
