package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

func TestTask_IsPerformedWhenItIsInTheLogAndDoneIsCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(_ context.Context, key string, n int) (model.Value, error) {
			if got := w.task("s", key); got.State != space.TaskPending {
				t.Errorf("%s is performed while the log has %+v", key, got)
			}
			return model.String("well"), nil
		}
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}, Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do}))}, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Send("s", "start", "e2", `"b"`)
		w.Send("s", "start", "e3", `"a"`) // pending or done by then
		w.Send("s", "fail", "e4", `"c"`)
		w.eventuallyTask("s", "a", space.TaskDone)
		w.eventuallyTask("s", "b", space.TaskDone)
		w.Pass(time.Minute)
		w.wantDoneOnce("s", "a", "b")
		for key, want := range map[string]int{"a": 1, "b": 1, "c": 0} {
			if got := out.count("s", key); got != want {
				t.Errorf("%s was performed %d times", key, got)
			}
		}
		if got := w.task("s", "a"); got.Out.String() != `"well"` || got.In.String() != `"s"` || got.At == 0 {
			t.Errorf("got %+v", got)
		}
		if n := w1.Stats().Awake; n != 0 {
			t.Errorf("%d spaces are in memory without work", n)
		}
	})
}

// The owner reports the end of a task in a transaction of the space. No message of the lane is needed, and the end is handled in the same
// commit. (docs/adr/0057)
func TestTask_ItsEndCostsOneCommitAndNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do}))}, nil)
		var appends, sends atomic.Int64
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			switch op.Label {
			case "append":
				appends.Add(1)
			case "send":
				sends.Add(1)
			}
			return membus.Deliver
		})
		w.Send("s", "start", "e1", `"a"`)
		w.eventuallyTask("s", "a", space.TaskDone)
		w.Pass(time.Minute)
		w.wantDoneOnce("s", "a")
		if a, m := appends.Load(), sends.Load(); a != 3 || m != 0 {
			t.Errorf("%d commits and %d messages; want 3 (the takeover, the start, the end) and none", a, m)
		}
	})
}

// A task that was started speculatively, by a transaction that was undone, is not performed.
func TestTask_OfATransactionThatIsUndoneIsNeverPerformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		p := office(t, &tasks.Performer{Do: out.do})
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.eventuallyTask("s", "a", space.TaskDone)
		app := w.attach("app", func(c *worker.AttachConfig) { c.Program = p })
		var overtaken atomic.Bool
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "append" && overtaken.CompareAndSwap(false, true) {
				// The owner's commit with the task is in flight, for long enough to act upon it by mistake.
				// This commit comes first.
				w.Pass(time.Second)
				err := app.Transact(t.Context(), "app", func(tx *space.Tx) error { tx.Set("closed", true); return nil })
				if err != nil {
					t.Errorf("transact: %v", err)
				}
			}
			return membus.Deliver
		})
		w.Send("s", "start", "e2", `"b"`)
		w.EventuallyEnded("s", 3) // e1, the end of task a, and e2
		w.Pass(time.Minute)
		if c := w1.Counts(); c.Refused == 0 {
			t.Error("no transaction was undone")
		}
		if out.count("s", "b") != 0 || w.task("s", "b").State != space.NoTask {
			t.Errorf("an undone task was performed %d times: %+v", out.count("s", "b"), w.task("s", "b"))
		}
		w.wantDoneOnce("s", "a")
	})
}

