package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
)

// With the fault "tasks", handlers start and cancel tasks of the action "work", and the
// computation "price" reads the input "rate". What is outside fails, panics, hangs, takes its
// time, and does not notice when it should end. See docs/adr/0029 for what is promised:
//
//	what is done      is in the log as a task, with that key and input
//	in the log        is done at least once, or given up, or cancelled
//	Done              has run once for each that has ended, and not for one that was cancelled
//	at rest           nothing is pending

const (
	work = "work"
	rate = "rate"
	// fetched is the value of a rate whenever a fetch succeeds.
	fetched = 17
)

// outside is the world in which tasks are performed. w.mu guards it.
type outside struct {
	tried map[string]int // attempts, by space, action and key
	done  map[string]int // completed ones
	// limits counts, by space and time, the attempts whose timeout is at that time and that have not
	// ended before.
	limits map[string]int
}

func newOutside() outside { return outside{map[string]int{}, map[string]int{}, map[string]int{}} }

// tasks adds the items that concern tasks.
func (p *plan) tasks() {
	if !p.has("tasks") {
		return
	}
	user := func(c *chance) string { return fmt.Sprint("u", 1+c.below(users)) }
	n := 3 + keyed(p.seed, "times", "tasks").below(8)
	for i := range n {
		c := keyed(p.seed, "task", i)
		start := item{
			at: p.when(c), do: oneOf(c, "queue", "send", "call"), who: user(c), space: p.anySpace(c),
			stream: oneOf(c, "start", "start", "start", "start and fail"), id: fmt.Sprint("w", i+1), payload: fmt.Sprint(1 + c.below(3)),
		}
		start.stream = strings.ReplaceAll(start.stream, " ", "-")
		p.add(start)
		if c.below(3) == 0 {
			p.add(item{
				at: start.at + c.between(0, 800*time.Millisecond), do: "send", who: user(c), space: start.space,
				stream: "cancel", id: fmt.Sprint("x", i+1), payload: fmt.Sprintf("%q", taskKey(start.id, 1)),
			})
		}
		if c.below(4) == 0 && p.has("crash") {
			p.add(item{at: start.at + c.between(0, 300*time.Millisecond), do: "crash", who: oneOf(c, "w1", "w2", "w3"), label: "send", moment: c.below(3)})
		}
	}
	for i := range 1 + keyed(p.seed, "times", "prices").below(2) {
		c := keyed(p.seed, "price", i)
		p.add(item{at: p.when(c), do: "watch", who: user(c), space: p.anySpace(c), doc: "price"})
	}
}

func taskKey(event string, i int64) string { return fmt.Sprint(event, "-", i) }

// taskInput is the input of a task: its event and space.
func taskInput(space, key string) model.Value {
	return model.Object(model.F("space", space), model.F("key", key))
}

// ofTasks are the handlers that use tasks.
var ofTasks = map[string]func(v view, ev *model.Event) (model.Value, error){
	"start": func(v view, ev *model.Event) (model.Value, error) {
		k, _ := ev.Payload.AsInt()
		for i := range k {
			key := taskKey(ev.ID, i+1)
			v.StartTask(work, key, taskInput(v.Space(), key))
		}
		return count(v, 1), nil
	},
	// a task that a failed handler has started is not performed.
	"start-and-fail": func(v view, ev *model.Event) (model.Value, error) {
		v.StartTask(work, taskKey(ev.ID, 1), taskInput(v.Space(), taskKey(ev.ID, 1)))
		return model.Value{}, errors.New("as it should")
	},
	"cancel": func(v view, ev *model.Event) (model.Value, error) {
		key, _ := ev.Payload.AsString()
		v.CancelTask(work, key)
		return ranAt(v, "")
	},
}

