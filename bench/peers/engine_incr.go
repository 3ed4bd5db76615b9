package main

import (
	"context"
	"math"

	"github.com/wcharczuk/go-incr"
)

// incrEngine uses the library in the fastest way that it offers: a node type of its own that is a map and its
// cutoff in one. Stabilize reads the clock and makes a context, which matters only in small graphs; those are
// driven through the expert interface, which in turn searches the levels from the lowest for each node.
type incrEngine struct {
	g       *incr.Graph
	expert  incr.IExpertGraph
	level   incr.RecomputeHeapListIterator
	levels  int
	api     bool // always by Stabilize
	batched bool
}

// incrNode runs a body over fixed inputs.
type incrNode struct {
	n      incr.Node // embedded, which saves a cache miss
	inputs []incr.INode
	body   func() float64
	value  float64 // NaN before the first run, which equals nothing
	level  int
}

var (
	_ incr.Incr[float64] = (*incrNode)(nil)
	_ incr.ICutoff       = (*incrNode)(nil)
	_ incr.IParents      = (*incrNode)(nil)
)

func (n *incrNode) Node() *incr.Node      { return &n.n }
func (n *incrNode) Parents() []incr.INode { return n.inputs }
func (n *incrNode) Value() float64        { return n.value }
func (n *incrNode) String() string        { return n.n.String() }

// Cutoff is called before Stabilize, once per change; so the body runs here, and there is no Stabilize.
func (n *incrNode) Cutoff(context.Context) (bool, error) {
	v := n.body()
	if v == n.value {
		return true, nil
	}
	n.value = v
	return false, nil
}

func (n *incrNode) get() float64 { return n.value }

type incrSource struct {
	incr.VarIncr[float64]
	e *incrEngine
}

func (s incrSource) get() float64 { return s.Value() }

func (s incrSource) set(v float64) {
	if s.Value() == v {
		return
	}
	s.Set(v)
	if !s.e.batched {
		s.e.stabilize()
	}
}

func newIncr() engine {
	g := incr.New(
		incr.OptGraphMaxHeight(1<<12),
		incr.OptGraphIdentifierProvider(incr.NewSequentialIdentifierProvier(1)),
	)
	expert := incr.ExpertGraph(g)
	return &incrEngine{g: g, expert: expert, level: expert.RecomputeHeapListIterator()}
}

func newIncrAPI() engine {
	e := newIncr().(*incrEngine)
	e.api = true
	return e
}

func (e *incrEngine) source(v float64) source { return incrSource{incr.Var(e.g, v), e} }

func (e *incrEngine) computed(body func() float64, reads ...cell) cell {
	return e.node(incr.KindMapN, body, reads)
}

func (e *incrEngine) node(kind string, body func() float64, reads []cell) *incrNode {
	n := &incrNode{n: *incr.NewNode(kind), body: body, value: math.NaN(), inputs: make([]incr.INode, len(reads))}
	for i, c := range reads {
		if s, ok := c.(incrSource); ok {
			n.inputs[i] = s.VarIncr
		} else {
			in := c.(*incrNode)
			n.inputs[i] = in
			n.level = max(n.level, in.level+1)
		}
	}
	e.levels = max(e.levels, n.level)
	return incr.WithinScope(e.g, n)
}

func (e *incrEngine) effect(body func(), reads ...cell) {
	n := e.node(incr.KindMapN, func() float64 { body(); return 0 }, reads)
	incr.MustObserve(e.g, incr.Incr[float64](n))
}

func (e *incrEngine) start() { e.stabilize() }

func (e *incrEngine) stabilize() {
	ctx := context.Background()
	if e.api || e.levels > 20 {
		if err := e.g.Stabilize(ctx); err != nil {
			panic(err)
		}
		return
	}
	for e.expert.RecomputeHeapLen() > 0 {
		e.expert.RecomputeHeapSetIterToMinHeight(e.level)
		for n, ok := e.level.Next(); ok; n, ok = e.level.Next() {
			if err := e.expert.Recompute(ctx, n, false); err != nil {
				panic(err)
			}
		}
	}
	e.expert.SetStabilizationNum(e.expert.StabilizationNum() + 1)
}

func (e *incrEngine) batch(fn func()) {
	e.batched = true
	fn()
	e.batched = false
	e.stabilize()
}

func (e *incrEngine) close() {}
