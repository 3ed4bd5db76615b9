package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

// limited returns the program office with limits of the fleet.
func limited(t *testing.T, out *outside, limits space.Fleet) *space.Program {
	p := office(t, &tasks.Performer{Do: out.do})
	for _, a := range p.Actions() {
		a.Fleet = limits
	}
	return p
}

// startMany starts n tasks in each of the spaces, and returns the spaces.
func (w *world) startMany(spaces, n int) (names []string) {
	for i := range spaces {
		name := fmt.Sprintf("s%d", i)
		w.Send(name, "many", "e", fmt.Sprint(n))
		names = append(names, name)
	}
	return names
}

// eventuallyDone waits until n tasks of each of the spaces are done.
func (w *world) eventuallyDone(names []string, n int) {
	w.Helper()
	w.Eventually("all tasks are done", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { return len(w.doneTasks(name).Keys()) < n })
	})
}

// Of an action with a limit of the fleet, all workers together perform no more tasks at a time, of all spaces, and no less if there are
// enough.
func TestFleetLimit_TheWorkersPerformThatManyAtATime(t *testing.T) {
	for _, c := range []struct{ atATime, workers int }{{5, 3}, {1, 3}, {2, 5}, {7, 1}} {
		t.Run(fmt.Sprintf("%d of %d workers", c.atATime, c.workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 12)
				out := newOutside()
				out.how = func(context.Context, string, int) (model.Value, error) {
					time.Sleep(100 * time.Millisecond)
					return model.Int(1), nil
				}
				p := limited(t, out, space.Fleet{AtATime: c.atATime})
				for i := range c.workers {
					w.process(worker.Config{ID: fmt.Sprintf("w%d", i), Programs: worldtest.Always(p)}, nil)
				}
				w.Pass(5 * time.Second)
				began := time.Now()
				names := w.startMany(12, 20)
				w.eventuallyDone(names, 20)
				if n := out.inParallel(""); n != c.atATime {
					t.Errorf("%d tasks at a time, want %d", n, c.atATime)
				}
				// What is not divisible is unused for the time of an announcement, from time to time.
				if took, least := time.Since(began), time.Duration(12*20/c.atATime)*100*time.Millisecond; took > least*3/2+3*time.Second {
					t.Errorf("it took %s, and %s would be possible", took, least)
				}
			})
		})
	}
}

// With a field that the limits count by, each value has them for itself.
func TestFleetLimit_OfEachValueOfAField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		out := newOutside()
		busy, most := map[string]int{}, map[string]int{}
		var mu sync.Mutex
		out.how = func(_ context.Context, key string, _ int) (model.Value, error) {
			host := key[len(key)-1:]
			mu.Lock()
			busy[host]++
			most[host] = max(most[host], busy[host])
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			busy[host]--
			mu.Unlock()
			return model.Int(1), nil
		}
		p := limited(t, out, space.Fleet{AtATime: 2, By: "host", Of: func(t *space.Task, _ string) model.Value {
			return model.String(t.Key[len(t.Key)-1:])
		}})
		for i := range 3 {
			w.process(worker.Config{ID: fmt.Sprintf("w%d", i), Programs: worldtest.Always(p)}, nil)
		}
		w.Pass(5 * time.Second)
		w.eventuallyDone(w.startMany(4, 40), 40)
		for host, n := range most {
			if n != 2 {
				t.Errorf("%d tasks at a time of value %s, want 2", n, host)
			}
		}
		if n := out.inParallel(""); len(most) != 10 || n < 10 || n > 20 {
			t.Errorf("%d tasks at a time of %d values", n, len(most))
		}
	})
}

// A rate of the fleet is that of all workers together.
func TestFleetLimit_OfARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 12)
		out := newOutside()
		var begun atomic.Int64
		out.how = func(context.Context, string, int) (model.Value, error) {
			begun.Add(1)
			return model.Int(1), nil
		}
		p := limited(t, out, space.Fleet{PerSecond: 10})
		for i := range 3 {
			w.process(worker.Config{ID: fmt.Sprintf("w%d", i), Programs: worldtest.Always(p)}, nil)
		}
		w.Pass(5 * time.Second)
		w.startMany(12, 100)
		w.Pass(20 * time.Second)
		// One for each worker at first, and once more what a worker may begin at once.
		if n := begun.Load(); n < 170 || n > 200+3+10 {
			t.Errorf("%d tasks have begun in 20 s, of 10 per second", n)
		}
	})
}

// The part of a worker that is gone is free for the others when they know that it is.
func TestFleetLimit_ThePartOfADeadWorkerIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 12)
		out := newOutside()
		out.how = func(ctx context.Context, _ string, _ int) (model.Value, error) {
			select {
			case <-time.After(100 * time.Millisecond):
				return model.Int(1), nil
			case <-ctx.Done():
				return model.Value{}, ctx.Err()
			}
		}
		p := limited(t, out, space.Fleet{AtATime: 3})
		var fleet []*process
		for i := range 3 {
			fleet = append(fleet, w.process(worker.Config{ID: fmt.Sprintf("w%d", i), Programs: worldtest.Always(p)}, nil))
		}
		w.Pass(5 * time.Second)
		names := w.startMany(12, 20)
		w.Pass(time.Second)
		fleet[1].Crash()
		w.eventuallyDone(names, 20)
		for _, name := range names {
			for key, n := range w.doneTasks(name).All() {
				if n.String() != "1" {
					t.Errorf("%s of %s was done %s times", key, name, n)
				}
			}
		}
	})
}

// Where no limit is set, nothing is announced about it and no worker asks another one: the announcements are the heartbeats.
func TestFleetLimit_CostsNothingWhereThereIsNone(t *testing.T) {
	announcements := func(limits space.Fleet) (n int64) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4)
			out := newOutside()
			p := limited(t, out, limits)
			w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
			w.Pass(5 * time.Second)
			var count atomic.Int64
			w1.Bus.Inject(func(op membus.Op) membus.Fate {
				if op.Label == "announce" {
					count.Add(1)
				}
				return membus.Deliver
			})
			began := time.Now()
			w.eventuallyDone(w.startMany(10, 100), 100)
			w.Pass(10*time.Second - time.Since(began))
			n = count.Load()
		})
		return n
	}
	without, with := announcements(space.Fleet{}), announcements(space.Fleet{AtATime: 50})
	if without > 20 {
		t.Errorf("%d announcements in 10 s without a limit, that is more than the heartbeats", without)
	}
	if with > without+20 {
		t.Errorf("%d announcements for 1000 tasks with a limit, %d without one", with, without)
	}
}
