package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
	"github.com/settlehq/settle/workflow"
)

// The actions that workflows call, performed by the owner of a space. They fail, with and without a type, panic, take longer than
// they may, do not notice when they should end, and end their process when they are done and before that is in the log. The
// result of each performance differs from all others.
var deeds = []string{"act", "undo", "hold"}

// hold is performed until it is no longer needed.
const hold = "hold"

// taskStart is one start of a task.
type taskStart struct {
	action, key string
	n           int64
}

// started is a task that was in the log.
type started struct {
	in      model.Value
	attempt int64
	// ended is set once it is no longer pending; seq and epoch are those of the commit by which it ended.
	ended      bool
	seq, epoch uint64
}

// performance is one attempt at a task that is under way.
type performance struct {
	p           *process
	space       string
	action, key string
	deaf        bool // it does not notice when it should end
}

// deedsDone is what has become of the performances. w.mu guards it.
type deedsDone struct {
	tried  map[string]int      // by space, action and key
	ended  map[string][]string // what they have returned, by action, key and attempt
	serial int64
	going  map[*performance]bool
}

func newDeedsDone() deedsDone {
	return deedsDone{map[string]int{}, map[string][]string{}, 0, map[*performance]bool{}}
}

func attemptName(action, key string, attempt int64) string {
	return fmt.Sprint(action, " ", key, " ", attempt)
}

// addDeeds gives a program the actions.
func (w *world) addDeeds(p0 *process, p *space.Program, of string, set *runs.Set) error {
	c := keyed(w.plan.seed, "deeds")
	timeout, atATime := c.between(300*time.Millisecond, time.Second), oneOf(c, 0, 0, 2)
	for _, action := range deeds {
		how := &tasks.Performer{
			Do: func(ctx context.Context, key string, in model.Value) (model.Value, error) {
				return w.performDeed(ctx, p0, of, action, key, in)
			},
			Attempts: 1, Timeout: timeout, AtATime: atATime,
		}
		if action == hold {
			how.Timeout, how.AtATime = -1, 0
		}
		a := &space.ActionSpec{Name: action, Performer: how}
		if err := errors.Join(set.Use(a), p.Action(a)); err != nil {
			return err
		}
	}
	return nil
}

// performDeed makes an attempt at an action. One that does not notice the death of its process continues, and the run
// waits for it.
func (w *world) performDeed(ctx context.Context, p *process, of, action, key string, in model.Value) (model.Value, error) {
	w.running.Add(1)
	defer w.running.Done()
	attempt, _ := in.Get("attempt").AsInt()
	g := &performance{p: p, space: of, action: action, key: key}
	name := attemptName(action, key, attempt)
	w.mu.Lock()
	w.deeds.going[g] = true
	w.deeds.tried[name]++
	n, healed := w.deeds.tried[name], w.healed
	w.checkPerformed(p, w.folds[of].clerk, action, key, in)
	w.mu.Unlock()
	w.story.note(p.name, "performs %s for %s, attempt %d", action, key, attempt)
	w.count("performances of actions of runs")
	if n > 1 {
		w.count("actions of runs that were performed again")
	}
	out, err := w.attemptDeed(ctx, p, g, in, keyed(w.plan.seed, "deed", name, n, of), healed || n > 4)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.deeds.going, g)
	w.story.note(p.name, "ends %s for %s: %v", action, key, err)
	if err == nil {
		w.deeds.serial++
		out = model.Int(w.deeds.serial)
		w.deeds.ended[name] = append(w.deeds.ended[name], out.String())
		return out, nil
	}
	w.deeds.ended[name] = append(w.deeds.ended[name], err.Error())
	return out, err
}

