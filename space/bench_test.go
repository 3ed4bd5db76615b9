package space

import (
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// bench is the simplest possible host: every append is accepted at once.
type bench struct {
	b    *testing.B
	core *Space
	seq  uint64
	lane uint64
}

func newBench(b *testing.B, p *Program) *bench {
	b.Helper()
	core, err := New(Config{Space: home, Runtime: "w1"}, p, replica.New(home))
	if err != nil {
		b.Fatal(err)
	}
	h := &bench{b: b, core: core}
	core.TakeOver()
	h.settle()
	return h
}

func (h *bench) settle() {
	for {
		r := h.core.Settle(0)
		if r.Append != nil {
			h.seq++
			if err := h.core.Confirm(h.seq); err != nil {
				h.b.Fatal(err)
			}
		} else if !r.More {
			return
		}
	}
}

func (h *bench) offer(stream, id string, payload model.Value) {
	h.lane++
	if !h.core.Offer(model.Event{Space: home, Stream: stream, ID: id, Payload: payload, Lane: h.lane}) {
		h.b.Fatal("no room")
	}
}

func increment(tx *Tx, _ *model.Event) (model.Value, error) {
	n, _ := tx.Get("stats", "count").AsInt()
	tx.Set("stats", model.Int(n+1), "count")
	return model.Value{}, nil
}

func benchProgram(b *testing.B) *Program {
	b.Helper()
	p := NewProgram("bench")
	if err := p.Handle("inc", increment); err != nil {
		b.Fatal(err)
	}
	return p
}

// Clients mint ids, so their cost is not the core's.
func eventIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("event-%08d", i)
	}
	return ids
}

// BenchmarkCounterEvent measures one event: offered, handled, encoded, sealed and confirmed in a group of
// 256.
func BenchmarkCounterEvent(b *testing.B) {
	const group = 256
	h := newBench(b, benchProgram(b))
	ids := eventIDs(group)
	payload := model.Int(1)
	b.ReportAllocs()
	for n := 0; n < b.N; n += group {
		for i := range group {
			h.offer("inc", ids[i], payload)
		}
		h.settle()
	}
	if got := h.core.Stats().Handled; got < uint64(b.N) {
		b.Fatalf("%d of %d handled", got, b.N)
	}
}

// BenchmarkObservedComputation measures one event, and the run of the one observed computation that reads
// what it changed, in a commit of their own.
func BenchmarkObservedComputation(b *testing.B) { observedComputation(b, false) }

// BenchmarkRecordedComputation is the same while the space records its runs and what triggers them, as after a question.
func BenchmarkRecordedComputation(b *testing.B) { observedComputation(b, true) }

func observedComputation(b *testing.B, recorded bool) {
	p := benchProgram(b)
	err := p.Add(NodeSpec{ID: "double", Kind: Computation, Output: "double", Run: func(tx *Tx) (model.Value, error) {
		n, _ := tx.Get("stats", "count").AsInt()
		return model.Int(2 * n), nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	h := newBench(b, p)
	h.core.Recorder().RecordRuns(recorded)
	h.core.Recorder().RecordTriggers(recorded)
	if err := h.core.Observe("double"); err != nil {
		b.Fatal(err)
	}
	h.settle()
	b.ReportAllocs()
	for b.Loop() {
		h.offer("inc", "e", model.Value{})
		h.settle()
	}
}

// BenchmarkSettleComputation measures the pass alone: a document changes, and the observed computation that
// reads it runs.
func BenchmarkSettleComputation(b *testing.B) {
	for _, nodes := range []int{1, 100, 10000} {
		b.Run(fmt.Sprint("dormant=", nodes-1), func(b *testing.B) {
			p := benchProgram(b)
			for i := range nodes {
				err := p.Add(NodeSpec{ID: fmt.Sprint("n", i), Kind: Computation, Output: fmt.Sprint("out", i), Run: func(tx *Tx) (model.Value, error) {
					n, _ := tx.Get(fmt.Sprint("in", i)).AsInt()
					return model.Int(n % 2), nil
				}})
				if err != nil {
					b.Fatal(err)
				}
			}
			h := newBench(b, p)
			if err := h.core.Observe("out0"); err != nil {
				b.Fatal(err)
			}
			h.settle()
			in := h.core.graph.local("in0")
			n := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				n += 2 // the output does not change, so nothing is committed
				h.core.graph.change(in, model.Int(n), origin{})
				h.core.Settle(0)
			}
		})
	}
}

// BenchmarkGatedEvent measures an event whose handler reads a derived document that the previous event has
// changed: two attempts and a run.
func BenchmarkGatedEvent(b *testing.B) {
	p := NewProgram("bench")
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(p.Handle("inc", func(tx *Tx, _ *model.Event) (model.Value, error) {
		n, _ := tx.Get("double").AsInt()
		tx.Set("count", model.Int(n/2+1))
		return model.Value{}, nil
	}))
	must(p.Add(NodeSpec{ID: "double", Kind: Computation, Output: "double", Run: func(tx *Tx) (model.Value, error) {
		n, _ := tx.Get("count").AsInt()
		return model.Int(2 * n), nil
	}}))
	h := newBench(b, p)
	const group = 256
	ids := eventIDs(group)
	b.ReportAllocs()
	for n := 0; n < b.N; n += group {
		for i := range group {
			h.offer("inc", ids[i], model.Value{})
		}
		h.settle()
	}
}

// BenchmarkWideReader measures one computation that reads a thousand documents, one of which changes.
func BenchmarkWideReader(b *testing.B) {
	p := benchProgram(b)
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("in", i)
	}
	err := p.Add(NodeSpec{ID: "sum", Kind: Computation, Output: "sum", Run: func(tx *Tx) (model.Value, error) {
		total := int64(0)
		for _, name := range names {
			n, _ := tx.Get(name).AsInt()
			total += n
		}
		return model.Int(total % 2), nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	h := newBench(b, p)
	if err := h.core.Observe("sum"); err != nil {
		b.Fatal(err)
	}
	h.settle()
	in := h.core.graph.local("in500")
	n := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		n += 2
		h.core.graph.change(in, model.Int(n), origin{})
		h.core.Settle(0)
	}
}
