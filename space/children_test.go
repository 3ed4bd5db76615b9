package space

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// The nodes of this test are made from the document plan, two levels deep:
//
//	plan/a/kind           the kind of node a
//	plan/a/reads          its inputs, which it adds up
//	plan/a/kids/x/...     its children, in the same form
//
// An effect makes a and b, a computation that is sometimes observed makes c and d. A name ends with the kind,
// because a node with other fixed properties needs another id.

var planKinds = []string{"sum", "see", "side", "deed"}

// outputOf returns the place of a node's sum: a document of its own, a place in a shared document, or nothing
// for effects that only observe.
func outputOf(id string) (doc string, path []string) {
	switch name, kind, _ := strings.Cut(id, "-"); kind {
	case "sum":
		return "out-" + name, nil
	case "side", "deed":
		return "shared", []string{name}
	}
	return "", nil
}

// planted is one node as the plan describes it.
type planted struct {
	id, parent string
	at         []string // in the plan
}

// kidsOf returns the nodes with the given names that the plan has at a place.
func kidsOf(kids model.Value, parent string, at []string, names ...string) (out []planted) {
	for _, name := range names {
		if kind, ok := kids.At([]string{name, "kind"}).AsString(); ok {
			id := strings.Join(append(slices.Clone(at), name), "_")
			id = strings.ReplaceAll(id, "_kids", "") + "-" + kind
			out = append(out, planted{id: id, parent: parent, at: append(slices.Clone(at), name)})
		}
	}
	return out
}

// garden is a host and what its nodes have seen.
type garden struct {
	*host
	seen map[string]int64
	// passes counts the passes, and began is the pass in which each node first ran.
	passes int
	began  map[*node]int
}

func (s *garden) program() *Program {
	p := NewProgram("garden")
	must := func(err error) {
		if err != nil {
			s.t.Fatalf("%v", err)
		}
	}
	must(p.Add(NodeSpec{ID: "root", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		return s.plant(tx, "root", "a", "b")
	}}))
	must(p.Add(NodeSpec{ID: "lazy", Kind: Computation, Output: "lazy", Run: func(tx *Tx) (model.Value, error) {
		return s.plant(tx, "lazy", "c", "d")
	}}))
	must(p.Handle("write", func(tx *Tx, ev *model.Event) (model.Value, error) {
		for e := range ev.Payload.Elements() {
			doc, _ := e.Get("doc").AsString()
			var path []string
			for p := range e.Get("path").Elements() {
				key, _ := p.AsString()
				path = append(path, key)
			}
			tx.Set(doc, e.Get("v"), path...) // absent: deleted
		}
		return model.Value{}, nil
	}))
	return p
}

// plant makes the nodes of the upper level; it fails while the plan requires that.
func (s *garden) plant(tx *Tx, parent string, names ...string) (model.Value, error) {
	n := 0
	for _, name := range names {
		kind := tx.Get("plan", name, "kind")
		if kind.IsAbsent() {
			continue
		}
		k, _ := kind.AsString()
		tx.Node(s.spec(planted{id: name + "-" + k, parent: parent, at: []string{name}}))
		n++
	}
	if fail, _ := tx.Get("plan", "fail").AsBool(); fail {
		return model.Value{}, fmt.Errorf("the plan is unavailable")
	}
	return model.Int(int64(n)), nil
}

func (s *garden) spec(p planted) NodeSpec {
	spec := NodeSpec{ID: p.id, Kind: Computation}
	doc, path := outputOf(p.id)
	switch {
	case strings.HasSuffix(p.id, "-sum"):
		spec.Output = doc
	case path != nil:
		spec.Writes = []Address{{Doc: doc, Path: path}}
	}
	if strings.HasSuffix(p.id, "-see") || strings.HasSuffix(p.id, "-deed") {
		spec.Kind = Effect
	}
	spec.Run = func(tx *Tx) (model.Value, error) {
		at := append([]string{}, p.at...)
		for _, kid := range kidsOf(tx.Get("plan", append(at, "kids")...), p.id, append(at, "kids"), "x", "y") {
			tx.Node(s.spec(kid))
		}
		total := addUp(tx.Get("plan", append(at, "reads")...), func(id string) int64 {
			doc, path := outputOf(id)
			return num(tx.Get(doc, path...))
		})
		s.seen[p.id] = total
		if path != nil {
			tx.Set(doc, total, path...)
		}
		return model.Int(total), nil
	}
	return spec
}