// attemptDeed is what an attempt does. kind says that nothing goes wrong any more.
func (w *world) attemptDeed(ctx context.Context, p *process, g *performance, in model.Value, c *chance, kind bool) (model.Value, error) {
	if ms, is := in.Get("timeout").AsInt(); is {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	takes, notice, how := c.about(20*time.Millisecond), c.between(1, time.Millisecond), c.below(24)
	if how < 6 {
		takes = c.between(time.Millisecond, 400*time.Millisecond)
	}
	if g.action == hold {
		w.holdOn(ctx, notice)
		if takes = notice; how == 14 { // it has no limit, and must end some time
			how = 100
		}
	}
	if kind {
		how, takes = 100, notice
	}
	w.pass(ctx, takes)
	switch how {
	case 10:
		return model.Value{}, typed("A", nil)
	case 11:
		return model.Value{}, typed("B", []string{"Base"})
	case 12:
		return model.Value{}, errors.New("there is no answer")
	case 13:
		panic("as it should")
	case 14:
		<-ctx.Done()
	case 15:
		w.mu.Lock()
		g.deaf = true
		w.mu.Unlock()
		w.pass(context.Background(), takes) // it does not notice
		return model.Value{}, nil
	case 16, 17:
		if w.plan.has("deadly") {
			return model.Value{}, w.dies(ctx, p, how == 16)
		}
	}
	if ctx.Err() == nil {
		return model.Value{}, nil
	}
	w.pass(context.Background(), notice) // no two of them in one instant
	w.noteHeard(g)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		w.count("actions of runs that were not done in time")
		return model.Value{}, typed(workflow.TimeoutError, nil)
	}
	return model.Value{}, ctx.Err()
}

func typed(name string, ancestors []string) error {
	e := runs.ActionError{Type: name, Ancestors: ancestors, Message: "as it should"}
	return errors.New(e.Text())
}

// holdOn waits until the attempt should end, or everything is healed.
func (w *world) holdOn(ctx context.Context, notice time.Duration) {
	for ctx.Err() == nil {
		w.mu.Lock()
		healed := w.healed
		w.mu.Unlock()
		if healed {
			return
		}
		w.pass(ctx, 100*time.Millisecond+notice)
	}
}

// dies ends the process of a worker whose action is done, and has another one started. It waits for that, or returns
// before: then the end is on its way.
func (w *world) dies(ctx context.Context, p *process, waits bool) error {
	w.mu.Lock()
	dies := !p.doomed && p.worker != nil
	p.doomed = p.doomed || dies
	w.mu.Unlock()
	if !dies {
		return ctx.Err()
	}
	w.count("processes ended between work and commit")
	time.AfterFunc(457, func() { // see wire.Step
		w.kill(p, "is ended after an action was done")
		again := item{who: p.who}
		again.at = w.story.now() + keyed(w.plan.seed, "supervisor", p.name).between(200*time.Millisecond, time.Second)
		time.AfterFunc(again.at-w.story.now(), func() { w.restart(again) })
	})
	if waits {
		<-p.ctx.Done()
	}
	return nil
}

// noteHeard counts an action that has heard that its run does not need it any more.
func (w *world) noteHeard(g *performance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.folds[g.space].task(g.action, g.key); t.State == space.NoTask && g.p.died == 0 {
		w.count("actions that heard that their run does not need them")
	}
}

// checkPerformed: what is performed was in the log, with that input; and an owner that has committed the end of an attempt, and
// knows it, as it has committed something else since, does not make it again. w.mu is held.
func (w *world) checkPerformed(p *process, k *clerk, action, key string, in model.Value) {
	attempt, _ := in.Get("attempt").AsInt()
	var last *started
	found := int64(0)
	for at, s := range k.starts { // any order: the last one
		if at.action == action && at.key == key && s.attempt == attempt && model.Equal(s.in, in) && at.n > found {
			last, found = s, at.n
		}
	}
	switch {
	case last == nil:
		w.violate("actions", "space %s: %s is performed for %s with %s, and no run has asked for that", k.f.space, action, key, in)
	case last.ended && last.epoch == k.f.epoch && last.seq < k.f.ownSeq && k.f.owner == p.id && p.died == 0:
		w.violate("actions", "space %s: %s is performed for %s by %s, which has committed the end of that", k.f.space, action, key, p.name)
	}
}

// checkEnd: the end of an attempt is one that a performance has come to.
func (k *clerk) checkEnd(ev *model.Event, t *space.Task, attempt int) {
	want := ev.Payload.Get("out").String()
	text, failed := ev.Payload.Get("error").AsString()
	if failed {
		want = text
	}
	if strings.HasPrefix(text, "panicked: ") {
		k.f.w.count("actions of runs that ended with a panic")
		return
	}
	name := attemptName(ev.Stream, t.Key, int64(attempt))
	if !slices.Contains(k.f.w.deeds.ended[name], want) {
		k.f.wrong("actions", "the end of %s is %s; its performances came to %v", name, want, k.f.w.deeds.ended[name])
	}
	k.f.w.count("ends of actions of runs")
}

