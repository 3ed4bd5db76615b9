package space

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/settlehq/settle/model"
)

// Benchmarks of standard graph shapes, with everything that a space does: a change is a transaction of the
// application, outputs go into commits, and commits are confirmed at once. Building the graph is not
// measured. The reported counts are the figures to compare.

// seedShape is a program and a space that runs it.
type seedShape struct {
	*bench
	p *Program
	v int64
	e int
}

func newSeedShape(b *testing.B) *seedShape {
	b.Helper()
	return &seedShape{bench: &bench{b: b}, p: NewProgram("seed")}
}

func (s *seedShape) add(n NodeSpec) {
	s.b.Helper()
	if err := s.p.Add(n); err != nil {
		s.b.Fatal(err)
	}
}

// sum adds a computation of one more than the sum of what it reads.
func (s *seedShape) sum(output string, inputs ...string) {
	s.add(NodeSpec{ID: output, Kind: Computation, Output: output, Run: func(tx *Tx) (model.Value, error) {
		total := int64(1)
		for _, in := range inputs {
			n, _ := tx.Get(in).AsInt()
			total += n
		}
		return model.Int(total), nil
	}})
}

// effects adds n effects that read all of inputs.
func (s *seedShape) effects(n int, inputs ...string) {
	for i := range n {
		s.add(NodeSpec{ID: fmt.Sprintf("watch-%s-%d", inputs[0], i), Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
			for _, in := range inputs {
				tx.Get(in)
			}
			return model.Value{}, nil
		}})
	}
}

// reader adds a handler that reads documents and records what it has seen.
func (s *seedShape) reader(stream string, read func(tx *Tx)) {
	err := s.p.Handle(stream, func(tx *Tx, _ *model.Event) (model.Value, error) {
		read(tx)
		return model.Value{}, nil
	})
	if err != nil {
		s.b.Fatal(err)
	}
}

func (s *seedShape) start() {
	*s.bench = *newBench(s.b, s.p)
	s.set("src")
	s.settle()
}

// set gives documents new values.
func (s *seedShape) set(docs ...string) {
	s.v++
	_, err := s.core.Transact("bench", func(tx *Tx) error {
		for _, doc := range docs {
			tx.Set(doc, model.Int(s.v))
		}
		return nil
	})
	if err != nil {
		s.b.Fatal(err)
	}
}

func (s *seedShape) send(stream string) {
	s.e++
	s.offer(stream, "e"+strconv.Itoa(s.e), model.Value{})
	s.settle()
}

func (s *seedShape) observe(doc string) {
	if err := s.core.Observe(doc); err != nil {
		s.b.Fatal(err)
	}
}

// run measures op, and counts its work.
func (s *seedShape) run(op func()) {
	s.b.Helper()
	for range 3 { // until reads and buffers have reached their final sizes
		op()
	}
	was := s.core.Stats()
	s.b.ReportAllocs()
	for s.b.Loop() {
		op()
	}
	is := s.core.Stats()
	per := func(a, b uint64) float64 { return float64(a-b) / float64(s.b.N) }
	s.b.ReportMetric(per(is.Runs, was.Runs), "runs/op")
	s.b.ReportMetric(per(is.Visits, was.Visits), "visits/op")
	s.b.ReportMetric(per(is.Matched, was.Matched), "matched/op")
	s.b.ReportMetric(per(is.IndexWrites, was.IndexWrites), "indexwrites/op")
}

// update changes documents and settles.
func (s *seedShape) update(docs ...string) func() {
	return func() {
		s.set(docs...)
		s.settle()
	}
}

func docNames(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
	}
	return names
}

