package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// view is the view of a handler or a computation: a transaction of the real core, or the documents of
// the oracle, which runs the same code again.
type view interface {
	Space() string
	Get(doc string, path ...string) model.Value
	GetFrom(space, doc string, path ...string) model.Value
	Set(doc string, v any, path ...string)
	Delete(doc string, path ...string)
	Send(space, stream string, payload any, options ...space.SendOption)
	Now() time.Time
	SendAt(space, stream string, at time.Time, payload any, options ...space.SendOption)
	SetTimer(name, stream string, at time.Time, payload any, options ...space.SendOption)
	CancelTimer(name string)
	Timer(name string) (time.Time, bool)
	Edition() int
	StartTask(action, key string, in any, options ...space.TaskOption)
	StartLimited(action, key string, in any, within time.Duration)
	CancelTask(action, key string) bool
	WantTask(input, key string) space.Task
}

// handlers are the handlers of the streams.
var handlers = map[string]func(v view, ev *model.Event) (model.Value, error){
	// n counts the handled events.
	"add": func(v view, ev *model.Event) (model.Value, error) {
		k, _ := ev.Payload.AsInt()
		return count(v, k), nil
	},
	// an amount leaves here and arrives there: the sum over all spaces stays the same.
	"pay": func(v view, ev *model.Event) (model.Value, error) {
		to, k := target(ev)
		v.Send(to, "add", k)
		return count(v, -k), nil
	},
	"chain": func(v view, ev *model.Event) (model.Value, error) {
		if left, _ := ev.Payload.AsInt(); left > 0 {
			v.Send(v.Space(), "chain", left-1)
			if left%2 == 0 {
				v.Send(v.Space(), "add", 100)
			}
		}
		return count(v, 1), nil
	},
	"fan": func(v view, _ *model.Event) (model.Value, error) {
		for _, to := range []string{"s1", "s2", "s1", v.Space()} {
			v.Send(to, "add", 7)
		}
		return count(v, 1), nil
	},
	"pong": func(v view, ev *model.Event) (model.Value, error) {
		if to, k := target(ev); k > 0 {
			v.Send(to, "pong", map[string]any{"to": v.Space(), "k": k - 1})
		}
		return count(v, 1), nil
	},
	// the writes and sends of a failed handler are discarded.
	"fail": func(v view, _ *model.Event) (model.Value, error) {
		count(v, 1_000_000)
		v.Send("s1", "add", 1_000_000)
		v.Send(v.Space(), "add", 1_000_000)
		return model.Value{}, errors.New("as it should")
	},
	"panic": func(v view, _ *model.Event) (model.Value, error) {
		count(v, 1_000_000)
		v.Send("s2", "add", 1_000_000)
		panic("as it should")
	},
	"flaky": func(v view, _ *model.Event) (model.Value, error) {
		v.Send("s1", "add", 3)
		return count(v, 10), nil
	},
	// reads a document that is derived here.
	"get": func(v view, _ *model.Event) (model.Value, error) {
		v.Set("got", v.Get("level"))
		return v.Get("double"), nil
	},
	// reads a document that is derived in another space.
	"read": func(v view, ev *model.Event) (model.Value, error) {
		from, _ := ev.Payload.AsString()
		seen := v.GetFrom(from, "double")
		v.Set("seen", map[string]any{"from": from, "v": seen})
		return model.Value{}, nil
	},
	"look": func(v view, ev *model.Event) (model.Value, error) {
		v.Set("from", ev.Payload)
		return model.Value{}, nil
	},
	"put": func(v view, ev *model.Event) (model.Value, error) {
		v.Set("x", ev.Payload.Get("v"), "deep", "down")
		v.Set("x", count(v, 1), "top")
		return v.Get("x", "deep"), nil
	},
	"clear": func(v view, _ *model.Event) (model.Value, error) {
		v.Delete("x")
		return count(v, 1), nil
	},
	// sends to a stream without a handler
	"stray": func(v view, _ *model.Event) (model.Value, error) {
		v.Send("s1", "nobody", 1)
		v.Send("s2", "nobody", 2)
		return count(v, 1), nil
	},
	"big": func(v view, _ *model.Event) (model.Value, error) {
		v.Set("blob", strings.Repeat("x", 40<<10))
		v.Send("s1", "add", 1_000_000)
		return count(v, 1_000_000), nil
	},
	// see deadly
	"deadly": func(v view, _ *model.Event) (model.Value, error) {
		v.Send("s1", "add", 4)
		return count(v, 1000), nil
	},
	// a notice about an undelivered send of this space
	model.Undelivered: func(v view, _ *model.Event) (model.Value, error) {
		notices, _ := v.Get("notices").AsInt()
		v.Set("notices", notices+1)
		return model.Value{}, nil
	},
}

func count(v view, k int64) model.Value {
	n, _ := v.Get("n").AsInt()
	v.Set("n", n+k)
	return model.Int(n + k)
}

func target(ev *model.Event) (to string, k int64) {
	to, _ = ev.Payload.Get("to").AsString()
	k, _ = ev.Payload.Get("k").AsInt()
	return to, k
}

