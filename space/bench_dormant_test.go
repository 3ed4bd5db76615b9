package space

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

var dormantSizes = []int{10_000, 100_000, 1_000_000}

// dormantProgram has n computations that read two documents each.
func dormantProgram(b *testing.B, n int) *Program {
	b.Helper()
	p := NewProgram("dormant")
	for i := range n {
		x, y := fmt.Sprint("in", i), fmt.Sprint("in", i+1)
		sum := func(tx *Tx) (model.Value, error) {
			a, _ := tx.Get(x).AsInt()
			b, _ := tx.Get(y).AsInt()
			return model.Int(a + b), nil
		}
		err := p.Add(NodeSpec{ID: fmt.Sprint("n", i), Kind: Computation, Output: fmt.Sprint("out", i), Volatile: true, Run: sum})
		if err != nil {
			b.Fatal(err)
		}
	}
	return p
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkRegisterDormant makes a space of n unobserved nodes with their read sets, as they are resumed
// after a restart. ns/node and B/node are the cost of each, including its output document and its share of
// the documents that it reads, but not the program. With looked=true a snapshot was taken first.
func BenchmarkRegisterDormant(b *testing.B) {
	for _, n := range dormantSizes {
		p := dormantProgram(b, n)
		saved := observationsOf(p)
		for _, looked := range []bool{false, true} {
			b.Run(fmt.Sprintf("n=%d/looked=%v", n, looked), func(b *testing.B) {
				var bytes uint64
				for b.Loop() {
					b.StopTimer()
					before := heapInUse()
					b.StartTimer()
					core, err := New(Config{Space: home, Runtime: "w1"}, p, replica.New(home))
					if err != nil {
						b.Fatal(err)
					}
					core.Rehydrate(saved)
					if looked {
						core.Inspect()
					}
					b.StopTimer()
					bytes += heapInUse() - before
					runtime.KeepAlive(core)
					b.StartTimer()
				}
				each := float64(b.N) * float64(n)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/each, "ns/node")
				b.ReportMetric(float64(bytes)/each, "B/node")
			})
		}
	}
}

func observationsOf(p *Program) []Observation {
	saved := make([]Observation, len(p.nodes))
	none := fingerprint(model.Value{}, nil, false)
	for i := range saved {
		saved[i] = Observation{Node: p.nodes[i].ID, Shape: p.nodes[i].shape(), Basis: 1, Reads: []Observed{
			{Doc: fmt.Sprint("in", i), Print: none}, {Doc: fmt.Sprint("in", i+1), Print: none},
		}}
	}
	return saved
}

// BenchmarkMatchDormant changes random documents and settles. Of n dormant nodes two read each document: it
// measures matching, marking, and a pass that finds nothing to do.
func BenchmarkMatchDormant(b *testing.B) {
	for _, n := range dormantSizes {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			p := dormantProgram(b, n)
			core, err := New(Config{Space: home, Runtime: "w1"}, p, replica.New(home))
			if err != nil {
				b.Fatal(err)
			}
			core.Rehydrate(observationsOf(p))
			docs := make([]*doc, n)
			for i := range docs {
				docs[i] = core.graph.local(fmt.Sprint("in", i))
			}
			at, v := 0, int64(0)
			b.ReportAllocs()
			for b.Loop() {
				at = (at*1103515245 + 12345) & 0x7fffffff
				v++
				core.graph.change(docs[at%n], model.Int(v), origin{})
			}
			b.ReportMetric(float64(core.Stats().Matched)/float64(b.N), "matched/op")
			if core.Stats().Runs > 0 {
				b.Fatal("a dormant node ran")
			}
		})
	}
}

// BenchmarkMatchHot changes one field of a document of which n dormant nodes read one field each. The change
// concerns one of them.
func BenchmarkMatchHot(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			p := NewProgram("hot")
			saved := make([]Observation, n)
			fields := make([]model.Field, n)
			for i := range n {
				id := fmt.Sprint("n", i)
				path := model.Path{fmt.Sprint("f", i)}
				if err := p.Add(NodeSpec{ID: id, Kind: Computation, Output: id, Run: func(tx *Tx) (model.Value, error) {
					return tx.Get("doc", path...), nil
				}}); err != nil {
					b.Fatal(err)
				}
				saved[i] = Observation{Node: id, Basis: 1, Reads: []Observed{{Doc: "doc", Path: path}}}
				fields[i] = model.F(path[0], model.Int(0))
			}
			core, err := New(Config{Space: home, Runtime: "w1"}, p, replica.New(home))
			if err != nil {
				b.Fatal(err)
			}
			core.Rehydrate(saved)
			d := core.graph.local("doc")
			core.graph.change(d, model.Object(fields...), origin{})
			path := model.Path{"f7"}
			was, v := core.Stats().Matched, int64(0)
			b.ReportAllocs()
			for b.Loop() {
				v++
				w := model.Write{Doc: "doc", Path: path, Value: model.Int(v)}
				after, err := w.Apply(d.value)
				if err != nil {
					b.Fatal(err)
				}
				core.graph.change(d, after, origin{paths: []model.Path{path}})
			}
			b.ReportMetric(float64(core.Stats().Matched-was)/float64(b.N), "matched/op")
		})
	}
}
