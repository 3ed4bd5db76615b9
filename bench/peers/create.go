package main

import "fmt"

// creations returns the shapes of the S-bench: many sources and effects, n of the more numerous kind. An
// iteration builds a whole graph; the creation and first run of its effects are timed.
func creations(n int) []*shape {
	var all []*shape
	for _, r := range [][2]int{{0, 1}, {1, 1}, {2, 1}, {4, 1}, {1000, 1}, {1, 2}, {1, 4}, {1, 8}, {1, 1000}} {
		all = append(all, creation(n/max(r[0], 1), r[0], r[1]))
	}
	return all
}

// creation returns a shape with a sources for each b effects that read them all.
func creation(effects, a, b int) *shape {
	build := func(w *world) func(int) {
		groups := effects / b
		sources := make([][]cell, groups)
		for g := range sources {
			for range a {
				sources[g] = append(sources[g], w.source(float64(g)))
			}
		}
		return func(int) {
			sums := make([]float64, effects)
			for i := range sums {
				reads := sources[i/b]
				w.effect(func() {
					w.runs++
					sum := 0.0
					for _, c := range reads {
						sum += c.get()
					}
					sums[i] = sum
				}, reads...)
			}
			w.start()
			total := 0.0
			for _, sum := range sums {
				total += sum
			}
			w.check("the sum", total, float64(a*b)*float64(groups*(groups-1)/2))
		}
	}
	return &shape{name: fmt.Sprintf("create%dto%d", a, b), group: "create", once: true, updates: effects, runs: effects, build: build}
}