// addUp returns the sum of a node. A read is the id of another node, or of an input with the output of the
// same name.
func addUp(reads model.Value, read func(id string) int64) int64 {
	total := int64(1)
	for e := range reads.Elements() {
		id, _ := e.AsString()
		total += read(id)
	}
	return total % 5
}

// check compares the nodes with the plan when nothing is left to do.
func (s *garden) check() {
	plan := s.core.Value("plan")
	nodes := map[string]NodeState{}
	for _, n := range s.core.Nodes() {
		nodes[n.ID] = n
	}
	where := map[string]planted{}
	s.checkKids(nodes, where, nodes["root"], kidsOf(plan, "root", nil, "a", "b"))
	s.checkKids(nodes, where, nodes["lazy"], kidsOf(plan, "lazy", nil, "c", "d"))
	for _, top := range slices.Collect(maps.Values(where)) { // any order: each is independent
		at := append(slices.Clone(top.at), "kids")
		s.checkKids(nodes, where, nodes[top.id], kidsOf(plan.At(at), top.id, at, "x", "y"))
	}
	for _, n := range s.core.Nodes() {
		if n.Parent != "" && n.Live {
			s.checkValue(n, plan)
		}
	}
}

// checkKids checks that a clean node has made exactly the children of the plan. A dormant node may not have
// seen the latest plan.
func (s *garden) checkKids(nodes map[string]NodeState, where map[string]planted, parent NodeState, kids []planted) {
	var want, got []string
	for _, kid := range kids {
		want = append(want, kid.id)
	}
	for id, n := range nodes { // any order: sorted below
		if n.Parent == parent.ID {
			got = append(got, id)
			where[id] = planted{id: id, parent: parent.ID, at: placeOf(id)}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if parent.Status == Clean && !slices.Equal(got, want) {
		s.t.Fatalf("%s has made %v, the plan says %v", parent.ID, got, want)
	}
	if parent.Live && parent.Status != Clean {
		s.t.Fatalf("%s is live and %s at quiescence", parent.ID, parent.Status)
	}
}

// placeOf returns the place of a node in the plan.
func placeOf(id string) []string {
	name, _, _ := strings.Cut(id, "-")
	top, kid, nested := strings.Cut(name, "_")
	if nested {
		return []string{top, "kids", kid}
	}
	return []string{top}
}

// checkValue checks that a live node shows the value of a naive evaluation.
func (s *garden) checkValue(n NodeState, plan model.Value) {
	if n.Status != Clean {
		s.t.Fatalf("%s is live and %s at quiescence", n.ID, n.Status)
	}
	want := s.naive(n.ID, plan)
	if got := s.seen[n.ID]; n.Kind == Effect && got != want {
		s.t.Fatalf("effect %s saw %d, want %d", n.ID, got, want)
	}
	if doc, path := outputOf(n.ID); doc != "" {
		if got := num(s.core.Value(doc).At(path)); got != want {
			s.t.Fatalf("%s is %d, want %d", n.ID, got, want)
		}
	}
}

// naive evaluates a node by evaluating its reads. An input, or a node that is no longer computed, keeps its
// value.
func (s *garden) naive(id string, plan model.Value) int64 {
	return addUp(plan.At(append(placeOf(id), "reads")), func(read string) int64 {
		if s.core.graph.byID[read] != nil {
			return s.naive(read, plan)
		}
		doc, path := outputOf(read)
		return num(s.core.Value(doc).At(path))
	})
}

// watch checks the reason of every run: a node that is not needed runs in the pass that made it, and not
// again.
func (s *garden) watch(i RunInfo) {
	n := s.core.graph.byID[i.Node]
	if n.runs == 1 {
		s.began[n] = s.passes
	}
	if s.core.runner.nested > 0 || n.kind == Effect || n.isObserved() {
		return
	}
	if n.more == nil || !n.more.provisional || s.began[n] != s.passes {
		s.t.Fatalf("%s has run %d times, although it is not needed", i.Node, n.runs)
	}
}

// planIDs returns all possible nodes, in an order in which each reads only nodes before it.
func planIDs() []string {
	ids := []string{"in0-sum", "in1-sum"} // inputs, which are not computed
	for _, top := range []string{"a", "b", "c", "d"} {
		for _, name := range []string{top, top + "_x", top + "_y"} {
			for _, kind := range planKinds {
				ids = append(ids, name+"-"+kind)
			}
		}
	}
	return ids
}

func drawNode(t *rapid.T, name string, nested bool) map[string]any {
	ids := planIDs()
	before := ids[:max(2, slices.Index(ids, name+"-"+planKinds[0]))]
	before = slices.DeleteFunc(slices.Clone(before), func(id string) bool { return strings.HasSuffix(id, "-see") })
	node := map[string]any{
		"kind":  rapid.SampledFrom(planKinds).Draw(t, "kind"),
		"reads": rapid.SliceOfN(rapid.SampledFrom(before), 0, 3).Draw(t, "reads"),
	}
	if !nested {
		kids := map[string]any{}
		for _, kid := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"x", "y"}), rapid.ID).Draw(t, "kids") {
			kids[kid] = drawNode(t, name+"_"+kid, true)
		}
		node["kids"] = kids
	}
	return node
}

