package space

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// tangle is a space in which anything may be connected to anything, including circles and nodes that read
// their own output. Documents determine what a node reads and which children it makes; what it writes never
// changes, so circles converge.
type tangle struct {
	w        *world
	h        *host
	p        *Program
	roots    string          // the kinds of roots that are allowed
	nodes    map[string]bool // that were registered
	observed map[string]int
	n        int // number of events and foreign commits
}

// The id of a node determines its behaviour, so its children can be computed from their ids.
func tangled(id string) NodeSpec {
	spec := NodeSpec{ID: id, Kind: Computation}
	kind, _, _ := strings.Cut(id, "-")
	own := Address{Doc: "doc", Path: model.Path{id}}
	switch kind {
	case "out":
		spec.Output = id
	case "vol":
		spec.Output, spec.Volatile = id, true
	case "side": // one key of a shared document
		spec.Writes = []Address{own}
	case "wide": // declares that it may write the whole document
		spec.Writes = []Address{{Doc: "doc"}}
	case "both":
		spec.Output, spec.Writes = id, []Address{own, {Doc: "whole-" + id}}
	case "declares":
		spec.Output, spec.DeclaredReads = id, []Address{{Doc: "out-a"}, {Doc: "doc"}, {Space: "bank", Doc: "rate"}}
	case "mat":
		spec.Envelope = []Address{own}
	case "matout":
		spec.Output, spec.Envelope = id, []Address{{Doc: "doc"}}
	case "eff":
		spec.Kind = Effect
	case "weff":
		spec.Kind, spec.Writes = Effect, []Address{own}
	}
	spec.Run = func(tx *Tx) (model.Value, error) { return runTangled(tx, &spec) }
	return spec
}

func runTangled(tx *Tx, spec *NodeSpec) (model.Value, error) {
	for e := range tx.Get("kids", spec.ID).Elements() {
		kid, _ := e.AsString()
		tx.Node(tangled(kid))
	}
	for e := range tx.Get("wires", spec.ID).Elements() {
		wire, _ := e.AsString()
		how, at, _ := strings.Cut(wire, " ")
		path := strings.Split(at, "/")
		switch how {
		case "deep":
			tx.Get(path[0], path[1:]...)
		case "shallow":
			tx.GetShallow(path[0], path[1:]...)
		case "peek":
			tx.Peek(path[0], path[1:]...)
		case "far":
			tx.GetFrom("bank", path[0])
		case "fail":
			return model.Value{}, errors.New("as told")
		case "busy":
			return model.Value{}, Transient(errors.New("as told"))
		}
	}
	for _, a := range slices.Concat(spec.Writes, spec.Envelope) {
		if a.Path == nil {
			a.Path = model.Path{"all"}
		}
		tx.Set(a.Doc, 1, a.Path...)
	}
	return model.Int(1), nil
}

// There are few names, so that they clash. Children have other names: a run must not make a node that the
// test has registered.
var (
	plainIDs = []string{"out-a", "out-b", "vol-a", "side-a", "side-b", "wide-a", "wide-b", "both-a", "declares-a"}
	matIDs   = []string{"mat-a", "mat-b", "matout-a"}
	effIDs   = []string{"eff-a", "eff-b", "weff-a"}
	kidIDs   = []string{"out-k", "side-k", "wide-k", "declares-k"}
	kidRoots = map[string][]string{"all": {"eff-k", "mat-k"}, "materializers": {"mat-k"}}
	wireDocs = []string{"base", "out-a", "out-b", "out-k", "vol-a", "both-a", "declares-a", "matout-a", "doc", "doc/all", "doc/side-a", "doc/side-k", "doc/both-a", "doc/mat-a", "doc/mat-a/x", "whole-both-a"}
)

func (x *tangle) ids() []string {
	switch x.roots {
	case "all":
		return slices.Concat(plainIDs, matIDs, effIDs)
	case "materializers":
		return slices.Concat(plainIDs, matIDs)
	}
	return plainIDs
}

var wires = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
	switch how := rapid.SampledFrom([]string{"deep", "deep", "deep", "deep", "shallow", "shallow", "peek", "far", "fail", "busy"}).Draw(t, "how"); how {
	case "far":
		return "far " + rapid.SampledFrom([]string{"rate", "limit"}).Draw(t, "far")
	case "fail", "busy":
		return how
	default:
		return how + " " + rapid.SampledFrom(wireDocs).Draw(t, "at")
	}
}), 0, 4)

