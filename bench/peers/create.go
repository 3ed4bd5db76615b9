package main

import "fmt"

// effectsToCreate is N of the S-bench.
const effectsToCreate = 100000

// creations make many sources and effects. An iteration is a whole graph; what is
// timed is the making of the effects and their first run.
var creations = []*shape{
	creation(0, 1), creation(1, 1), creation(2, 1), creation(4, 1), creation(1000, 1),
	creation(1, 2), creation(1, 4), creation(1, 8), creation(1, 1000),
}

// creation has a sources for each b effects that read them all.
func creation(a, b int) *shape {
	effects := effectsToCreate
	if a > 1 {
		effects /= a
	}
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