// computations are the functions of the derived documents.
var computations = map[string]func(v view) model.Value{
	"double": func(v view) model.Value {
		n, _ := v.Get("n").AsInt()
		return model.Int(2 * n)
	},
	"level": func(v view) model.Value { // reads another thing depending on what it reads
		double, _ := v.Get("double").AsInt()
		if double%4 == 0 {
			return v.Get("x", "deep")
		}
		return model.Int(double + 1)
	},
	"abroad": func(v view) model.Value {
		from, ok := v.Get("from").AsString()
		if !ok {
			return model.Value{}
		}
		return v.GetFrom(from, "double")
	},
	"both": func(v view) model.Value {
		return model.String(v.Get("level").String() + " " + v.Get("abroad").String())
	},
	"dormant": func(v view) model.Value { return v.Get("n") },
	"price":   price,
	slow:      computeSlow,
	copied:    copyPlain,
}

// derived lists the computations in an order in which each comes after those that it reads.
var derived = []string{"double", "level", "abroad", "both", "dormant"}

// flaky makes the handler of that stream fail as often as the event says, in each process.
type flaky struct {
	mu    sync.Mutex
	tries map[string]int
}

func (f *flaky) fails(v view, ev *model.Event) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := v.Space() + " " + ev.ID
	f.tries[key]++
	k, _ := ev.Payload.AsInt()
	return f.tries[key] <= int(k)
}

// deadly makes the handler of that stream end its process, as often as the event says over
// all processes. It does not return before the process is dead.
func (w *world) deadly(p *process, v view, ev *model.Event) {
	key := eventKey{v.Space(), "deadly", ev.ID}
	k, _ := ev.Payload.AsInt()
	w.mu.Lock()
	w.deaths[key]++
	dies := w.deaths[key] <= int(k) && !p.doomed
	p.doomed = p.doomed || dies
	w.mu.Unlock()
	if !dies {
		return
	}
	w.count("processes ended by a handler")
	time.AfterFunc(457, func() { // see wire.Step
		w.kill(p, "is ended by the handler of "+ev.ID)
		again := item{who: p.who, space: p.space, a: true}
		again.at = w.story.now() + keyed(w.plan.seed, "supervisor", p.name).between(200*time.Millisecond, time.Second)
		time.AfterFunc(again.at-w.story.now(), func() { w.restart(again) })
	})
	<-p.ctx.Done()
}

// restart starts a process again, as a supervisor does.
func (w *world) restart(i item) {
	w.mu.Lock()
	p := w.procs[i.who]
	again := p.died > 0 && !w.over && !(w.healed && i.who[0] == 'h')
	w.mu.Unlock()
	if again {
		w.start(i)
	}
}

// newPrograms makes the programs of one process: one for each space and edition. Those of
// different spaces differ in when their jobs are due.
func (w *world) newPrograms(p0 *process) func(of string, edition int) *space.Program {
	type key struct {
		of      string
		edition int
	}
	var mu sync.Mutex
	made := map[key]*space.Program{}
	f := &flaky{tries: map[string]int{}}
	return func(of string, edition int) *space.Program {
		mu.Lock()
		defer mu.Unlock()
		k := key{of, edition}
		if made[k] == nil {
			made[k] = w.newProgram(p0, of, edition, f)
		}
		return made[k]
	}
}

func (w *world) newProgram(p0 *process, of string, edition int, f *flaky) *space.Program {
	p := space.NewProgram("sim")
	p.Version = w.plan.version(edition)
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(handlers)) {
		h := handlers[stream]
		must(p.Handle(stream, func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			v := edited{tx, edition}
			w.checkHost(p0, tx, stream)
			if stream == "deadly" {
				w.deadly(p0, v, ev)
			}
			if stream == "flaky" && f.fails(v, ev) {
				count(v, 1_000_000)
				tx.Send("s1", "add", 1_000_000)
				return model.Value{}, space.Transient(fmt.Errorf("not yet"))
			}
			return h(v, ev)
		}))
	}
	for _, stream := range slices.Concat(slices.Sorted(maps.Keys(onTime)), slices.Sorted(maps.Keys(ofForgotten)), []string{"burst", "start-and-set", "start-within", "edition", "odd", "start", "start-and-fail", "cancel"}) {
		if h := w.plan.handler(stream, edition); h != nil {
			must(p.Handle(stream, func(tx *space.Tx, ev *model.Event) (model.Value, error) { return h(edited{tx, edition}, ev) }))
		}
	}
	must(w.addCron(p, of))
	must(w.addTasks(p, of))
	must(w.addHangs(p0, p, edition))
	must(w.addRuns(p0, p, of, edition))
	for _, doc := range w.plan.derived(edition) {
		run := w.plan.computation(doc, edition)
		must(p.Add(space.NodeSpec{ID: doc, Kind: space.Computation, Output: doc, Writes: w.plan.wants(doc), Version: w.plan.nodeVersion(doc, edition), Run: func(tx *space.Tx) (model.Value, error) {
			w.checkHost(p0, tx, doc)
			return run(edited{tx, edition}), nil
		}}))
	}
	if w.plan.sink {
		must(p.Add(space.NodeSpec{ID: "sink", Kind: space.Effect, Version: w.plan.nodeVersion("sink", edition), Run: func(tx *space.Tx) (model.Value, error) {
			tx.Get("double")
			return model.Value{}, nil
		}}))
	}
	return p
}
