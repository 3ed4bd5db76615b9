package space

import (
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
)

// shape is a graph over one mirrored source with outputs that are not logged, so that only the scheduler is
// measured. The standard shapes are in bench/peers, beside other engines.
type shape struct {
	*bench
	p *Program
	n int
	v int64
}

func newShape(b *testing.B) *shape { return &shape{bench: &bench{b: b}, p: NewProgram("shape")} }

func (s *shape) node(n NodeSpec) {
	s.n++
	n.ID = fmt.Sprint("n", s.n)
	if err := s.p.Add(n); err != nil {
		s.b.Fatal(err)
	}
}

// plus adds a computation of 1 more than what it reads; the first one reads the source.
func (s *shape) plus(output, input string) {
	s.node(NodeSpec{Kind: Computation, Output: output, Volatile: true, Run: func(tx *Tx) (model.Value, error) {
		v := model.Value{}
		if input == "" {
			v = tx.GetFrom("src", "s")
		} else {
			v = tx.Get(input)
		}
		n, _ := v.AsInt()
		return model.Int(n + 1), nil
	}})
}

func (s *shape) watch(input string) {
	s.node(NodeSpec{Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		tx.Get(input)
		return model.Value{}, nil
	}})
}

func (s *shape) start() {
	*s.bench = *newBench(s.b, s.p)
	s.core.Settle(0)
	s.update()
}

func (s *shape) update() {
	s.v++
	s.core.Mirror("src", "s", model.Int(s.v))
	for more := true; more; {
		more = s.core.Settle(0).More
	}
}

// run reports the time per update, and the work per update.
func (s *shape) run() {
	s.start()
	before := s.core.Stats()
	s.b.ReportAllocs()
	for s.b.Loop() {
		s.update()
	}
	after := s.core.Stats()
	per := func(a, b uint64) float64 { return float64(a-b) / float64(s.b.N) }
	s.b.ReportMetric(per(after.Runs, before.Runs), "runs/op")
	s.b.ReportMetric(per(after.Visits, before.Visits), "visits/op")
	s.b.ReportMetric(per(after.IndexWrites, before.IndexWrites), "indexwrites/op")
	s.b.ReportMetric(float64(s.b.Elapsed().Nanoseconds())/float64(after.Runs-before.Runs), "ns/run")
}

func BenchmarkShape(b *testing.B) {
	b.Run("broad", func(b *testing.B) {
		s := newShape(b)
		for i := range 50 {
			a, c := fmt.Sprint("a", i), fmt.Sprint("b", i)
			s.plus(a, "")
			s.plus(c, a)
			s.watch(c)
		}
		s.run()
	})
	b.Run("unstable", func(b *testing.B) {
		s := newShape(b)
		s.plus("double", "")
		s.plus("inverse", "")
		s.node(NodeSpec{Kind: Computation, Output: "current", Volatile: true, Run: func(tx *Tx) (model.Value, error) {
			total := int64(0)
			for range 20 {
				branch := "inverse"
				if n, _ := tx.GetFrom("src", "s").AsInt(); n%2 == 1 {
					branch = "double"
				}
				n, _ := tx.Get(branch).AsInt()
				total += n
			}
			return model.Int(total), nil
		}})
		s.watch("current")
		s.run()
	})
	b.Run("repeated", func(b *testing.B) {
		s := newShape(b)
		s.node(NodeSpec{Kind: Computation, Output: "sum", Volatile: true, Run: func(tx *Tx) (model.Value, error) {
			total := int64(0)
			for range 30 {
				n, _ := tx.GetFrom("src", "s").AsInt()
				total += n
			}
			return model.Int(total), nil
		}})
		s.watch("sum")
		s.run()
	})
	b.Run("deep", func(b *testing.B) {
		s := newShape(b)
		last := ""
		for i := range 50 {
			next := fmt.Sprint("c", i)
			s.plus(next, last)
			last = next
		}
		s.watch(last)
		s.run()
	})
}
