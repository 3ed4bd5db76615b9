//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/test/chaos/history"
)

// job is the action of the program. Its tasks are slow, so that processes die while some run.
var job = settle.NewAction[string, uint32](history.Job)

func perform(ctx context.Context, key string, in string) (uint32, error) {
	if err := pause.For(ctx, time.Duration(history.Hash(key)%300)*time.Millisecond); err != nil {
		return 0, err
	}
	return history.Hash(in), nil
}

// programs assigns the program in Go to all spaces except the hosted ones.
func programs(w history.Workload) settle.Programs {
	p := goProgram(w)
	return func(space string) *settle.Program {
		if i, ok := w.SpaceNumber(space); ok && w.IsHosted(i) {
			return nil
		}
		return p
	}
}

// goProgram returns the program of the spaces that do not run the one in Starlark. Package history has the expected results.
func goProgram(w history.Workload) *settle.Program {
	p := settle.NewProgram("chaos")
	count := func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) { return handle(w, tx, ev), nil }
	for _, stream := range []string{
		history.Add, history.Chain, history.Fan, history.Echo, history.Stray,
		history.Hop, history.Leaf, history.Own, model.Undelivered, history.Later, history.Alarm,
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
	p.Handle(history.Mark, func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Set(history.DocMark, w.MarkOf(tx.Space(), ev.ID))
		return handle(w, tx, ev), nil
	})
	p.Handle(history.Unmark, func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Delete(history.DocMark)
		return handle(w, tx, ev), nil
	})
	p.Handle(history.Work, func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		job.Start(tx, ev.ID, ev.ID)
		return handle(w, tx, ev), nil
	})
	job.Perform(p, perform, settle.Keep(10*time.Second), settle.Backoff(100*time.Millisecond, time.Second))
	job.Done(p, func(tx *settle.Tx, t settle.Task[string, uint32]) error {
		if t.State != space.TaskDone || t.Out != history.Hash(t.In) {
			return fmt.Errorf("task %s is %s with %d: %w", t.Key, t.State, t.Out, t.Err)
		}
		handle(w, tx, tx.Event())
		return nil
	})
	p.Compute(history.DocMarked, func(v *settle.View) (settle.Value, error) {
		return history.Marked(v.GetShallow(history.DocMark), v.Get(history.DocMark, "next")), nil
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

// handle counts an event and sends the events of its stream. It returns the result for the receipt.
func handle(w history.Workload, tx *settle.Tx, ev *settle.Event) settle.Value {
	sum := history.SumOf(tx.Get(history.DocSum)).Plus(ev.Stream, ev.ID)
	tx.Set(history.DocSum, sum.Value())
	source := history.Source(ev.Stream, ev.ID)
	n, _ := tx.Get(history.DocSeen, source).AsInt()
	tx.Set(history.DocSeen, n+1, source)
	d, _ := ev.Payload.Get("d").AsInt()
	for _, s := range w.Sends(tx.Space(), ev.Stream, ev.ID, int(d)) {
		switch after := time.Duration(s.After) * time.Millisecond; {
		case s.Timer != "":
			tx.SetTimer(s.Timer, s.Stream, tx.Now().Add(after), depth(s.Depth))
		case s.After > 0:
			tx.SendAfter(s.To, s.Stream, after, depth(s.Depth))
		default:
			tx.Send(s.To, s.Stream, depth(s.Depth))
		}
	}
	return sum.Value()
}

func depth(d int) settle.Value { return model.Object(model.F("d", d)) }
