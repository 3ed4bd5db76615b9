package space

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// inspected makes a space with n computations that are up to date, each over two documents.
func inspected(b *testing.B, n int) (*bench, []*doc) {
	b.Helper()
	p := dormantProgram(b, n)
	core, err := New(Config{Space: home, Runtime: "w1"}, p, replica.New(home))
	if err != nil {
		b.Fatal(err)
	}
	core.Rehydrate(observationsOf(p))
	h := &bench{b: b, core: core}
	docs := make([]*doc, n)
	for i := range docs {
		docs[i] = core.graph.local(fmt.Sprint("in", i))
	}
	core.TakeOver()
	h.settle()
	return h, docs
}

// BenchmarkInspect measures snapshots of a space of n nodes: the first one, and another one after a pass that
// changed one document, which two nodes read.
func BenchmarkInspect(b *testing.B) {
	for _, n := range []int{30, 300, 10_000, 100_000} {
		h, docs := inspected(b, n)
		b.Run(fmt.Sprintf("first/nodes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.core.publisher.tables = nil
				h.core.Inspect()
			}
		})
		b.Run(fmt.Sprintf("again/nodes=%d", n), func(b *testing.B) {
			v := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				v++
				h.core.graph.change(docs[v%int64(n)], model.Int(v), origin{})
				h.core.Inspect()
			}
		})
		b.Run(fmt.Sprintf("reader/nodes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.core.Inspect().Explain("n7")
			}
		})
	}
}

// BenchmarkInspectLane measures a snapshot of a space in which n events wait in the lane, or for a time.
func BenchmarkInspectLane(b *testing.B) {
	for _, n := range []int{4096, 100_000} {
		b.Run(fmt.Sprint("waiting=", n), func(b *testing.B) {
			p := benchProgram(b)
			if err := p.Handle("later", func(tx *Tx, _ *model.Event) (model.Value, error) {
				for i := range 100 {
					tx.SendAt(home, "inc", tx.Now().Add(time.Duration(i+1)*time.Hour), nil)
				}
				return model.Value{}, nil
			}); err != nil {
				b.Fatal(err)
			}
			h := newBench(b, p)
			h.core.Clock(time.UnixMilli(noon))
			if n > 4096 {
				for i := range n / 100 {
					h.offer("later", fmt.Sprint("l", i), model.Value{})
					h.settle()
				}
			} else {
				for i := range n {
					h.offer("inc", fmt.Sprint("e", i), model.Value{})
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				h.core.Inspect()
			}
		})
	}
}

// BenchmarkSettleInspected is BenchmarkObservedComputation with a snapshot once every n events.
func BenchmarkSettleInspected(b *testing.B) {
	for _, every := range []int{1, 1000} {
		b.Run(fmt.Sprint("every=", every), func(b *testing.B) {
			p := benchProgram(b)
			if err := p.Add(NodeSpec{ID: "double", Kind: Computation, Output: "double", Run: func(tx *Tx) (model.Value, error) {
				n, _ := tx.Get("stats", "count").AsInt()
				return model.Int(2 * n), nil
			}}); err != nil {
				b.Fatal(err)
			}
			h := newBench(b, p)
			if err := h.core.Observe("double"); err != nil {
				b.Fatal(err)
			}
			h.settle()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%every == 0 {
					h.core.Inspect()
				}
				h.offer("inc", "e", model.Value{})
				h.settle()
			}
		})
	}
}

// BenchmarkNew measures loading a small space: three computations and a handler.
func BenchmarkNew(b *testing.B) {
	p := dormantProgram(b, 3)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Config{Space: home, Runtime: "w1"}, p, replica.New(home)); err != nil {
			b.Fatal(err)
		}
	}
}
