//go:build unix

package main

import (
	"errors"
	"math/rand/v2"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/test/chaos/history"
)

// program is what every space runs. history says what must come of it.
func program(w history.Workload) *settle.Program {
	p := settle.NewProgram("chaos")
	count := func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) { return handle(w, tx, ev), nil }
	for _, stream := range []string{
		history.Add, history.Chain, history.Fan, history.Echo, history.Stray,
		history.Hop, history.Leaf, history.Own, model.Undelivered,
	} {
		p.Handle(stream, count)
	}
	p.Handle(history.Flaky, func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		v := handle(w, tx, ev)
		if rand.IntN(5) == 0 {
			return v, settle.Transient(errors.New(history.FlakyText))
		}
		return v, nil
	})
	p.Handle(history.Fail, func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		handle(w, tx, ev)
		tx.Send(w.Space(0), history.Leaf, nil)
		tx.Send(tx.Space(), history.Own, depth(1))
		return settle.Value{}, errors.New(history.FailText)
	})
	p.Compute(history.DocView, func(v *settle.View) (settle.Value, error) {
		return history.View(history.SumOf(v.Get(history.DocSum))), nil
	})
	p.Compute(history.DocPair, func(v *settle.View) (settle.Value, error) {
		i, _ := w.SpaceNumber(v.Space())
		return history.Pair(history.SumOf(v.Get(history.DocSum)), v.GetFrom(w.Space(i+1), history.DocView)), nil
	})
	return p
}

// handle counts an event and sends what its stream sends. It returns what the receipt says.
func handle(w history.Workload, tx *settle.Tx, ev *settle.Event) settle.Value {
	sum := history.SumOf(tx.Get(history.DocSum)).Plus(ev.Stream, ev.ID)
	tx.Set(history.DocSum, sum.Value())
	source := history.Source(ev.ID)
	n, _ := tx.Get(history.DocSeen, source).AsInt()
	tx.Set(history.DocSeen, n+1, source)
	d, _ := ev.Payload.Get("d").AsInt()
	for _, s := range w.Sends(tx.Space(), ev.Stream, ev.ID, int(d)) {
		tx.Send(s.To, s.Stream, depth(s.Depth))
	}
	return sum.Value()
}

func depth(d int) settle.Value { return model.Object(model.F("d", d)) }