// price reads an input, whose key sometimes changes.
func price(v view) model.Value {
	n, _ := v.Get("n").AsInt()
	key := fmt.Sprint("k", (n%3+3)%3)
	t := v.WantTask(rate, key)
	return model.Object(model.F("of", key), model.F("state", string(t.State)), model.F("rate", t.Out))
}

// addTasks gives the program its action and its input.
func (w *world) addTasks(p *space.Program, of string) error {
	if !w.plan.has("tasks") {
		return nil
	}
	c := keyed(w.plan.seed, "performer")
	how := func(action string) *tasks.Performer {
		return &tasks.Performer{
			Do: func(ctx context.Context, key string, in model.Value) (model.Value, error) {
				return w.perform(ctx, of, action, key, in)
			},
			Attempts: oneOf(c, 0, 0, 4), Backoff: c.between(20*time.Millisecond, 300*time.Millisecond), MaxBackoff: time.Second,
			Timeout: c.between(300*time.Millisecond, time.Second), AtATime: oneOf(c, 0, 1, 2),
		}
	}
	input := &space.ActionSpec{Name: rate, Input: true, Performer: how(rate)}
	if err := p.Action(input); err != nil {
		return err
	}
	return p.Action(&space.ActionSpec{Name: work, Performer: how(work), Done: func(tx *space.Tx, t space.Task) error {
		n, _ := tx.Get("ended", t.Key).AsInt()
		tx.Set("ended", n+1, t.Key)
		tx.Send("s1", "add", 1)
		return nil
	}})
}

// wants returns the additional places to which the computation of a document writes.
func (p *plan) wants(doc string) []space.Address {
	if doc != "price" {
		return nil
	}
	return []space.Address{(&space.ActionSpec{Name: rate, Input: true}).Wants()}
}

// perform makes an attempt at a task. One that does not notice the death of its process continues, and the run
// waits for it.
func (w *world) perform(ctx context.Context, of, action, key string, in model.Value) (model.Value, error) {
	w.running.Add(1)
	defer w.running.Done()
	name := of + "/" + action + "/" + key
	w.mu.Lock()
	w.outside.tried[name]++
	n, healed := w.outside.tried[name], w.healed
	deadline, _ := ctx.Deadline()
	limit := fmt.Sprint(of, deadline.UnixNano())
	w.outside.limits[limit]++
	defer w.ended(ctx, limit)
	w.checkStarted(w.folds[of], action, key, in)
	stuck := false
	if action == work {
		w.checkBegun(w.folds[of], key)
		stuck = w.folds[of].isStuck(key)
	}
	w.mu.Unlock()
	w.count("attempts at tasks")
	c := keyed(w.plan.seed, "perform", name, n)
	takes, notice := c.between(time.Millisecond, 600*time.Millisecond), c.between(1, time.Millisecond)
	if how := c.below(12); stuck {
		<-ctx.Done()
	} else if !healed && n < 6 {
		w.pass(ctx, takes)
		if ctx.Err() != nil && (w.plan.isNewest() || w.plan.isNewer() && w.endTogether(limit)) { // two that are cut off in one instant do not end in one
			w.pass(context.Background(), notice)
		}
		switch {
		case how == 0:
			return model.Value{}, errors.New("nobody answers")
		case how == 1:
			panic("as it should")
		case how == 2:
			<-ctx.Done()
		case how == 3:
			return model.Value{}, tasks.Permanent(errors.New("no"))
		case how == 4:
			w.pass(context.Background(), takes) // it does not notice
			return w.performed(name), nil
		}
	} else {
		w.pass(ctx, notice)
	}
	if ctx.Err() != nil {
		w.count("attempts at tasks that were cut off")
		w.pass(context.Background(), notice) // no two of them in one instant
		return model.Value{}, ctx.Err()
	}
	return w.performed(name), nil
}

// ended removes an attempt that ends before its limit.
func (w *world) ended(ctx context.Context, limit string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil {
		w.outside.limits[limit]--
	}
}