// Whenever the worker dies, the next one performs the tasks in the log, and Done is called once.
func TestTask_IsDoneByTheNextOwnerWheneverTheWorkerDies(t *testing.T) {
	performed := map[int]int{}
	for die := 0; die < 24; die += raced.Step(2) {
		for _, checkpoint := range []time.Duration{5 * time.Millisecond, time.Hour} {
			t.Run(fmt.Sprint(die, " ", checkpoint), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1)
					out := newOutside()
					var requests atomic.Int64
					cfg := worker.Config{ID: "w1", Options: worker.Options{Checkpoint: checkpoint}, Programs: worldtest.Always(office(t, &tasks.Performer{Do: func(ctx context.Context, key string, in model.Value) (model.Value, error) {
						time.Sleep(7 * time.Millisecond)
						return out.do(ctx, key, in)
					}}))}
					cfg.MaxGroup = 1
					b := w.Server.Connect("w1")
					var w1 *process
					b.Inject(func(op membus.Op) membus.Fate {
						switch op.Label {
						case "append", "save", "send":
							if int(requests.Add(1)) > die {
								return membus.Delay // it never arrives
							}
						}
						return membus.Deliver
					})
					w1 = w.start(cfg, b, nil)
					w.Send("s", "start", "e1", `"a"`)
					w.Send("s", "start", "e2", `"b"`)
					w.Pass(2 * time.Second)
					w1.Crash()
					w.Pass(time.Minute)
					cfg.ID = "w2"
					w.process(cfg, nil)
					w.eventuallyTask("s", "a", space.TaskDone)
					w.eventuallyTask("s", "b", space.TaskDone)
					w.Pass(time.Minute)
					w.wantDoneOnce("s", "a", "b")
					n := out.count("s", "a")
					if n == 0 || n > 2 {
						t.Errorf("performed %d times", n)
					}
					performed[n]++
				})
			})
		}
	}
	if performed[1] == 0 || performed[2] == 0 {
		t.Errorf("runs by number of attempts: %v; want some with one and some with two", performed)
	}
}

// Two workers perform the same task and both report its end: the first report counts.
func TestTask_ReportedByTwoOwnersEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(_ context.Context, _ string, n int) (model.Value, error) {
			if n == 1 {
				time.Sleep(time.Minute) // outlasts its context
			}
			return model.Int(int64(n)), nil
		}
		cfg := worker.Config{ID: "w1", Options: worker.Options{MemberTTL: 3 * time.Second}, Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, Timeout: -1}))}
		w1 := w.process(cfg, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Eventually("the task is being performed", func() bool { return out.count("s", "a") == 1 })
		w1.Bus.Inject(func(op membus.Op) membus.Fate { // it looks hung to the others
			if op.Label == "announce" || op.Label == "ping" {
				return membus.Delay
			}
			return membus.Deliver
		})
		cfg.ID = "w2"
		w.process(cfg, nil)
		w.eventuallyTask("s", "a", space.TaskDone)
		if got := w.task("s", "a").Out.String(); got != "2" {
			t.Errorf("the second owner's result is %s", got)
		}
		w1.Bus.Inject(nil)
		w.Pass(2 * time.Minute)
		if got := w.task("s", "a").Out.String(); got != "2" {
			t.Errorf("the final result is %s", got)
		}
		w.wantDoneOnce("s", "a")
		if n := out.count("s", "a"); n != 2 {
			t.Errorf("performed %d times", n)
		}
	})
}

func TestTask_IsCancelledAtAHandoverAndPerformedByTheNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		var cut atomic.Int64
		out.how = func(ctx context.Context, _ string, n int) (model.Value, error) {
			if n > 1 {
				return model.Int(int64(n)), nil
			}
			<-ctx.Done()
			cut.Add(1)
			return model.Value{}, ctx.Err()
		}
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, Timeout: -1, Attempts: 1}))}
		w1 := w.process(cfg, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Eventually("the task is being performed", func() bool { return out.count("s", "a") == 1 })
		w1.Shutdown()
		if cut.Load() != 1 {
			t.Error("the attempt was not cancelled")
		}
		w.Pass(time.Hour)
		cfg.ID = "w2"
		w.process(cfg, nil)
		w.eventuallyTask("s", "a", space.TaskDone)
		w.wantDoneOnce("s", "a")
		if got := w.task("s", "a"); got.Attempts != 0 || out.count("s", "a") != 2 {
			t.Errorf("got %+v", got)
		}
	})
}

