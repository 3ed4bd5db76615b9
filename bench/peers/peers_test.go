package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// plain is a naive engine, the oracle: after every update it computes everything, in the order of creation.
type plain struct {
	bodies  []func()
	batched bool
}

type plainCell struct {
	e *plain
	v float64
}

func (c *plainCell) get() float64 { return c.v }

func (c *plainCell) set(v float64) {
	c.v = v
	if !c.e.batched {
		c.e.start()
	}
}

func (e *plain) source(v float64) source { return &plainCell{e, v} }

func (e *plain) computed(body func() float64, _ ...cell) cell {
	c := &plainCell{e: e}
	e.bodies = append(e.bodies, func() { c.v = body() })
	return c
}

func (e *plain) effect(body func(), _ ...cell) { e.bodies = append(e.bodies, body) }

func (e *plain) start() {
	for _, body := range e.bodies {
		body()
	}
}

func (e *plain) batch(fn func()) {
	e.batched = true
	fn()
	e.batched = false
	e.start()
}

func (e *plain) close() {}

// isolated runs fn on a goroutine of its own, as measure does.
func isolated(t *testing.T, fn func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		err := fmt.Errorf("it ended without an answer")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
			done <- err
		}()
		err = fn()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// contract runs some iterations of a shape and checks values and run counts.
func contract(c *contender, s *shape, iterations int) error {
	w := &world{engine: c.make()}
	defer w.close()
	iterate := s.build(w)
	before := w.runs
	for i := range iterations {
		before = w.runs
		iterate(i)
		if w.wrong != nil {
			return fmt.Errorf("iteration %d: %w", i, w.wrong)
		}
	}
	if s.once {
		before = 0
	}
	r := result{runs: float64(w.runs-before) / float64(s.updates)}
	if s.differs(r) && c.excuse(s) == "" {
		return fmt.Errorf("%v runs per update instead of %v", r.runs, s.expected())
	}
	return nil
}

func TestEveryEngineMeetsTheContract(t *testing.T) {
	var all []*shape
	for _, s := range shapes {
		// The dynamic graphs have a test of their own, and the others left out are only large.
		if s.group != "dynamic" && s.group != "create" && s.name != "tree16" && s.name != "tree20" {
			all = append(all, s)
		}
	}
	all = append(all, creations(2000)...)
	for _, c := range contenders {
		for _, s := range all {
			if c.skips(s) != "" {
				continue
			}
			t.Run(c.name+"/"+s.name, func(t *testing.T) {
				iterations := 4
				if s.once {
					iterations = 1
				}
				isolated(t, func() error { return contract(c, s, iterations) })
			})
		}
	}
}

// smaller returns a grid with fewer iterations, and its results.
func (g grid) smaller(iterations int) grid {
	g.iterations, g.sum = iterations, 0
	w := &world{engine: &plain{}}
	iterate := g.build(w)
	iterate(0)
	iterate(1)
	// The error has the difference from the sum 0.
	_, _ = fmt.Sscanf(w.wrong.Error(), "the sum of the observed leaves is %g instead", &g.sum)
	g.runs = 0
	return g
}

func TestEveryEngineMeetsTheSumsOfTheDynamicGraphs(t *testing.T) {
	for _, g := range grids {
		g = g.smaller(40)
		for _, c := range contenders {
			if c.skips(g.shape()) != "" {
				continue
			}
			t.Run(c.name+"/"+g.name, func(t *testing.T) {
				isolated(t, func() error {
					w := &world{engine: c.make()}
					defer w.close()
					iterate := g.build(w)
					for i := range 3 {
						iterate(i)
					}
					return w.wrong
				})
			})
		}
	}
}

// The graphs have the sums and counts that upstream publishes.
func TestThePublishedSumsAndCounts(t *testing.T) {
	floor, err := contenderNamed("floor")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grids {
		t.Run(g.name, func(t *testing.T) {
			isolated(t, func() error { return contract(floor, g.shape(), 3) })
		})
	}
}

// TestRandomGraphs compares every engine with the plain one on graphs whose nodes choose some of their reads by
// the values of others.
func TestRandomGraphs(t *testing.T) {
	for _, c := range contenders {
		if c.cannot["random"] != "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(60) {
				isolated(t, func() error { return compare(c, seed) })
			}
		})
	}
}

func compare(c *contender, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 1))
	e := c.make()
	defer e.close()
	ours, theirs := randomGraph(e, rand.New(rand.NewPCG(seed, 2))), randomGraph(&plain{}, rand.New(rand.NewPCG(seed, 2)))
	for step := range 40 {
		writes := make([]func(g *graph), 1+random.IntN(3))
		for i := range writes {
			at, v := random.IntN(len(ours.sources)), float64(random.IntN(4))
			writes[i] = func(g *graph) { g.sources[at].set(v) }
		}
		for _, g := range []*graph{ours, theirs} {
			g.e.batch(func() {
				for _, write := range writes {
					write(g)
				}
			})
		}
		for i := range ours.seen {
			if got, want := ours.seen[i], theirs.seen[i]; got != want {
				return fmt.Errorf("seed %d, step %d: effect %d saw %v instead of %v", seed, step, i, got, want)
			}
		}
	}
	return nil
}

type graph struct {
	e       engine
	sources []source
	seen    []float64
}

func randomGraph(e engine, random *rand.Rand) *graph {
	g := &graph{e: e}
	var cells []cell
	for range 2 + random.IntN(4) {
		s := e.source(float64(random.IntN(4)))
		g.sources = append(g.sources, s)
		cells = append(cells, s)
	}
	for range 3 + random.IntN(20) {
		reads := make([]cell, 2+random.IntN(4))
		for i := range reads {
			reads[i] = cells[random.IntN(len(cells))]
		}
		modulus := float64(2 + random.IntN(5))
		cells = append(cells, e.computed(func() float64 {
			v := reads[0].get()
			chosen := reads[1+int(v)%(len(reads)-1)]
			return math.Mod(v+2*chosen.get(), modulus)
		}, reads...))
	}
	g.seen = make([]float64, 1+random.IntN(5))
	for i := range g.seen {
		c := cells[random.IntN(len(cells))]
		e.effect(func() { g.seen[i] = c.get() }, c)
	}
	e.start()
	return g
}

func TestTheCommandPrintsEveryColumn(t *testing.T) {
	var out, progress bytes.Buffer
	err := run([]string{"-shapes", "^(diamond|unstable|update1to1|create1to1)$", "-rounds", "1", "-time", "1ms"}, &out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Standard shapes", "## Creation of effects", "| diamond ", "| unstable ", "| create1to1 ",
		"floor", "alien", "go-incr", "coregx is left out of create1to1",
		"Values are as they must be, and so are all run counts but these:",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing says %q in\n%s", want, &out)
		}
	}
	if err := run([]string{"-engines", "abacus"}, &out, &progress); err == nil {
		t.Error("an engine that does not exist is measured")
	}
}