func BenchmarkSeedSettle(b *testing.B) {
	shape := func(name string, build func(s *seedShape) (op func())) {
		b.Run(name, func(b *testing.B) {
			s := newSeedShape(b)
			op := build(s)
			s.start()
			s.run(op)
		})
	}
	shape("100 computations of one document", func(s *seedShape) func() {
		outs := docNames("c", 100)
		for _, out := range outs {
			s.sum(out, "src")
		}
		s.effects(1, outs...)
		return s.update("src")
	})
	shape("wide, 100 readers", func(s *seedShape) func() {
		s.effects(100, "src")
		return s.update("src")
	})
	shape("100 documents in a line of neighbours", func(s *seedShape) func() {
		docs := docNames("d", 100)
		for i := range 99 {
			s.sum(fmt.Sprint("n", i), docs[i], docs[i+1])
			s.effects(1, fmt.Sprint("n", i))
		}
		return s.update(docs...)
	})
	shape("50 levels", func(s *seedShape) func() {
		s.chain("c", 50)
		s.effects(1, "c49")
		return s.update("src")
	})
	shape("10 diamonds", func(s *seedShape) func() {
		for i := range 10 {
			l, r, m := fmt.Sprint("l", i), fmt.Sprint("r", i), fmt.Sprint("m", i)
			s.sum(l, "src")
			s.sum(r, "src")
			s.sum(m, l, r)
			s.effects(1, m)
		}
		return s.update("src")
	})
	shape("20 links, written three times", func(s *seedShape) func() {
		s.chain("c", 20)
		s.effects(1, "c19")
		return func() {
			s.set("src")
			s.set("src")
			s.set("src")
			s.settle()
		}
	})
	shape("chain of three", func(s *seedShape) func() {
		s.chain("c", 3)
		s.effects(1, "c2")
		return s.update("src")
	})
	shape("hub, 64 leaves, one effect", func(s *seedShape) func() {
		s.sum("hub", "src")
		leaves := docNames("leaf", 64)
		for _, l := range leaves {
			s.sum(l, "hub")
		}
		s.effects(1, leaves...)
		return s.update("src")
	})
	shape("a computation that flips between two sources", func(s *seedShape) func() {
		s.sum("left", "src")
		s.sum("right", "src")
		s.add(NodeSpec{ID: "flip", Kind: Computation, Output: "flip", Run: func(tx *Tx) (model.Value, error) {
			if n, _ := tx.Get("src").AsInt(); n%2 == 0 {
				return tx.Get("left"), nil
			}
			return tx.Get("right"), nil
		}})
		s.effects(1, "flip")
		return s.update("src")
	})
	shape("unchanged output", func(s *seedShape) func() {
		s.add(NodeSpec{ID: "const", Kind: Computation, Output: "const", Run: func(tx *Tx) (model.Value, error) {
			tx.Get("src")
			return model.Int(1), nil
		}})
		s.effects(1, "const")
		return s.update("src")
	})
	shape("50 effects of one computation", func(s *seedShape) func() {
		s.sum("out", "src")
		s.effects(50, "out")
		return s.update("src")
	})
	shape("200 effects of one computation", func(s *seedShape) func() {
		s.sum("out", "src")
		s.effects(200, "out")
		return s.update("src")
	})
}

// chain adds computations: prefix0 of src, and each next one of the one before.
func (s *seedShape) chain(prefix string, n int) {
	last := "src"
	for i := range n {
		next := fmt.Sprint(prefix, i)
		s.sum(next, last)
		last = next
	}
}

func BenchmarkSeedDemand(b *testing.B) {
	shape := func(name string, build func(s *seedShape), op func(s *seedShape)) {
		b.Run(name, func(b *testing.B) {
			s := newSeedShape(b)
			s.chain("c", 2)
			s.reader("look", func(tx *Tx) { tx.Set("seen", tx.Get("c1")) })
			build(s)
			s.start()
			s.run(func() { op(s) })
		})
	}
	shape("24 effects", func(s *seedShape) { s.effects(24, "c1") }, func(s *seedShape) { s.update("src")() })
	shape("an event", func(*seedShape) {}, func(s *seedShape) {
		s.set("src")
		s.send("look")
	})
	shape("24 effects and an event", func(s *seedShape) { s.effects(24, "c1") }, func(s *seedShape) {
		s.set("src")
		s.send("look")
	})
	shape("observe and unobserve", func(*seedShape) {}, func(s *seedShape) {
		s.observe("c1")
		s.core.Unobserve("c1")
	})
	shape("pull", func(*seedShape) {}, func(s *seedShape) {
		s.set("src")
		s.observe("c1")
		s.settle()
		s.core.Unobserve("c1")
	})
	shape("a parent makes and clears 12 effects", func(s *seedShape) {
		s.add(NodeSpec{ID: "parent", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
			if n, _ := tx.Get("src").AsInt(); n%2 == 0 {
				return model.Value{}, nil
			}
			for i := range 12 {
				tx.Node(NodeSpec{ID: fmt.Sprint("child", i), Kind: Effect, Run: func(tx *Tx) (model.Value, error) { return tx.Get("c1"), nil }})
			}
			return model.Value{}, nil
		}})
	}, func(s *seedShape) {
		s.update("src")()
		s.update("src")()
	})
}