// drawWrite draws a change of an input, or of a large or small part of the plan.
func drawWrite(t *rapid.T) model.Write {
	top := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "node")
	kid := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "kid")
	at := func(v any, path ...string) model.Write {
		return model.Write{Doc: "plan", Path: path, Value: model.MustOf(v), Delete: v == nil}
	}
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0, 1:
		return put(rapid.SampledFrom([]string{"out-in0", "out-in1"}).Draw(t, "input"), rapid.IntRange(0, 3).Draw(t, "v"))
	case 2:
		return at(nil, top)
	case 3:
		return at(rapid.Bool().Draw(t, "fail"), "fail")
	case 4:
		return at(drawNode(t, top, false), top)
	case 5:
		return at(drawNode(t, top, false)["reads"], top, "reads")
	case 6:
		return at(nil, top, "kids", kid)
	}
	return at(drawNode(t, top+"_"+kid, true), top, "kids", kid)
}

func payloadOf(writes ...model.Write) any {
	var list []any
	for _, w := range writes {
		one := map[string]any{"doc": w.Doc, "path": append([]string{}, w.Path...)}
		if !w.Delete {
			one["v"] = w.Value
		}
		list = append(list, one)
	}
	return list
}

var gardenMoves = rapid.SampledFrom(slices.Concat(
	slices.Repeat([]string{"send"}, 5), slices.Repeat([]string{"deliver", "settle", "decide"}, 3),
	[]string{"put", "put", "refuse", "run", "run", "observe", "unobserve", "checkpoint", "take over", "crash", "advance"},
))

func (s *garden) move(t *rapid.T, i int) {
	switch move := gardenMoves.Draw(t, "move"); move {
	case "send":
		w := []model.Write{drawWrite(t)}
		if rapid.Bool().Draw(t, "two") {
			w = append(w, drawWrite(t))
		}
		s.w.send(home, "write", fmt.Sprint("e", i), payloadOf(w...))
	case "put":
		s.tryPut(drawWrite(t))
	case "refuse":
		if s.inFlight != nil {
			s.tryPut(drawWrite(t))
			s.decide()
		}
	case "observe":
		s.observe("lazy")
	case "unobserve":
		s.core.Unobserve("lazy")
	case "crash":
		s.load()
	default:
		s.step(move)
	}
}