// tasks are the tasks of the actions, each of which has a document, and their actions.
func (k *clerk) tasks() iter.Seq2[string, space.Task] {
	return func(yield func(string, space.Task) bool) {
		for _, doc := range slices.Sorted(maps.Keys(k.f.docs)) {
			v := k.f.docs[doc]
			if !model.IsTaskDoc(doc) || v.IsAbsent() {
				continue
			}
			action, _ := v.Get("action").AsString()
			key, _ := v.Get("key").AsString()
			if model.TaskDoc(action, key) != doc {
				k.f.wrong("actions", "document %s has the task %q of %s", doc, key, action)
			}
			if !yield(action, space.TaskOf(key, v)) {
				return
			}
		}
	}
}

// verifyTasks: the documents of the actions have what the runs wait for, and nothing else.
func (k *clerk) verifyTasks() {
	n := 0
	for action, t := range k.tasks() {
		n++
		fl := k.flowOf(&t)
		k.noteStart(action, &t, fl)
		work, _ := t.In.Get("work").AsString()
		if fl == nil {
			k.f.wrong("actions", "there is task %s of %s, and no run of it", t.Key, action)
			continue
		}
		if w, is := fl.pending[work]; !is || t.State != space.TaskPending && !(fl.robbed && t.Unhandled) || !model.Equal(t.In, inputOf(fl.id, &w)) {
			k.f.wrong("actions", "task %s of %s is %s for %s; its run wants %+v", t.Key, action, t.State, t.In, w)
		}
	}
	want := 0
	for _, fl := range k.flows { // any order: a sum
		for _, w := range fl.pending { // any order: a sum
			if w.Child == "" {
				want++
			}
		}
	}
	if n != want {
		k.f.wrong("actions", "%d tasks are pending, want %d", n, want)
	}
	for at, s := range k.starts { // any order: each on its own
		if t := k.f.task(at.action, at.key); !s.ended && t.N != at.n {
			s.ended, s.seq, s.epoch = true, k.f.seq, k.c.Epoch
		}
	}
}

// noteStart notes a task that has just been started. After a reset, its key is another one than before that.
func (k *clerk) noteStart(action string, t *space.Task, fl *flow) {
	at := taskStart{action, t.Key, t.N}
	if k.starts[at] != nil {
		return
	}
	attempt, _ := t.In.Get("attempt").AsInt()
	k.starts[at] = &started{in: t.In, attempt: attempt}
	if fl == nil {
		return
	}
	work, _ := t.In.Get("work").AsString()
	generation := ""
	if fl.resets > 0 {
		generation = fmt.Sprintf("g%d/", fl.resets)
	}
	if want := k.f.space + "/" + fl.id + "/" + generation + work; t.Key != want {
		k.f.wrong("actions", "run %s was reset %d times, and calls %s with the key %s, want %s", fl.id, fl.resets, action, t.Key, want)
	}
}

// inputOf is the input of the task of a call.
func inputOf(run string, w *workflow.Work) model.Value {
	args, _ := model.ParseValue(w.Args)
	named, _ := model.ParseValue(w.Named)
	fields := []model.Field{model.F("run", run), model.F("work", w.ID), model.F("attempt", w.Attempt), model.F("args", args), model.F("kwargs", named)}
	if w.Timeout > 0 {
		fields = append(fields, model.F("timeout", w.Timeout))
	}
	return model.Object(fields...)
}

// reportedDeed checks a transaction by which a space reports the end of an action of a run to itself.
func (k *clerk) reportedDeed(c *model.Commit, tx *model.Tx, action string) {
	if len(tx.Sends) != 1 || len(tx.Writes) > 0 || k.f.attachedOf(c) != "" || tx.Sends[0].To != k.f.space || tx.Sends[0].Stream != action {
		k.f.wrong("actions", "%s reports an end with %d sends and %d writes, as %q", tx.By, len(tx.Sends), len(tx.Writes), c.Runtime)
		return
	}
	k.f.w.count("ends of actions of runs in the commit of the owner")
}

// checkHeard: at rest, nothing is performed that no run waits for.
func (w *world) checkHeard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range w.deeds.going { // any order: each on its own
		if g.p.died == 0 && !g.deaf {
			w.violate("actions", "space %s: %s is being performed for %s by %s, and nothing waits for that", g.space, g.action, g.key, g.p.name)
		}
	}
}