// A function that ignores its context occupies a slot until it returns. That is logged once, with its name; a
// function that heeds its context is not logged.
func TestTask_ThatIgnoresItsContextIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(ctx context.Context, key string, n int) (model.Value, error) {
			if key == "stubborn" && n == 1 {
				time.Sleep(30 * time.Minute)
				return model.Int(1), nil
			}
			<-ctx.Done()
			return model.Value{}, tasks.Permanent(ctx.Err())
		}
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, Timeout: time.Minute}))}, nil)
		w.Send("s", "start", "e1", `"stubborn"`)
		w.Send("s", "start", "e2", `"quick"`)
		const goesOn = "a task goes on though its context has ended"
		w.Pass(time.Minute + 9*time.Second)
		if n := w.Log.Count(goesOn); n != 0 {
			t.Errorf("logged %d times before the timeout", n)
		}
		w.Pass(50 * time.Minute)
		for _, said := range []string{goesOn, "space=s action=work key=stubborn", "the attempt took longer than 1m0s"} {
			if n := w.Log.Count(said); n < 1 || w.Log.Count(goesOn) != 1 {
				t.Errorf("%q was logged %d times:\n%s", said, n, w.Log)
			}
		}
		w.eventuallyTask("s", "stubborn", space.TaskDone) // the attempt succeeds after all
		w.eventuallyTask("s", "quick", space.TaskFailed)
	})
}

func TestTask_IsRetriedAfterGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		var at []time.Duration
		began := time.Now()
		out.how = func(_ context.Context, _ string, n int) (model.Value, error) {
			at = append(at, time.Since(began).Truncate(time.Second))
			switch n {
			case 1:
				panic("not today")
			case 2, 3, 4:
				return model.Value{}, fmt.Errorf("no answer to attempt %d", n)
			}
			return model.Int(int64(n)), nil
		}
		w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}, Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, MaxBackoff: 3 * time.Second}))}, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Pass(2 * time.Second)
		if got := w.task("s", "a"); got.State != space.TaskPending || got.Attempts != 2 || got.Err != "no answer to attempt 2" {
			t.Errorf("after two attempts: %+v", got)
		}
		w.eventuallyTask("s", "a", space.TaskDone)
		if got := fmt.Sprint(at); got != "[0s 1s 3s 6s 9s]" {
			t.Errorf("attempts at %s", got)
		}
		if got := w.task("s", "a"); got.Attempts != 4 || got.Err != "" {
			t.Errorf("got %+v", got)
		}
		w.wantDoneOnce("s", "a")
		if w.Log.Count("not today") == 0 || w.Log.Count("tasks_test.go") == 0 {
			t.Errorf("the log does not have the panic with its stack:\n%s", w.Log)
		}
	})
}

func TestTask_IsGivenUpWhenTheAttemptsAreUsedUpOrTheErrorIsPermanent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(ctx context.Context, key string, _ int) (model.Value, error) {
			switch key {
			case "slow":
				<-ctx.Done()
				return model.Value{}, ctx.Err()
			case "huge":
				return model.String(strings.Repeat("x", 2<<20)), nil
			case "large":
				return model.String(strings.Repeat("x", 600<<10)), nil
			case "never":
				return model.Value{}, tasks.Permanent(errors.New("no such card"))
			}
			return model.Value{}, errors.New("closed")
		}
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, Attempts: 3, Timeout: time.Second}))}, nil)
		for _, c := range []struct {
			key, err string
			n        int
		}{
			{"often", "closed", 3},
			{"never", "no such card", 1},
			{"slow", "longer than 1s", 3},
			{"huge", "could not be stored", 1},
			{"large", "could not be handled", 1},
		} {
			w.Send("s", "start", "e-"+c.key, `"`+c.key+`"`)
			w.eventuallyTask("s", c.key, space.TaskFailed)
			if got := w.task("s", c.key); !strings.Contains(got.Err, c.err) || out.count("s", c.key) != c.n {
				t.Errorf("%s was performed %d times: %+v", c.key, out.count("s", c.key), got)
			}
		}
		w.Pass(time.Hour)
		w.wantDoneOnce("s", "often", "never", "slow", "huge") // what Done could not handle is a dead letter
	})
}

func TestTask_ACancelledTaskIsNotPerformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(ctx context.Context, key string, n int) (model.Value, error) {
			switch key {
			case "late": // notices the cancellation too late
				time.Sleep(10 * time.Second)
				return model.Int(int64(n)), nil
			case "heard":
				<-ctx.Done()
				return model.Value{}, ctx.Err()
			}
			return model.Value{}, errors.New("closed")
		}
		w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}, Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, Timeout: -1}))}, nil)
		for _, key := range []string{"again", "heard", "late"} {
			w.Send("s", "start", "start-"+key, `"`+key+`"`)
			w.Pass(time.Second / 2)
			w.Send("s", "cancel", "cancel-"+key, `"`+key+`"`)
			w.eventuallyTask("s", key, space.TaskCancelled)
		}
		w.Pass(time.Hour)
		for key, want := range map[string]space.TaskState{"again": space.TaskCancelled, "heard": space.TaskCancelled, "late": space.TaskDone} {
			if got := w.task("s", key); got.State != want || out.count("s", key) != 1 {
				t.Errorf("%s was performed %d times, and is %+v", key, out.count("s", key), got)
			}
		}
		w.wantDoneOnce("s", "late")
		// A cancelled task can be started again, as a new task.
		w.Send("s", "start", "again", `"again"`)
		w.Eventually("the task is performed again", func() bool { return out.count("s", "again") > 1 })
		if n := w.task("s", "again").N; n != 2 {
			t.Errorf("the task has number %d", n)
		}
	})
}

func TestTask_ConcurrencyIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		out := newOutside()
		// From the hundredth attempt on, those of the first worker run until it has died.
		var attempts atomic.Int64
		died := make(chan struct{})
		out.how = func(_ context.Context, _ string, n int) (model.Value, error) {
			if attempts.Add(1) > 100 {
				<-died
			}
			time.Sleep(10 * time.Millisecond)
			return model.Int(int64(n)), nil
		}
		cfg := worker.Config{ID: "w1", Options: worker.Options{Performing: 10, Idle: time.Second}, Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, AtATime: 8}))}
		w1 := w.process(cfg, nil)
		each := raced.Fewer(250, 4)
		for s := range 4 {
			w.Send(fmt.Sprint("s", s), "many", "e1", fmt.Sprint(each))
		}
		w.Eventually("ten attempts are running", func() bool { return attempts.Load() == 100+10 })
		w1.Crash()
		close(died)
		cfg.ID = "w2"
		w2 := w.process(cfg, nil)
		w.Eventually("all tasks are done", func() bool {
			for s := range 4 {
				if w.doneTasks(fmt.Sprint("s", s)).Len() < each {
					return false
				}
			}
			return w2.Stats().Awake == 0
		})
		var keys []string
		for i := range each {
			keys = append(keys, fmt.Sprintf("k%04d", i))
		}
		twice := 0
		for s := range 4 {
			w.wantDoneOnce(fmt.Sprint("s", s), keys...)
			for _, key := range keys {
				if n := out.count(fmt.Sprint("s", s), key); n > 1 {
					twice += n - 1
				}
			}
			if n := out.inParallel(fmt.Sprint("s", s)); n > 8+8 { // the attempts of the dead worker end by themselves
				t.Errorf("%d concurrent attempts in one space", n)
			}
		}
		if n := out.inParallel(""); n > 10+10 {
			t.Errorf("%d at a time", n)
		}
		if twice == 0 || twice > 20 {
			t.Errorf("%d tasks were performed more than once; want those that were running when the worker died", twice)
		}
	})
}

// The wakeup of an evicted space is all that is known about it, and it covers pending tasks.
func TestTask_WakesAnEvictedSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(ctx context.Context, _ string, n int) (model.Value, error) {
			if n == 1 {
				<-ctx.Done()
				return model.Value{}, ctx.Err()
			}
			return model.Int(int64(n)), nil
		}
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, Timeout: -1})), Options: worker.Options{Checkpoint: time.Second, Idle: time.Second}}
		w1 := w.process(cfg, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Send("other", "start", "e2", `"b"`)
		w.Send("other", "cancel", "e3", `"b"`)
		w.Pass(10 * time.Minute) // its wakeup stays meanwhile
		w.WantPosition(0, 3)
		if n := w1.Stats().Awake; n != 1 {
			t.Errorf("%d spaces are in memory", n)
		}
		w1.Crash()
		cfg.ID = "w2"
		w.process(cfg, nil)
		w.eventuallyTask("s", "a", space.TaskDone)
		w.Pass(time.Minute)
		w.wantDoneOnce("s", "a")
		if due := w.Server.DueSpaces(0); len(due) != 0 {
			t.Errorf("still due: %v", due)
		}
	})
}