// tryPut is put, unless the write is impossible because its container was removed.
func (s *garden) tryPut(w model.Write) {
	if _, err := w.Apply(s.w.replica(home).Doc(w.Doc).Value); err == nil {
		s.w.put(home, w)
	}
}

// Whatever happens, in the end there are exactly the nodes of the plan, with the values of a naive
// evaluation; and in the meantime unneeded nodes do not run, except once when they have just been made.
// (host.settle audits the graph after every step.)
func TestChildrenFollowTheDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		var gardens []*garden
		for _, name := range []string{"w1", "w2"} {
			s := &garden{seen: map[string]int64{}, began: map[*node]int{}}
			s.host = &host{t: t}
			p := s.program()
			s.host = w.host(name, p)
			start := s.cfg.Trace.RunStart
			s.cfg.Trace.RunStart = func(i RunInfo) { start(i); s.watch(i) }
			s.cfg.Trace.PassEnd = func(PassInfo) { s.passes++ }
			s.load()
			gardens = append(gardens, s)
		}
		gardens[0].takeOver()
		for _, top := range []string{"a", "b", "c", "d"} {
			gardens[0].tryPut(model.Write{Doc: "plan", Path: model.Path{top}, Value: model.MustOf(drawNode(t, top, false))})
		}
		for i := range 60 {
			rapid.SampledFrom(gardens).Draw(t, "host").move(t, i)
		}
		end := &machine{w: w}
		for _, s := range gardens {
			end.settleDown(s.host)
			s.tryPut(model.Write{Doc: "plan", Path: model.Path{"fail"}, Value: model.MustOf(false)})
			end.settleDown(s.host)
			s.check()
		}
	})
}

// A list shows 100 of many rows, with a node for each, and moves on by one again and again. Nothing remains
// of the rows that it no longer shows.
func TestG09_AWindowOfChildrenTakesNoMoreRoomThanItShows(t *testing.T) {
	const window = 100
	p := NewProgram("list")
	row := func(tx *Tx) (model.Value, error) { return tx.Get("price"), nil }
	err := p.Add(NodeSpec{ID: "list", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		from := num(tx.Get("from"))
		for i := from; i < from+window; i++ {
			tx.Node(NodeSpec{ID: fmt.Sprint("row", i), Kind: Effect, Gate: GateSpec{Throttle: rest}, Run: row})
		}
		return model.Value{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.owner("w1", p)
	for i := range 1000 {
		h.write("from", i)
		h.write("price", i) // those that are throttled wait for the new price
	}
	g := h.core.graph
	list := g.byID["list"]
	for name, n := range map[string]int{
		"ids": len(g.byID), "handles": len(g.nodes) - 1, "nodes in the tables": len(h.core.Inspect().Nodes()),
		"children": len(list.more.children) + 1, "readers of price": len(g.local("price").readers) + 1,
	} {
		if n != window+1 {
			t.Errorf("%d %s, want %d", n, name, window+1)
		}
	}
	for name, n := range map[string]int{
		"entries of nodes that wait for a time": len(g.gated), "slots for children": cap(list.more.children),
		"levels": len(g.queue.next.byHeight), "unsaved nodes": len(h.core.runner.observations.unsaved), "stale nodes": len(g.stale),
	} {
		if n > 4*window {
			t.Errorf("%d %s after a thousand steps", n, name)
		}
	}
	if n := len(g.ordinals.gone); n > maxGone {
		t.Errorf("the places of %d nodes are remembered", n)
	}
	for _, c := range list.more.children {
		if c.parent() != list {
			t.Errorf("%s is listed as a child by another node than its parent", c.id())
		}
	}
}