// endTogether reports whether several attempts of a space are cut off in one instant, as those that began in one.
func (w *world) endTogether(limit string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outside.limits[limit] > 1
}

func (w *world) performed(name string) model.Value {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outside.done[name]++; w.outside.done[name] > 1 {
		w.count("tasks that were done again")
	}
	return model.Int(fetched)
}

// checkStarted: a performed task is in the log, with the same key and input. w.mu is held.
func (w *world) checkStarted(f *fold, action, key string, in model.Value) {
	if action == rate {
		if len(f.history[rate+"-wanted"]) == 0 {
			w.violate("tasks", "space %s: %s of %s is fetched without being wanted", f.space, key, rate)
		}
		return
	}
	t := f.task(work, key)
	if want := taskInput(f.space, key); t.State == space.NoTask || !model.Equal(t.In, in) || !model.Equal(in, want) {
		w.violate("tasks", "space %s: task %s is done with %s; in the log it is %+v", f.space, key, in, t)
	}
}

// task returns a task from the log.
func (f *fold) task(action, key string) space.Task {
	if v := f.docs[model.TaskDoc(action, key)]; !v.IsAbsent() {
		return space.TaskOf(key, v)
	}
	return space.TaskOf(key, f.docs[action].At(space.PathOfTask(key)))
}

func (o *oracle) StartTask(action, key string, in any, _ ...space.TaskOption) {
	o.Set(action, map[string]any{"state": string(space.TaskPending), "n": 1, "in": in, "event": o.event.ID}, space.PathOfTask(key)...)
}

func (o *oracle) CancelTask(action, key string) bool {
	path := space.PathOfTask(key)
	t := space.TaskOf(key, o.Get(action).At(path))
	if t.State != space.TaskPending {
		return false
	}
	if t.Until > 0 {
		o.Delete(action, append(path, "until")...)
		o.CancelTimer(deadlineTimer(action, key))
	}
	o.Set(action, string(space.TaskCancelled), append(path, "state")...)
	o.Delete(action, append(path, "event")...)
	o.Set(action, o.now, append(path, "at")...)
	return true
}

func (o *oracle) WantTask(input, key string) space.Task {
	t := space.TaskOf(key, o.Get(input).At(space.PathOfTask(key)))
	if t.State == space.NoTask {
		t.State = space.TaskPending
	}
	return t
}

// isTold reports whether a stream receives the ends of tasks.
func (p *plan) isTold(stream string) bool {
	return p.has("tasks") && (stream == work || stream == rate)
}

// reported checks a transaction by which a space reports the end of a task to itself: it is the owner's, and has an event
// about a task that was performed, and nothing else.
func (f *fold) reported(c *model.Commit, tx *model.Tx, action string) {
	if len(tx.Sends) != 1 || len(tx.Writes) > 0 || f.attachedOf(c) != "" {
		f.wrong("tasks", "%s reports an end with %d sends and %d writes, as %q", tx.By, len(tx.Sends), len(tx.Writes), c.Runtime)
		return
	}
	s := &tx.Sends[0]
	key, _ := s.Payload.Get("key").AsString()
	_, again := s.Payload.Get("attempt").AsInt()
	if s.To != f.space || s.Stream != action || again || !s.Payload.Get("out").IsAbsent() && f.w.outside.done[f.space+"/"+action+"/"+key] == 0 {
		f.wrong("tasks", "%s sends %s to %s/%s", tx.By, s.Payload, s.To, s.Stream)
	}
	f.w.count("ends of tasks in the commit of the owner")
}

