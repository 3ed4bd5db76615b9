package main

import "fmt"

// shape is a graph and the updates of one iteration.
type shape struct {
	name  string
	group string
	// updates is the number of updates in an iteration, and runs the number of body runs that they cost a
	// demand-driven, glitch-free engine that cuts off at equal values. Both hold from the second iteration on.
	updates int
	runs    int
	// once is set if each iteration needs a new engine.
	once bool
	// build returns the function that makes iteration i and checks the values. Bodies count their runs in
	// w.runs.
	build func(w *world) (iterate func(i int))
}

// world is a shape on an engine.
type world struct {
	engine
	runs  int
	wrong error // the first wrong value
}

func (w *world) check(what string, got, want float64) {
	if got != want && w.wrong == nil {
		w.wrong = fmt.Errorf("%s is %v instead of %v", what, got, want)
	}
}

// plusOne returns a computed that reads one cell and adds 1.
func (w *world) plusOne(c cell) cell {
	return w.computed(func() float64 {
		w.runs++
		return c.get() + 1
	}, c)
}

// watch adds an effect that stores the value of a cell.
func (w *world) watch(c cell) *float64 {
	seen := new(float64)
	w.effect(func() {
		w.runs++
		*seen = c.get()
	}, c)
	return seen
}

// sweep writes 1 and then 0 to n-1, and checks the result of each.
func (w *world) sweep(head source, n int, seen *float64, want func(v float64) float64) func(int) {
	return func(int) {
		head.set(1)
		w.check("after 1: the last value", *seen, want(1))
		for v := range n {
			head.set(float64(v))
			w.check("the last value", *seen, want(float64(v)))
		}
	}
}

var shapes = func() []*shape {
	all := append([]*shape{}, kairo...)
	all = append(all, molShape, cellx(1000, -3, -6, -2, 2, -2, -4, 2, 3), cellx(2500, -3, -6, -2, 2, -2, -4, 2, 3))
	all = append(all, updates...)
	all = append(all, dynamics...)
	all = append(all, trees...)
	return append(all, creations(100000)...)
}()

// kairo are the shapes of that name in js-reactivity-benchmark.
var kairo = []*shape{
	{
		// The change ends at the second of five nodes, and no node downstream runs.
		name: "avoidable", group: "standard", updates: 1001, runs: 2002,
		build: func(w *world) func(int) {
			head := w.source(0)
			c1 := w.computed(func() float64 { w.runs++; return head.get() }, head)
			c2 := w.computed(func() float64 { w.runs++; c1.get(); return 0 }, c1)
			c3 := w.computed(func() float64 { w.runs++; return busy() + c2.get() + 1 }, c2)
			c4 := w.computed(func() float64 { w.runs++; return c3.get() + 2 }, c3)
			c5 := w.computed(func() float64 { w.runs++; return c4.get() + 3 }, c4)
			seen := new(float64)
			w.effect(func() { w.runs++; *seen = c5.get() + busy() }, c5)
			w.start()
			return w.sweep(head, 1000, seen, func(float64) float64 { return 6 })
		},
	},
	{
		name: "broad", group: "standard", updates: 51, runs: 7650,
		build: func(w *world) func(int) {
			head := w.source(0)
			var seen *float64
			for i := range 50 {
				a := w.computed(func() float64 { w.runs++; return head.get() + float64(i) }, head)
				seen = w.watch(w.plusOne(a))
			}
			w.start()
			return w.sweep(head, 50, seen, func(v float64) float64 { return v + 50 })
		},
	},
	{
		name: "deep", group: "standard", updates: 51, runs: 2601,
		build: func(w *world) func(int) {
			head := w.source(0)
			c := cell(head)
			for range 50 {
				c = w.plusOne(c)
			}
			seen := w.watch(c)
			w.start()
			return w.sweep(head, 50, seen, func(v float64) float64 { return v + 50 })
		},
	},
	{
		name: "diamond", group: "standard", updates: 501, runs: 3507,
		build: func(w *world) func(int) {
			head := w.source(0)
			sides := make([]cell, 5)
			for i := range sides {
				sides[i] = w.plusOne(head)
			}
			seen := w.watch(w.sum(sides))
			w.start()
			return w.sweep(head, 500, seen, func(v float64) float64 { return 5 * (v + 1) })
		},
	},
	{
		name: "mux", group: "standard", updates: 18, runs: 1854,
		build: mux,
	},
	{
		// A body that reads one cell thirty times has one input.
		name: "repeated", group: "standard", updates: 101, runs: 202,
		build: func(w *world) func(int) {
			head := w.source(0)
			c := w.computed(func() float64 {
				w.runs++
				sum := 0.0
				for range 30 {
					sum += head.get()
				}
				return sum
			}, head)
			seen := w.watch(c)
			w.start()
			return w.sweep(head, 100, seen, func(v float64) float64 { return 30 * v })
		},
	},
	{
		// The last node of the chain has no reader and never runs.
		name: "triangle", group: "standard", updates: 101, runs: 1111,
		build: func(w *world) func(int) {
			head := w.source(0)
			c := cell(head)
			var list []cell
			for range 10 {
				list = append(list, c)
				c = w.plusOne(c)
			}
			seen := w.watch(w.sum(list))
			w.start()
			return w.sweep(head, 100, seen, func(v float64) float64 { return 10*v + 45 })
		},
	},
	{
		// The set of inputs changes with every update.
		name: "unstable", group: "standard", updates: 101, runs: 303,
		build: func(w *world) func(int) {
			head := w.source(0)
			double := w.computed(func() float64 { w.runs++; return 2 * head.get() }, head)
			inverse := w.computed(func() float64 { w.runs++; return -head.get() }, head)
			current := w.computed(func() float64 {
				w.runs++
				sum := 0.0
				for range 20 {
					if int(head.get())&1 == 1 {
						sum += double.get()
					} else {
						sum += inverse.get()
					}
				}
				return sum
			}, head, double, inverse)
			seen := w.watch(current)
			w.start()
			return w.sweep(head, 100, seen, func(v float64) float64 {
				if int(v)&1 == 1 {
					return 40 * v
				}
				return -20 * v
			})
		},
	},
}

