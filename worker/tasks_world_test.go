package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
)

// outside is the external world that tasks act on. It records what was done.
type outside struct {
	mu   sync.Mutex
	done map[string]int // by space/key
	busy map[string]int // running attempts, by space
	most map[string]int // the most concurrent attempts
	// how performs the task, if it is not nil.
	how func(ctx context.Context, key string, n int) (model.Value, error)
}

func newOutside() *outside {
	return &outside{done: map[string]int{}, busy: map[string]int{}, most: map[string]int{}}
}

// do makes an attempt at a task; in names the space.
func (o *outside) do(ctx context.Context, key string, in model.Value) (model.Value, error) {
	name, _ := in.AsString()
	o.mu.Lock()
	o.done[name+"/"+key]++
	n := o.done[name+"/"+key]
	for _, who := range []string{name, ""} {
		o.busy[who]++
		o.most[who] = max(o.most[who], o.busy[who])
	}
	how := o.how
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.busy[name]--
		o.busy[""]--
	}()
	if how != nil {
		return how(ctx, key, n)
	}
	return model.Int(int64(n)), nil
}

func (o *outside) count(name, key string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done[name+"/"+key]
}

func (o *outside) inParallel(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.most[name]
}

// office is a program with tasks:
//
//	start    starts a task under the key in the payload, unless closed is set
//	fail     likewise, and fails
//	many     starts as many as the payload says
//	cancel   cancels one
//	forget   forgets one
//	close    sets closed
//
// Done counts its calls per key in the document ended, and lists the keys in order. It fails for the key
// "bad".
func office(t *testing.T, how *tasks.Performer) *space.Program {
	t.Helper()
	p := space.NewProgram("office")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	spec := &space.ActionSpec{Name: "work", Done: func(tx *space.Tx, t space.Task) error {
		if t.Key == "bad" && tx.Get("mended").IsAbsent() {
			return errors.New("no good")
		}
		n, _ := tx.Get("ended", t.Key).AsInt()
		tx.Set("ended", n+1, t.Key)
		order, _ := tx.Get("order").AsString()
		tx.Set("order", order+t.Key+":"+string(t.State)+" ")
		return nil
	}}
	if how != nil {
		spec.Performer = how
	}
	must(p.Action(spec))
	start := func(tx *space.Tx, ev *model.Event) string {
		key, _ := ev.Payload.AsString()
		if tx.Get("closed").IsAbsent() {
			tx.StartTask("work", key, tx.Space())
		}
		return key
	}
	handle := func(stream string, h func(tx *space.Tx, ev *model.Event) error) {
		must(p.Handle(stream, func(tx *space.Tx, ev *model.Event) (model.Value, error) { return model.Value{}, h(tx, ev) }))
	}
	handle("start", func(tx *space.Tx, ev *model.Event) error { start(tx, ev); return nil })
	handle("fail", func(tx *space.Tx, ev *model.Event) error { start(tx, ev); return errors.New("it fails") })
	handle("many", func(tx *space.Tx, ev *model.Event) error {
		n, _ := ev.Payload.AsInt()
		for i := range n {
			tx.StartTask("work", fmt.Sprintf("k%04d", i), tx.Space())
		}
		return nil
	})
	handle("cancel", func(tx *space.Tx, ev *model.Event) error {
		key, _ := ev.Payload.AsString()
		tx.CancelTask("work", key)
		return nil
	})
	handle("forget", func(tx *space.Tx, ev *model.Event) error {
		key, _ := ev.Payload.AsString()
		tx.ForgetTask("work", key)
		return nil
	})
	handle("close", func(tx *space.Tx, _ *model.Event) error { tx.Set("closed", true); return nil })
	handle("mend", func(tx *space.Tx, _ *model.Event) error { tx.Set("mended", true); return nil })
	return p
}

// task returns a task as the log has it.
func (w *world) task(name, key string) space.Task {
	w.Helper()
	return space.TaskOf(key, w.Read(name, "work").Value.At(space.PathOfTask(key)))
}

func (w *world) eventuallyTask(name, key string, state space.TaskState) {
	w.Helper()
	w.Eventually(fmt.Sprintf("task %s of %s is %s", key, name, state), func() bool { return w.task(name, key).State == state })
}

// doneTasks returns how often Done was called for each task.
func (w *world) doneTasks(name string) model.Value {
	w.Helper()
	return w.Read(name, "ended").Value
}

// wantDoneOnce checks that Done was called once for each of these tasks, and for no other.
func (w *world) wantDoneOnce(name string, keys ...string) {
	w.Helper()
	wanted := map[string]bool{}
	for _, key := range keys {
		wanted[key] = true
	}
	for key, n := range w.doneTasks(name).All() {
		if times, _ := n.AsInt(); times != 1 || !wanted[key] {
			w.Errorf("space %s: Done was called %d times for %s", name, times, key)
		}
		delete(wanted, key)
	}
	for key := range wanted {
		w.Errorf("space %s: Done was not called for %s", name, key)
	}
}