// wiring draws a change of what a node reads, or of the children that it makes.
func (x *tangle) wiring(t *rapid.T) model.Write {
	kids := slices.Concat(kidIDs, kidRoots[x.roots])
	who := rapid.SampledFrom(slices.Concat(x.ids(), kids)).Draw(t, "who")
	if rapid.IntRange(0, 3).Draw(t, "kids") == 0 {
		what := rapid.SliceOfNDistinct(rapid.SampledFrom(kids), 0, 3, rapid.ID).Draw(t, "which")
		return model.Write{Doc: "kids", Path: model.Path{who}, Value: model.MustOf(what)}
	}
	return model.Write{Doc: "wires", Path: model.Path{who}, Value: model.MustOf(wires.Draw(t, "wires"))}
}

var mutations = rapid.SampledFrom(slices.Concat([]string{"nothing"},
	slices.Repeat([]string{"wire by event", "register", "settle"}, 4),
	slices.Repeat([]string{"wire by put", "wire by transaction", "remove", "observe", "unobserve", "circle", "decide", "run"}, 2),
	[]string{
		"touch", "touch doc", "look", "look and fail", "rate", "mirror", "refuse", "crash",
		"debounce", "throttle", "advance", "wait", "deliver", "take over", "checkpoint", "remove any", "register again",
	},
))

func (x *tangle) mutate(t *rapid.T) {
	x.n++
	h := x.h
	switch m := mutations.Draw(t, "mutation"); m {
	case "wire by event":
		w := x.wiring(t)
		x.w.send(home, "wire", fmt.Sprint("e", x.n), map[string]any{"doc": w.Doc, "who": w.Path[0], "v": w.Value})
	case "wire by put":
		x.w.put(home, x.wiring(t))
		if h.core.Settled() {
			h.integrate()
		}
	case "refuse":
		if h.inFlight != nil {
			h.refuse(x.wiring(t))
		}
	case "touch":
		x.transact(put("base", x.n))
	case "touch doc":
		x.transact(model.Write{Doc: "doc", Path: model.Path{rapid.SampledFrom([]string{"all", "side-a", "other"}).Draw(t, "key")}, Value: model.Int(int64(x.n))})
	case "wire by transaction":
		x.transact(x.wiring(t))
	case "circle":
		x.circle(t)
	case "look", "look and fail":
		at := rapid.SampledFrom(wireDocs).Draw(t, "at")
		x.w.send(home, "look", fmt.Sprint("e", x.n), map[string]any{"at": at, "fail": m == "look and fail"})
	case "rate":
		x.w.put("bank", put("rate", x.n))
	case "debounce", "throttle":
		x.gate(t, m)
	case "observe", "unobserve", "register", "register again", "remove", "remove any":
		x.demand(t, m)
	case "crash":
		h.load()
		x.nodes, x.observed = map[string]bool{}, map[string]int{}
	default:
		h.step(m)
	}
}

// circle lets computations read one another's output in a circle, for an event that needs one of them. Reads that are drawn
// one by one rarely close a circle that then loses its last root.
func (x *tangle) circle(t *rapid.T) {
	ring := rapid.Permutation([]string{"out-a", "out-b", "both-a", "declares-a"}).Draw(t, "circle")
	ring = ring[:rapid.IntRange(2, len(ring)).Draw(t, "length")]
	for i, id := range ring {
		x.register(id)
		x.transact(model.Write{Doc: "wires", Path: model.Path{id}, Value: model.MustOf([]string{"deep " + ring[(i+1)%len(ring)]})})
	}
	x.w.send(home, "look", fmt.Sprint("e", x.n), map[string]any{"at": ring[0], "fail": false})
	if rapid.Bool().Draw(t, "run") {
		x.h.run()
	}
}

func (x *tangle) transact(w model.Write) {
	_, err := x.h.core.Transact("app", func(tx *Tx) error {
		tx.Set(w.Doc, w.Value, w.Path...)
		return nil
	})
	if err != nil && !errors.Is(err, ErrNotRunning) {
		x.w.t.Fatalf("%v", err)
	}
}

func (x *tangle) gate(t *rapid.T, which string) {
	all := x.h.core.Nodes()
	if len(all) == 0 {
		return
	}
	id := rapid.SampledFrom(all).Draw(t, "node").ID
	d := rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond}).Draw(t, "for")
	set := x.h.core.SetDebounce
	if which == "throttle" {
		set = x.h.core.SetThrottle
	}
	if err := set(id, d); err != nil {
		t.Fatalf("%v", err)
	}
}