func BenchmarkSeedPreflight(b *testing.B) {
	broad := func(s *seedShape) {
		s.sum("shared", "src")
		writers := docNames("w", 512)
		for _, w := range writers {
			s.sum(w, "shared")
		}
		s.sum("target", writers...)
		s.reader("look", func(tx *Tx) { tx.Set("seen", tx.Get("target")) })
		s.reader("note", func(tx *Tx) { tx.Set("note", tx.Get("shared")) })
	}
	shape := func(name string, build, op func(s *seedShape)) {
		b.Run(name, func(b *testing.B) {
			s := newSeedShape(b)
			build(s)
			s.start()
			s.send("look")
			s.run(func() { op(s) })
		})
	}
	shape("clean, 512 wide, dormant", broad, func(s *seedShape) { s.send("look") })
	shape("clean, 512 wide, observed", func(s *seedShape) { broad(s); s.effects(1, "target") }, func(s *seedShape) { s.send("look") })
	shape("stale at the far end of a chain", func(s *seedShape) {
		s.chain("c", 3)
		s.reader("look", func(tx *Tx) { tx.Set("seen", tx.Get("c2")) })
	}, func(s *seedShape) {
		s.set("src")
		s.send("look")
	})
	shape("seven events beside 512", broad, func(s *seedShape) {
		for range 7 {
			s.send("note")
		}
	})
	shape("a closure of 660 deep and 330 shallow reads", func(s *seedShape) {
		deepDocs, flatDocs := docNames("deep", 660), docNames("flat", 330)
		for _, doc := range append(docNames("deep", 660), flatDocs...) {
			s.sum(doc, "src")
		}
		s.reader("look", func(tx *Tx) {
			for _, doc := range deepDocs {
				tx.Get(doc)
			}
			for _, doc := range flatDocs {
				tx.GetShallow(doc)
			}
			tx.Set("seen", model.Int(1))
		})
	}, func(s *seedShape) { s.send("look") })
}

func BenchmarkSeedMaterializer(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint("one of ", n, " keys"), func(b *testing.B) {
			s := newSeedShape(b)
			s.add(NodeSpec{
				ID: "fill", Kind: Computation, Envelope: []Address{{Doc: "table"}},
				Run: func(tx *Tx) (model.Value, error) {
					v, _ := tx.Get("src").AsInt()
					tx.Set("table", model.Int(v), "k7")
					return model.Value{}, nil
				},
			})
			for i := range n {
				key := fmt.Sprint("k", i)
				s.add(NodeSpec{ID: "e" + key, Kind: Effect, Run: func(tx *Tx) (model.Value, error) { return tx.Get("table", key), nil }})
			}
			s.start()
			s.run(s.update("src"))
		})
	}
	b.Run("static control", func(b *testing.B) {
		s := newSeedShape(b)
		s.sum("out", "src")
		s.effects(1, "out")
		s.start()
		s.run(s.update("src"))
	})
}

// BenchmarkSeedResume is a restart with saved observations after which none, or one, of n nodes has to run.
func BenchmarkSeedResume(b *testing.B) {
	for _, n := range []int{100, 1000} {
		for _, dirty := range []int{0, 1} {
			b.Run(fmt.Sprintf("%d nodes, %d dirty", n, dirty), func(b *testing.B) {
				s := newSeedShape(b)
				for i := range n {
					s.sum(fmt.Sprint("c", i), fmt.Sprint("in", i))
					s.effects(1, fmt.Sprint("c", i))
				}
				s.start()
				saved, _ := s.core.Observations()
				confirmed := s.core.replica()
				b.ReportAllocs()
				var runs uint64
				for b.Loop() {
					core, err := New(Config{Space: home, Runtime: "w1"}, s.p, confirmed.Clone())
					if err != nil {
						b.Fatal(err)
					}
					core.Rehydrate(saved)
					again := bench{b: b, core: core, seq: s.seq}
					core.TakeOver()
					again.settle()
					if dirty > 0 {
						if _, err := core.Transact("bench", func(tx *Tx) error { tx.Set("in7", 7); return nil }); err != nil {
							b.Fatal(err)
						}
						again.settle()
					}
					runs += core.Stats().Runs
				}
				b.ReportMetric(float64(runs)/float64(b.N), "runs/op")
			})
		}
	}
}
