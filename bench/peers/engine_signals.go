package main

import (
	"github.com/AnatoleLucet/sig"
	"github.com/coregx/signals"

	"github.com/settlehq/settle/bench/peers/alien"
	"github.com/settlehq/settle/bench/peers/floor"
)

// Engines that need only thin adapters.

type floorEngine struct{ g floor.Graph }

type floorCell struct{ *floor.Node }

func (c floorCell) get() float64  { return c.Get() }
func (c floorCell) set(v float64) { c.Set(v) }

func newFloor() engine { return &floorEngine{} }

func (e *floorEngine) source(v float64) source { return floorCell{e.g.Source(v)} }
func (e *floorEngine) computed(body func() float64, _ ...cell) cell {
	return floorCell{e.g.Computed(body)}
}
func (e *floorEngine) effect(body func(), _ ...cell) { e.g.Effect(body) }
func (e *floorEngine) start()                        {}
func (e *floorEngine) batch(fn func())               { e.g.Batch(fn) }
func (e *floorEngine) close()                        {}

type alienEngine struct{ s alien.System }

type alienSource struct{ *alien.Signal[float64] }

func (c alienSource) get() float64  { return c.Get() }
func (c alienSource) set(v float64) { c.Set(v) }

type alienComputed struct{ *alien.Computed[float64] }

func (c alienComputed) get() float64 { return c.Get() }

func newAlien() engine { return &alienEngine{} }

func (e *alienEngine) source(v float64) source { return alienSource{alien.NewSignal(&e.s, v)} }
func (e *alienEngine) computed(body func() float64, _ ...cell) cell {
	return alienComputed{alien.NewComputed(&e.s, body)}
}
func (e *alienEngine) effect(body func(), _ ...cell) { alien.Effect(&e.s, body) }
func (e *alienEngine) start()                        {}
func (e *alienEngine) batch(fn func())               { alien.Batch(&e.s, fn) }
func (e *alienEngine) close()                        {}

// sigEngine has no state: the library keeps a runtime per goroutine, and every measurement has a goroutine of
// its own.
type sigEngine struct{}

type sigSource struct{ *sig.Signal[float64] }

func (c sigSource) get() float64  { return c.Read() }
func (c sigSource) set(v float64) { c.Write(v) }

type sigComputed struct{ *sig.Computed[float64] }

func (c sigComputed) get() float64 { return c.Read() }

func newSig() engine { return sigEngine{} }

func (sigEngine) source(v float64) source { return sigSource{sig.NewSignal(v)} }
func (sigEngine) computed(body func() float64, _ ...cell) cell {
	return sigComputed{sig.NewComputed(body)}
}
func (sigEngine) effect(body func(), _ ...cell) { sig.NewEffect(body) }
func (sigEngine) start()                        {}
func (sigEngine) batch(fn func())               { sig.NewBatch(fn) }
func (sigEngine) close()                        {}

// coregxEngine keeps what it has to stop: a subscription is a goroutine.
type coregxEngine struct {
	effects   []signals.EffectRef
	computeds []interface{ Cleanup() }
}

type coregxSource struct{ signals.Signal[float64] }

func (c coregxSource) get() float64  { return c.Get() }
func (c coregxSource) set(v float64) { c.Set(v) }

type coregxComputed struct {
	signals.ReadonlySignal[float64]
}

func (c coregxComputed) get() float64 { return c.Get() }

func newCoregx() engine { return &coregxEngine{} }

func (e *coregxEngine) source(v float64) source {
	equal := func(a, b float64) bool { return a == b }
	return coregxSource{signals.NewWithOptions(v, signals.Options[float64]{Equal: equal})}
}

func (e *coregxEngine) computed(body func() float64, reads ...cell) cell {
	c := signals.Computed(body, coregxDeps(reads)...)
	e.computeds = append(e.computeds, c.(interface{ Cleanup() }))
	return coregxComputed{c}
}

func (e *coregxEngine) effect(body func(), reads ...cell) {
	e.effects = append(e.effects, signals.Effect(body, coregxDeps(reads)...))
}

func coregxDeps(reads []cell) []any {
	deps := make([]any, len(reads))
	for i, c := range reads {
		switch c := c.(type) {
		case coregxSource:
			deps[i] = c.Signal
		case coregxComputed:
			deps[i] = c.ReadonlySignal
		}
	}
	return deps
}

func (e *coregxEngine) start()          {}
func (e *coregxEngine) batch(fn func()) { fn() }

func (e *coregxEngine) close() {
	for _, x := range e.effects {
		x.Stop()
	}
	for _, c := range e.computeds {
		c.Cleanup()
	}
}
