package main

import (
	"fmt"
	"math"
)

// grid is one of the "dynamic" graphs of reactively: rows of nodes, each of which reads some neighbours in the
// row above. Some nodes choose their reads by a value, and not all of the last row is observed.
type grid struct {
	name          string
	width, layers int // layers include the sources
	reads         int // the number of neighbours that a node reads
	static        float64
	observed      float64 // the share of the last row
	iterations    int     // of one repetition
	// Results of one repetition after two others: the sum of the observed values, and the number of runs of
	// computeds.
	sum  float64
	runs int
}

// grids have the sums and counts that upstream publishes.
var grids = []grid{
	{"2-10x5-lazy80", 10, 5, 2, 1, 0.2, 600000, 19199968, 3480000},
	{"6-10x10-dyn25-lazy80", 10, 10, 6, .75, 0.2, 15000, 302310782860, 1155000},
	{"4-1000x12-dyn5", 1000, 12, 4, .95, 1, 7000, 29355933696000, 1463000},
	{"25-1000x5", 1000, 5, 25, 1, 1, 3000, 1171484375000, 732000},
	{"3-5x500", 5, 500, 3, 1, 1, 500, 3.0239642676898464e241, 1246500},
	{"6-100x15-dyn50", 100, 15, 6, .5, 1, 2000, 15664996402790400, 1078000},
}

var dynamics = func() []*shape {
	var all []*shape
	for _, g := range grids {
		all = append(all, g.shape())
	}
	return all
}()

func (g grid) shape() *shape {
	return &shape{name: g.name, group: "dynamic", updates: g.iterations, runs: g.runs, build: g.build}
}

// build makes a whole repetition one iteration. It does not count runs of the one effect that reads all
// observed nodes.
func (g grid) build(w *world) func(int) {
	sources, leaves := g.graph(w)
	var seen float64
	w.effect(func() {
		sum := 0.0
		for i := len(leaves) - 1; i >= 0; i-- {
			sum += leaves[i].get()
		}
		seen = sum
	}, leaves...)
	w.start()
	return func(repetition int) {
		for i := range g.iterations {
			at := i % g.width
			sources[at].set(float64(i + at))
		}
		if repetition > 0 {
			// At 1e241 the sum depends on the order of additions, and upstream's order is another one.
			if math.Abs(seen-g.sum) > 1e-12*g.sum {
				w.check("the sum of the observed leaves", seen, g.sum)
			}
		}
	}
}

func (g grid) graph(w *world) (sources []source, observed []cell) {
	random := seeded("seed")
	row := make([]cell, g.width)
	for i := range row {
		s := w.source(float64(i))
		sources = append(sources, s)
		row[i] = s
	}
	for range g.layers - 1 {
		next := make([]cell, g.width)
		for i := range next {
			reads := make([]cell, g.reads)
			for j := range reads {
				reads[j] = row[(i+j)%g.width]
			}
			if random() < g.static {
				next[i] = w.sum(reads)
			} else {
				next[i] = w.choosy(reads)
			}
		}
		row = next
	}
	random = seeded("seed")
	for range int(math.Round(float64(g.width) * (1 - g.observed))) {
		at := int(random() * float64(len(row)))
		row = append(row[:at:at], row[at+1:]...)
	}
	return sources, row
}

// choosy leaves one of its reads out if the first is odd.
func (w *world) choosy(reads []cell) cell {
	first, tail := reads[0], reads[1:]
	return w.computed(func() float64 {
		w.runs++
		sum := first.get()
		drop := -1
		if math.Mod(sum, 2) == 1 {
			drop = int(math.Mod(sum, float64(len(tail))))
		}
		for i, c := range tail {
			if i != drop {
				sum += c.get()
			}
		}
		return sum
	}, reads...)
}

// seeded returns the generator sfc32, seeded with the murmur hash of a string as upstream does it, so that the
// graphs are the same.
func seeded(seed string) func() float64 {
	h := uint32(2166136261)
	for _, c := range []byte(seed) {
		k := uint32(c) * 3432918353
		k = k<<15 | k>>17
		h ^= k * 461845907
		h = h<<13 | h>>19
		h = h*5 + 3864292196
	}
	h ^= uint32(len(seed))
	mix := func() uint32 {
		h ^= h >> 16
		h *= 2246822507
		h ^= h >> 13
		h *= 3266489909
		h ^= h >> 16
		return h
	}
	a, b, c, d := mix(), mix(), mix(), mix()
	return func() float64 {
		t := a + b
		a = b ^ b>>9
		b = c + c<<3
		c = c<<21 | c>>11
		d++
		t += d
		c += t
		return float64(t) / (1 << 32)
	}
}

// trees are sums of 2^k sources by pairs, one of which is written. They measure memory that is not in a cache.
var trees = []*shape{tree(10), tree(16), tree(20)}

func tree(k int) *shape {
	const step = 256 // updates of an iteration
	build := func(w *world) func(int) {
		n := 1 << k
		sources := make([]source, n)
		values := make([]float64, n)
		row := make([]cell, n)
		for i := range row {
			sources[i] = w.source(0)
			row[i] = sources[i]
		}
		for len(row) > 1 {
			next := make([]cell, len(row)/2)
			for i := range next {
				a, b := row[2*i], row[2*i+1]
				next[i] = w.computed(func() float64 { w.runs++; return a.get() + b.get() }, a, b)
			}
			row = next
		}
		seen := w.watch(row[0])
		w.start()
		at, total, v := 0, 0.0, 0.0
		return func(int) {
			for range step {
				at = (at*1103515245 + 12345) % n
				v++
				total += v - values[at]
				values[at] = v
				sources[at].set(v)
				w.check("the sum", *seen, total)
			}
		}
	}
	return &shape{name: fmt.Sprint("tree", k), group: "tree", updates: step, runs: step * (k + 1), build: build}
}