func (w *world) sum(cells []cell) cell {
	return w.computed(func() float64 {
		w.runs++
		sum := 0.0
		for _, c := range cells {
			sum += c.get()
		}
		return sum
	}, cells...)
}

var idle int

func busy() float64 {
	for range 100 {
		idle++
	}
	return 0
}

// mux gathers a hundred sources into one vector and splits it again. The vector is new each time, so it has
// always changed: the engine sees its version number. The splits find their element unchanged and cut off
// there.
func mux(w *world) func(int) {
	heads := make([]source, 100)
	reads := make([]cell, 100)
	for i := range heads {
		heads[i] = w.source(0)
		reads[i] = heads[i]
	}
	var vector []float64
	made := 0.0
	m := w.computed(func() float64 {
		w.runs++
		vector = make([]float64, len(heads))
		for i, h := range heads {
			vector[i] = h.get()
		}
		made++
		return made
	}, reads...)
	seen := make([]*float64, 100)
	for i := range seen {
		split := w.computed(func() float64 { w.runs++; m.get(); return vector[i] }, m)
		seen[i] = w.watch(w.plusOne(split))
	}
	w.start()
	return func(int) {
		for _, by := range []float64{1, 2} {
			for i := range 10 {
				v := by * float64(i)
				heads[i].set(v)
				w.check("the element", *seen[i], v+1)
			}
		}
	}
}

