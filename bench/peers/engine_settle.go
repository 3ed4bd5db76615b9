package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
)

// settleEngine is the scheduler of a space, without a bus. Sources are documents of another space, whose new
// values this one receives, and outputs are volatile: no update makes a commit.
type settleEngine struct {
	program *space.Program
	core    *space.Space
	sources []*settleSource
	nodes   int
	tx      *space.Tx // of the running body
	seq     uint64    // of the last commit
	batched bool
	logged  bool
	nested  bool
}

const (
	home    = "home"
	outside = "outside"
)

// path is the place of the value in a document of a nested engine.
var path = model.Path{"state", "value"}

func newSettle() engine { return &settleEngine{program: space.NewProgram("peers")} }

// newSettleLog returns an engine that stores everything in the log: sources are documents of the space that a
// transaction writes, outputs are not volatile, and each update is encoded into commits, which are confirmed at
// once.
func newSettleLog() engine {
	return &settleEngine{program: space.NewProgram("peers"), logged: true}
}

// newSettleJSON returns newSettle's engine with documents that are nested objects, read by path.
func newSettleJSON() engine {
	return &settleEngine{program: space.NewProgram("peers"), nested: true}
}

// value returns the document that holds v.
func (e *settleEngine) value(v float64) model.Value {
	if e.nested {
		return model.Object(model.Field{Key: path[0], Value: model.Object(model.Field{Key: path[1], Value: model.Float(v)})})
	}
	return model.Float(v)
}

func (e *settleEngine) read(doc string) float64 {
	if e.nested {
		f, _ := e.tx.Get(doc, path...).AsFloat()
		return f
	}
	f, _ := e.tx.Get(doc).AsFloat()
	return f
}

func (e *settleEngine) readFrom(in, doc string) float64 {
	if e.nested {
		f, _ := e.tx.GetFrom(in, doc, path...).AsFloat()
		return f
	}
	f, _ := e.tx.GetFrom(in, doc).AsFloat()
	return f
}

type settleSource struct {
	e   *settleEngine
	doc string
	v   float64
}

func (e *settleEngine) source(v float64) source {
	s := &settleSource{e, "s" + strconv.Itoa(len(e.sources)), v}
	e.sources = append(e.sources, s)
	return s
}

func (s *settleSource) get() float64 {
	if s.e.logged {
		return s.e.read(s.doc)
	}
	return s.e.readFrom(outside, s.doc)
}

func (s *settleSource) set(v float64) {
	e := s.e
	s.v = v
	switch {
	case !e.logged:
		e.core.Mirror(outside, s.doc, e.value(v))
	case e.batched:
		e.tx.Set(s.doc, e.value(v))
	default:
		e.transact(func() { e.tx.Set(s.doc, e.value(v)) })
	}
	if !e.batched {
		e.settle()
	}
}

type settleComputed struct {
	e   *settleEngine
	doc string
}

func (c *settleComputed) get() float64 { return c.e.read(c.doc) }

func (e *settleEngine) computed(body func() float64, _ ...cell) cell {
	c := &settleComputed{e, "c" + strconv.Itoa(e.nodes)}
	e.add(space.NodeSpec{
		ID: c.doc, Kind: space.Computation, Output: c.doc, Volatile: !e.logged,
		Run: func(tx *space.Tx) (model.Value, error) {
			outer := e.tx // a read can run the node that it reads
			e.tx = tx
			v := body()
			e.tx = outer
			return e.value(v), nil
		},
	})
	return c
}

func (e *settleEngine) effect(body func(), _ ...cell) {
	e.add(space.NodeSpec{
		ID: "e" + strconv.Itoa(e.nodes), Kind: space.Effect,
		Run: func(tx *space.Tx) (model.Value, error) {
			outer := e.tx
			e.tx = tx
			body()
			e.tx = outer
			return model.Value{}, nil
		},
	})
}

func (e *settleEngine) add(n space.NodeSpec) {
	e.nodes++
	must(e.program.Add(n))
}

func (e *settleEngine) start() {
	core, err := space.New(space.Config{
		Space: home, Runtime: "peers",
		Limits: ledger.Limits{MaxCommitBytes: 64 << 20}, // an update of the largest graph must fit into one commit
	}, e.program, replica.New(home))
	must(err)
	e.core = core
	core.TakeOver()
	e.append(core.Settle(0)) // nothing runs before this is confirmed
	if e.logged {
		// In chunks, because a transaction is limited in its documents.
		for some := range slices.Chunk(e.sources, 64) {
			e.transact(func() {
				for _, s := range some {
					e.tx.Set(s.doc, e.value(s.v))
				}
			})
		}
	}
	e.settle()
}

func (e *settleEngine) transact(write func()) {
	_, err := e.core.Transact("peers", func(tx *space.Tx) error {
		e.tx = tx
		write()
		e.tx = nil
		return nil
	})
	must(err)
}

func (e *settleEngine) batch(fn func()) {
	e.batched = true
	if e.logged {
		e.transact(fn)
	} else {
		fn()
	}
	e.batched = false
	e.settle()
}

// settle plays the host: it performs what the space asks for until nothing is left.
func (e *settleEngine) settle() {
	for range 10000 {
		r := e.core.Settle(0)
		for _, f := range r.Follow {
			at, err := strconv.Atoi(f.Doc[1:])
			must(err)
			e.core.Mirror(f.Space, f.Doc, e.value(e.sources[at].v))
		}
		if e.append(r) || r.More || len(r.Follow) > 0 {
			continue
		}
		if r.Wake != 0 {
			panic(fmt.Sprintf("a node is held back until %s", r.Wake))
		}
		return
	}
	panic("it does not settle")
}

// append confirms a commit.
func (e *settleEngine) append(r space.Ready) bool {
	if r.Append == nil {
		return false
	}
	e.seq++
	must(e.core.Confirm(e.seq))
	return true
}

func (e *settleEngine) close() {}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