// demand is a change of the nodes, or of what is needed.
func (x *tangle) demand(t *rapid.T, m string) {
	switch m {
	case "observe":
		if x.roots == "all" {
			doc, _, _ := strings.Cut(rapid.SampledFrom(wireDocs).Draw(t, "doc"), "/")
			x.observed[doc]++
			x.h.observe(doc)
		}
	case "unobserve":
		if some := slices.Sorted(maps.Keys(x.observed)); len(some) > 0 {
			x.unobserve(rapid.SampledFrom(some).Draw(t, "doc"))
		}
	case "register":
		x.register(rapid.SampledFrom(x.ids()).Draw(t, "id"))
	case "remove", "register again":
		if some := slices.Sorted(maps.Keys(x.nodes)); len(some) > 0 {
			id := rapid.SampledFrom(some).Draw(t, "id")
			x.remove(id)
			if m == "register again" {
				checkGraph(t, x.h.core.graph)
				x.register(id)
			}
		}
	case "remove any": // including children
		if all := x.h.core.Nodes(); len(all) > 0 {
			id := rapid.SampledFrom(all).Draw(t, "id").ID
			if !strings.HasPrefix(id, "observe:") {
				x.remove(id)
			}
		}
	}
}

func (x *tangle) register(id string) {
	if x.nodes[id] {
		return
	}
	x.nodes[id] = true
	if err := x.h.core.Register(tangled(id)); err != nil {
		x.w.t.Fatalf("%v", err)
	}
}

func (x *tangle) remove(id string) {
	delete(x.nodes, id)
	if !x.h.core.Remove(id) {
		x.w.t.Fatalf("node %s did not exist", id)
	}
}

func (x *tangle) unobserve(doc string) {
	x.h.core.Unobserve(doc)
	if x.observed[doc]--; x.observed[doc] == 0 {
		delete(x.observed, doc)
	}
}

func newTangle(t *rapid.T) *tangle {
	p := NewProgram("wired")
	must := func(err error) {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	must(p.Handle("wire", func(tx *Tx, ev *model.Event) (model.Value, error) {
		doc, _ := ev.Payload.Get("doc").AsString()
		who, _ := ev.Payload.Get("who").AsString()
		tx.Set(doc, ev.Payload.Get("v"), who)
		return model.Value{}, nil
	}))
	must(p.Handle("look", func(tx *Tx, ev *model.Event) (model.Value, error) {
		at, _ := ev.Payload.Get("at").AsString()
		path := strings.Split(at, "/")
		tx.Get(path[0], path[1:]...)
		if fail, _ := ev.Payload.Get("fail").AsBool(); fail {
			return model.Value{}, Transient(errors.New("as told"))
		}
		return model.Value{}, nil
	}))
	x := &tangle{w: newWorld(t), p: p, nodes: map[string]bool{}, observed: map[string]int{}}
	x.roots = rapid.SampledFrom([]string{"all", "all", "materializers", "none"}).Draw(t, "roots")
	x.h = x.w.owner("w1", p)
	return x
}

// rest ends all waiting, and removes every root.
func (x *tangle) rest() {
	h := x.h
	for _, doc := range slices.Sorted(maps.Keys(x.observed)) {
		for range x.observed[doc] {
			x.unobserve(doc)
		}
	}
	for _, n := range h.core.Nodes() {
		if g := h.core.graph.byID[n.ID]; g != nil && (g.kind == Effect || g.materializer()) {
			h.core.Remove(n.ID)
			checkGraph(x.w.t, h.core.graph)
		}
	}
}

// The counts behind liveness agree with a rebuild from the roots, and the order with the edges, after any
// change of the graph: whatever kinds of roots there are, including none, and whether readers or writers come
// first.
func TestI2_H06_LivenessAgreesWithARebuildFromItsRoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTangle(t)
		for range 40 {
			x.mutate(t)
			checkGraph(t, x.h.core.graph)
			x.checkRootless(t)
		}
		x.rest()
		if !x.h.core.Owned() {
			return
		}
		for i := 0; i < 3 || !x.h.core.ledger.Lane().Done(); i++ {
			if i == 1000 {
				t.Fatalf("an event is never handled: %+v", x.h.last)
			}
			x.h.step("mirror")
			x.h.run()
			x.h.advance(rest)
			x.rest() // a child may have been made once more
		}
		for _, n := range x.h.core.Nodes() {
			if n.Live {
				t.Fatalf("%s is live although there are no roots: %+v", n.ID, x.h.core.Nodes())
			}
		}
	})
}

// checkRootless checks that, without roots, the only live nodes are those that an event waits for, and those
// read by a new child that has not been able to run yet.
func (x *tangle) checkRootless(t *rapid.T) {
	waits := func(n *node) bool { return n != nil && n.more != nil && n.more.provisional && n.waiting }
	if x.roots != "none" || len(x.h.core.handling.needs.nodes) > 0 || slices.ContainsFunc(x.h.core.graph.nodes, waits) {
		return
	}
	for _, n := range x.h.core.graph.nodes {
		if n != nil && n.live && n.parent() == nil {
			t.Fatalf("%s is live although there are no roots", n.id())
		}
	}
}