// An application starts a task and leaves, while the space has no owner.
func TestTask_ThatAnApplicationHasStartedIsPerformedByTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		p := office(t, &tasks.Performer{Do: out.do})
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(p), Options: worker.Options{Idle: time.Second}}
		w1 := w.process(cfg, nil)
		app := w.attach("app", func(c *worker.AttachConfig) { c.Program = p })
		w.Pass(time.Minute)
		w1.Shutdown()
		if err := app.Transact(t.Context(), "app", func(tx *space.Tx) error { tx.StartTask("work", "a", "s"); return nil }); err != nil {
			t.Fatal(err)
		}
		app.Kill()
		w.Pass(time.Hour)
		cfg.ID = "w2"
		w.process(cfg, nil)
		w.Pass(time.Second)
		if got := w.task("s", "a"); got.State != space.TaskDone {
			t.Errorf("got %+v", got)
		}
		w.wantDoneOnce("s", "a")
	})
}

// Any client can report the end of an external task, and a space with such tasks can be evicted.
func TestTask_OfAnExternalActionIsEndedByAnyClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(office(t, nil)), Options: worker.Options{Idle: time.Second}}, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Send("s", "start", "e2", `"b"`)
		w.Pass(time.Minute)
		if n := w1.Stats().Awake; n != 0 {
			t.Errorf("%d spaces are in memory", n)
		}
		w.Send("s", "work", "c1", `{"key":"a","out":[1,2]}`)
		w.Send("s", "work", "c2", `{"key":"a","error":"too late"}`)
		w.Send("s", "work", "c3", `{"key":"b","n":7,"out":1}`)
		w.Send("s", "work", "c4", `{"key":"b","error":"closed"}`)
		w.Send("s", "work", "c5", `{"key":"z","out":1}`)
		w.eventuallyTask("s", "b", space.TaskFailed)
		w.EventuallyEnded("s", 7)
		if got := w.task("s", "a"); got.State != space.TaskDone || got.Out.String() != "[1,2]" {
			t.Errorf("got %+v", got)
		}
		w.wantDoneOnce("s", "a", "b")
		if got := w.Doc("s", "order"); got != `"a:done b:failed "` {
			t.Errorf("the order is %s", got)
		}
		for _, rc := range w.Receipts("s") {
			if rc.Outcome != model.Handled {
				t.Errorf("event %s: %s %s", rc.Event, rc.Outcome, rc.Error)
			}
		}
	})
}

// The program is rolled back to one without the action while the task is performed, and forward again.
func TestTask_AnEndRefusedByAnotherProgramIsReportedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(_ context.Context, _ string, n int) (model.Value, error) {
			time.Sleep(10 * time.Second)
			return model.Int(int64(n)), nil
		}
		d := &registry{program: office(t, &tasks.Performer{Do: out.do})}
		known := d.program
		w1 := w.process(worker.Config{ID: "w1", Programs: d.of}, nil)
		w.Send("s", "start", "e1", `"a"`)
		w.Pass(time.Second)
		d.deploy(book(t), w1)
		w.Pass(20 * time.Second)
		if w.task("s", "a").State != space.TaskPending {
			t.Error("the task is no longer pending")
		}
		d.deploy(known, w1)
		w.Pass(10 * time.Minute)
		if got := w.task("s", "a"); got.State != space.TaskDone {
			t.Errorf("got %+v", got)
		}
		w.wantDoneOnce("s", "a")
	})
}

// If Done cannot handle the end of a task, that becomes a dead letter, and the task is kept.
func TestTask_AnEndThatCouldNotBeHandledCanBeRedriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do}))}, nil)
		w.Send("s", "start", "e1", `"bad"`)
		w.eventuallyTask("s", "bad", space.TaskFailed)
		if got := w.task("s", "bad"); !got.Unhandled || !strings.Contains(got.Err, "no good") || !strings.Contains(got.Err, "event s:") {
			t.Errorf("got %+v", got)
		}
		w.wantDoneOnce("s")
		w.Send("s", "mend", "e2")
		w.Send("s", "work", "done:1-bad:r1", `{"key":"bad","n":1,"out":1}`)
		w.eventuallyTask("s", "bad", space.TaskDone)
		w.Send("s", "work", "done:1-bad:r2", `{"key":"bad","n":1,"out":1}`)
		w.Pass(time.Minute)
		w.wantDoneOnce("s", "bad")
		if n := out.count("s", "bad"); n != 1 {
			t.Errorf("performed %d times", n)
		}
	})
}