// told is compare for an event that reports the end of a task.
func (f *fold) told(tx *model.Tx, ev *model.Event, after map[string]model.Value) {
	if tx.Receipt.Outcome != model.Handled {
		f.w.count("ends of tasks that could not be reported")
		return
	}
	key, _ := ev.Payload.Get("key").AsString()
	n, _ := ev.Payload.Get("n").AsInt()
	was, ended := f.task(ev.Stream, key), f.docs["ended"].Get(key)
	failed, again := !ev.Payload.Get("error").IsAbsent(), !ev.Payload.Get("attempt").IsAbsent()
	if wanted, ok := f.docs[rate+"-wanted"].Get(key).AsInt(); ok && ev.Stream == rate {
		was.State, was.N = space.TaskPending, wanted
	}
	want, times := was.State, int64(0)
	open := was.State == space.TaskPending || was.Unhandled // by an end that an operator has cancelled, or that could not be handled
	switch {
	case was.N != n || again:
	case open && failed:
		want, times = space.TaskFailed, 1
	case open || was.State == space.TaskCancelled && !failed:
		want, times = space.TaskDone, 1
	}
	if doc, ok := after[ev.Stream]; ok || times > 0 {
		if is := space.TaskOf(key, doc.At(space.PathOfTask(key))); is.State != want {
			f.wrong("tasks", "%s of %s was %s; told %s it is %s, want %s", key, ev.Stream, was.State, ev.Payload, is.State, want)
		}
	}
	if ev.Stream == rate {
		times = 0
	}
	before, _ := ended.AsInt()
	now := before
	if doc, ok := after["ended"]; ok {
		now, _ = doc.Get(key).AsInt()
	}
	if now != before+times || int64(len(tx.Sends)) != times {
		f.wrong("tasks", "%s was %s; told %s its end has taken effect %d times after %d, with %d sends; want %d times more", key, was.State, ev.Payload, now, before, len(tx.Sends), times)
	}
	if was.State == space.TaskCancelled && times > 0 {
		f.w.count("tasks that were done though cancelled")
	}
}

// pending returns a task that is still pending, "" if there is none.
func (f *fold) pending() string {
	for key, entry := range f.docs[work].Get("tasks").All() {
		if t := space.TaskOf(key, entry); t.State == space.TaskPending {
			return key
		}
	}
	for key := range f.docs[rate+"-wanted"].All() {
		return rate + " " + key
	}
	return ""
}

// markedTasks: if a task is pending, the space has a saved wake-up time before a mark covers it.
func (f *fold) markedTasks(mark uint64) {
	then, now := f.valueAt(work, mark).Get("tasks"), f.docs[work].Get("tasks")
	for key, entry := range then.All() {
		was, is := space.TaskOf(key, entry), space.TaskOf(key, now.Get(key))
		if was.State == space.TaskPending && is.State == space.TaskPending && f.savedDue() == 0 {
			f.wrong("saved", "the mark stands at %d, and the space wants to be woken never, but task %s is pending", mark, key)
		}
	}
}

// checkTasks: each ended task was performed, or was given up, and its end took effect once.
func (w *world) checkTasks() {
	for i := range w.plan.spaces {
		f := w.folds[spaceName(i)]
		for key, entry := range f.docs[work].Get("tasks").All() {
			t := space.TaskOf(key, entry)
			ended, _ := f.docs["ended"].Get(key).AsInt()
			want := int64(1)
			if t.State == space.TaskCancelled || t.Unhandled {
				want = 0
			}
			w.count("tasks: " + string(t.State))
			if done := w.outside.done[f.space+"/"+work+"/"+key]; ended != want || t.State == space.TaskDone && done == 0 {
				w.violate("tasks", "space %s: %s is %s; it was done %d times, and its end took effect %d times, want %d", f.space, key, t.State, done, ended, want)
			}
		}
		w.checkDeadlines(f)
		for key, entry := range f.docs[rate].Get("tasks").All() {
			t := space.TaskOf(key, entry)
			w.count("inputs: " + string(t.State))
			if t.State == space.TaskDone && !model.Equal(t.Out, model.Int(fetched)) {
				w.violate("tasks", "space %s: %s of %s is %s", f.space, key, rate, t.Out)
			}
		}
	}
}
