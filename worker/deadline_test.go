package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

// limitedOffice is an office whose tasks have a deadline after their start.
func limitedOffice(t *testing.T, how *tasks.Performer, d time.Duration) *space.Program {
	t.Helper()
	p := office(t, how)
	p.Actions()[0].Deadline = d
	return p
}

// wantPassed checks that a task has failed at its deadline, and that Done was called once for it.
func (w *world) wantPassed(key string) {
	w.Helper()
	if got := w.task("s", key); got.State != space.TaskFailed || !strings.HasPrefix(got.Err, "DeadlineError: ") {
		w.Errorf("%s is %+v", key, got)
	}
	w.wantDoneOnce("s", key)
}

// The attempt that is under way when the deadline passes is cut off, and none follows.
func TestDeadline_CutsOffTheAttemptThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		var cut atomic.Int64
		began := time.Now()
		out.how = func(ctx context.Context, _ string, _ int) (model.Value, error) {
			<-ctx.Done()
			cut.Store(int64(time.Since(began)))
			return model.Int(1), nil // too late
		}
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}, Programs: worldtest.Always(limitedOffice(t, &tasks.Performer{Do: out.do, Timeout: -1}, time.Hour))}, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Pass(59 * time.Minute)
		if cut.Load() != 0 || w.task("s", "a").State != space.TaskPending {
			t.Errorf("cut off after %s; the task is %+v", time.Duration(cut.Load()), w.task("s", "a"))
		}
		w.Pass(time.Hour)
		if d := time.Duration(cut.Load()); d < time.Hour || d > time.Hour+time.Minute {
			t.Errorf("cut off after %s", d)
		}
		w.wantPassed("a")
		if n := out.count("s", "a"); n != 1 || w1.Stats().Awake != 0 {
			t.Errorf("performed %d times; %d spaces are in memory", n, w1.Stats().Awake)
		}
	})
}

// A task that fails again and again, without a limit of attempts, ends at its deadline.
func TestDeadline_EndsTheRetriesOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(context.Context, string, int) (model.Value, error) { return model.Value{}, fmt.Errorf("no answer") }
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(limitedOffice(t, &tasks.Performer{Do: out.do}, 10*time.Minute))}, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Pass(9 * time.Minute)
		before := out.count("s", "a")
		w.Pass(time.Hour)
		if n := out.count("s", "a"); before < 5 || n > before+2 {
			t.Errorf("performed %d times before and %d in all", before, n)
		}
		w.wantPassed("a")
	})
}

// A deadline passes while no worker runs. Whenever the former one has died, the next one ends the task, and makes no attempt at it.
func TestDeadline_ThatHasPassedWithoutAWorkerAllowsNoAttempt(t *testing.T) {
	for _, checkpoint := range []time.Duration{5 * time.Millisecond, time.Hour} {
		for _, dies := range []time.Duration{30 * time.Millisecond, 5 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				out := newOutside()
				out.how = func(ctx context.Context, _ string, _ int) (model.Value, error) {
					<-ctx.Done()
					return model.Value{}, ctx.Err()
				}
				cfg := worker.Config{ID: "w1", Options: worker.Options{Checkpoint: checkpoint}, Programs: worldtest.Always(limitedOffice(t, &tasks.Performer{Do: out.do, Timeout: -1}, time.Hour))}
				w1 := w.process(cfg, nil)
				w.Send("s", "start", "e1", `"a"`)
				w.Eventually("the task is being performed", func() bool { return out.count("s", "a") == 1 })
				w.Pass(dies)
				w1.Crash()
				w.Pass(2 * time.Hour)
				out.how = nil // it would succeed now
				cfg.ID = "w2"
				w.process(cfg, nil)
				w.eventuallyTask("s", "a", space.TaskFailed)
				w.Pass(time.Minute)
				w.wantPassed("a")
				if n := out.count("s", "a"); n != 1 {
					t.Errorf("performed %d times", n)
				}
			})
		}
	}
}

// The deadline does not begin anew with an owner.
func TestDeadline_OutlivesTakeovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(ctx context.Context, _ string, _ int) (model.Value, error) {
			<-ctx.Done()
			return model.Value{}, ctx.Err()
		}
		cfg := worker.Config{Programs: worldtest.Always(limitedOffice(t, &tasks.Performer{Do: out.do, Timeout: -1}, time.Hour))}
		w.Send("s", "start", "e1", `"a"`)
		for i := range 5 {
			cfg.ID = fmt.Sprint("w", i)
			p := w.process(cfg, nil)
			w.Eventually("the task is being performed", func() bool { return out.count("s", "a") == i+1 })
			w.Pass(10 * time.Minute)
			p.Crash()
		}
		cfg.ID = "last"
		w.process(cfg, nil)
		w.Pass(5 * time.Minute)
		if got := w.task("s", "a"); got.State != space.TaskPending {
			t.Errorf("after 55 minutes: %+v", got)
		}
		w.Pass(6 * time.Minute)
		w.wantPassed("a")
	})
}

// The tasks of an action that no worker performs do not keep their space in memory. It is woken for their deadlines.
func TestDeadline_WakesASpaceThatIsNotInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}, Programs: worldtest.Always(limitedOffice(t, nil, 2*time.Hour))}, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Pass(110 * time.Minute)
		if got := w.task("s", "a"); got.State != space.TaskPending || w1.Stats().Awake != 0 {
			t.Errorf("%+v; %d spaces are in memory", got, w1.Stats().Awake)
		}
		w.Pass(20 * time.Minute)
		w.wantPassed("a")
		if n := w1.Stats().Awake; n != 0 {
			t.Errorf("%d spaces are in memory", n)
		}
	})
}

// A task that is started after the time of its deadline ends without an attempt.
func TestDeadline_ATimeThatHasPassedAllowsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		by := time.Now().Add(time.Hour)
		p := office(t, &tasks.Performer{Do: out.do})
		if err := p.Handle("start-by", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			key, _ := ev.Payload.AsString()
			tx.StartTask("work", key, tx.Space(), space.DeadlineAt(by))
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("s", "start-by", "e1", `"a"`)
		w.Eventually("the first task is done", func() bool { return w.task("s", "a").State == space.TaskDone })
		w.Pass(2 * time.Hour)
		w.Send("s", "start-by", "e2", `"b"`)
		w.eventuallyTask("s", "b", space.TaskFailed)
		w.Pass(time.Minute)
		if got := w.task("s", "b"); !strings.HasPrefix(got.Err, "DeadlineError: ") {
			t.Errorf("%+v", got)
		}
		w.wantDoneOnce("s", "a", "b")
		if n := out.count("s", "b"); n != 0 {
			t.Errorf("performed %d times", n)
		}
	})
}
