package inspect

import (
	"cmp"
	"slices"

	"github.com/hashicorp/go-memdb"
)

// Snapshot is the state of a space at one time, and never changes. Any goroutine may read it, one at a time:
// an index of the edges is built when it is first needed, in the reader's time and not in that of the space.
// Results are shared and must not be changed.
type Snapshot struct {
	txn   *memdb.Txn
	index *index // nil until it is needed
}

// Snapshot returns the last state that was written. Only the writer may call it, after it has written one.
func (t *Tables) Snapshot() *Snapshot { return &Snapshot{txn: t.db.Txn(false)} }

// Changed returns a channel that is closed when the space has settled again since the snapshot was taken, or
// was closed: a new snapshot may differ.
func (s *Snapshot) Changed() <-chan struct{} {
	c, _, err := s.txn.FirstWatch(tableParts, indexID, partChange)
	checked(err)
	return c
}

// State describes the space as a whole.
func (s *Snapshot) State() *State { return s.part(partState).(*State) }

// Lane returns what waits in the space.
func (s *Snapshot) Lane() *Lane { return s.part(partLane).(*Lane) }

// Tasks returns the tasks of the program's actions and inputs, sorted by name.
func (s *Snapshot) Tasks() []Tasks { return s.part(partTasks).([]Tasks) }

// History returns what the space has recorded.
func (s *Snapshot) History() *History { return s.part(partHistory).(*History) }

func (s *Snapshot) part(name string) any {
	row, err := s.txn.First(tableParts, indexID, name)
	checked(err)
	return row.(*part).value
}

// Nodes returns the nodes in order of first registration.
func (s *Snapshot) Nodes() []Node {
	x := s.indexed()
	out := make([]Node, 0, len(x.nodes))
	for _, n := range x.nodes {
		out = append(out, s.shown(n))
	}
	return out
}

// Node returns a node; false if there is no such node.
func (s *Snapshot) Node(id string) (Node, bool) {
	n := s.indexed().byID[id]
	if n == nil {
		return Node{}, false
	}
	return s.shown(n), true
}

// shown completes a row with information from other rows.
func (s *Snapshot) shown(row *Node) Node {
	n := *row
	n.Children = s.indexed().children[n.ID]
	if halt := s.State().Halt; halt != "" {
		n.Halt = halt
		if n.RunState == Runnable {
			n.RunState = Halted
		}
	}
	if h, is := s.Lane().head(); is && n.Root == NeededByEvent {
		n.Root = "needed by event " + h.Event + " on " + h.Stream
	}
	return n
}

// Readers returns the edges to the nodes that read what a node writes, sorted by the registration of those
// nodes and then by address. There is one edge for each place where the two meet.
func (s *Snapshot) Readers(id string) (edges []Edge) {
	x := s.indexed()
	n := x.byID[id]
	if n == nil {
		return nil
	}
	for i := range n.Writes {
		w := &n.Writes[i]
		for _, to := range x.readers[w.Doc] {
			if to.node != n && w.meets(to.place) {
				edges = append(edges, edge(to.node, to.place, w))
			}
		}
	}
	return ordered(edges)
}

// Writers returns the edges to the nodes that write what a node reads, in the same order.
func (s *Snapshot) Writers(id string) (edges []Edge) {
	x := s.indexed()
	n := x.byID[id]
	if n == nil {
		return nil
	}
	for i := range n.Reads {
		r := &n.Reads[i]
		if r.Space != "" {
			continue
		}
		for _, from := range x.writers[r.Doc] {
			if from.node != n && from.place.meets(r) {
				edges = append(edges, edge(from.node, r, from.place))
			}
		}
	}
	return ordered(edges)
}

// ReadersOf returns the ids of the nodes that read a document, in order of registration. space is "" for the
// space's own documents.
func (s *Snapshot) ReadersOf(space, doc string) []string {
	if space == "" {
		return ids(s.indexed().readers[doc])
	}
	return ids(s.indexed().abroad[[2]string{space, doc}])
}

// WritersOf returns the ids of the nodes that may write a document of the space, in order of registration.
func (s *Snapshot) WritersOf(doc string) []string { return ids(s.indexed().writers[doc]) }

func ids[P any](list []meeting[P]) (out []string) {
	for _, m := range list {
		out = append(out, m.node.ID)
	}
	return slices.Compact(out) // the meetings of one node are adjacent
}

// meeting is a place that a node reads or writes.
type meeting[P any] struct {
	node  *Node
	place *P
}

// index finds rows by their contents.
type index struct {
	nodes    []*Node // in order of first registration
	byID     map[string]*Node
	children map[string][]string
	// readers and writers are by document of the space; abroad are the readers of other spaces' documents.
	readers map[string][]meeting[Read]
	writers map[string][]meeting[Write]
	abroad  map[[2]string][]meeting[Read]
}

func (s *Snapshot) indexed() *index {
	if s.index == nil {
		s.index = newIndex(s.rows())
	}
	return s.index
}

// rows returns the nodes as the tables store them.
func (s *Snapshot) rows() (nodes []*Node) {
	it, err := s.txn.Get(tableNodes, indexID)
	checked(err)
	for row := it.Next(); row != nil; row = it.Next() {
		for _, n := range row.(*page).nodes {
			if n != nil {
				nodes = append(nodes, n)
			}
		}
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return nodes
}

func newIndex(nodes []*Node) *index {
	x := &index{
		nodes: nodes, byID: make(map[string]*Node, len(nodes)), children: map[string][]string{},
		readers: map[string][]meeting[Read]{}, writers: map[string][]meeting[Write]{}, abroad: map[[2]string][]meeting[Read]{},
	}
	for _, n := range nodes {
		x.byID[n.ID] = n
		if n.Parent != "" {
			x.children[n.Parent] = append(x.children[n.Parent], n.ID)
		}
		for i := range n.Reads {
			if r := &n.Reads[i]; r.Space == "" {
				x.readers[r.Doc] = append(x.readers[r.Doc], meeting[Read]{n, r})
			} else {
				at := [2]string{r.Space, r.Doc}
				x.abroad[at] = append(x.abroad[at], meeting[Read]{n, r})
			}
		}
		for i := range n.Writes {
			w := &n.Writes[i]
			x.writers[w.Doc] = append(x.writers[w.Doc], meeting[Write]{n, w})
		}
	}
	return x
}

func edge(to *Node, at *Read, w *Write) Edge {
	return Edge{
		Node: to.ID, Address: at.String(), Declared: at.Declared, Envelope: w.Envelope,
		Live: to.Live, Clean: to.Status == Clean, Ordinal: to.Ordinal,
	}
}