// molShape is dominated by the work in its bodies, and one of them is not always read.
var molShape = &shape{
	name: "mol", group: "standard", updates: 2, runs: 13,
	build: func(w *world) func(int) {
		a, b := w.source(0), w.source(0)
		odd := func(c cell) float64 { return float64(int(c.get()) % 2) }
		var vector []float64
		made := 0.0
		c := w.computed(func() float64 { w.runs++; return odd(a) + odd(b) }, a, b)
		d := w.computed(func() float64 {
			w.runs++
			vector = make([]float64, 5)
			for i := range vector {
				vector[i] = float64(i) + odd(a) - odd(b)
			}
			made++
			return made
		}, a, b)
		at := func(i int) float64 { d.get(); return vector[i] }
		e := w.computed(func() float64 { w.runs++; return hard(c.get() + a.get() + at(0)) }, c, a, d)
		f := w.computed(func() float64 {
			w.runs++
			if x := at(2); x != 0 {
				return hard(x)
			}
			return hard(b.get())
		}, d, b)
		g := w.computed(func() float64 {
			w.runs++
			x := c.get()
			if x == 0 {
				x = odd(e)
			}
			return c.get() + x + at(4) + f.get()
		}, c, e, d, f)
		var seen []float64
		w.effect(func() { w.runs++; seen = append(seen, hard(g.get())) }, g)
		w.effect(func() { w.runs++; seen = append(seen, g.get()) }, g)
		w.effect(func() { w.runs++; seen = append(seen, hard(f.get())) }, f)
		w.start()
		return func(i int) {
			seen = seen[:0]
			w.batch(func() {
				b.set(1)
				a.set(float64(1 + 2*i))
			})
			w.batch(func() {
				a.set(float64(2 + 2*i))
				b.set(2)
			})
			if i == 0 {
				return // to the initial state
			}
			w.check("the number of results", float64(len(seen)), 4)
			sum := 0.0
			for _, x := range seen {
				sum += x
			}
			w.check("the sum of the results", sum, 1607+3204+1604+3201)
		}
	},
}

func hard(n float64) float64 { return n + float64(fibonacci(16)) }

func fibonacci(n int) int {
	if n < 2 {
		return 1
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

// cellx returns layers of four nodes, with an effect on each.
func cellx(layers int, last ...float64) *shape {
	build := func(w *world) func(int) {
		var heads [4]source
		var row [4]cell
		for i := range heads {
			heads[i] = w.source(float64(i + 1))
			row[i] = heads[i]
		}
		var seen [4]*float64
		for range layers {
			m := row
			row = [4]cell{
				w.computed(func() float64 { w.runs++; return m[1].get() }, m[1]),
				w.computed(func() float64 { w.runs++; return m[0].get() - m[2].get() }, m[0], m[2]),
				w.computed(func() float64 { w.runs++; return m[1].get() + m[3].get() }, m[1], m[3]),
				w.computed(func() float64 { w.runs++; return m[2].get() }, m[2]),
			}
			for i, c := range row {
				seen[i] = w.watch(c)
			}
		}
		w.start()
		return func(i int) {
			w.batch(func() {
				for j, h := range heads {
					if i%2 == 0 {
						h.set(float64(4 - j))
					} else {
						h.set(float64(j + 1))
					}
				}
			})
			want := last[:4] // of 1, 2, 3, 4
			if i%2 == 0 {
				want = last[4:]
			}
			for j := range want {
				w.check("the last layer", *seen[j], want[j])
			}
		}
	}
	return &shape{name: fmt.Sprint("cellx", layers), group: "standard", updates: 1, runs: 8 * layers, build: build}
}

// updates are one write and the effects that depend on it.
var updates = []*shape{
	updateToOne(1), updateToOne(2), updateToOne(4), updateToOne(1000),
	updateOneTo(2), updateOneTo(4), updateOneTo(1000),
}

func updateToOne(k int) *shape {
	build := func(w *world) func(int) {
		heads := make([]source, k)
		reads := make([]cell, k)
		for i := range heads {
			heads[i] = w.source(float64(i))
			reads[i] = heads[i]
		}
		sum := 0.0
		w.effect(func() {
			w.runs++
			sum = 0
			for _, c := range reads {
				sum += c.get()
			}
		}, reads...)
		w.start()
		others := float64(k * (k - 1) / 2)
		return func(i int) {
			v := float64(i + 1)
			heads[0].set(v)
			w.check("the sum", sum, others+v)
		}
	}
	return &shape{name: fmt.Sprintf("update%dto1", k), group: "standard", updates: 1, runs: 1, build: build}
}

func updateOneTo(k int) *shape {
	build := func(w *world) func(int) {
		head := w.source(0)
		var seen []*float64
		for range k {
			seen = append(seen, w.watch(head))
		}
		w.start()
		return func(i int) {
			v := float64(i + 1)
			head.set(v)
			w.check("the first effect's value", *seen[0], v)
			w.check("the last effect's value", *seen[k-1], v)
		}
	}
	return &shape{name: fmt.Sprintf("update1to%d", k), group: "standard", updates: 1, runs: k, build: build}
}
