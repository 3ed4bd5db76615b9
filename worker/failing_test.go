package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker"
	"github.com/settlehq/settle/worker/tasks"
)

// failingLines are the actions whose tasks fail, as a worker reports them.
func failingLines(f *status.Figures) (lines []string) {
	for _, a := range f.Failing {
		lines = append(lines, fmt.Sprintf("%s %s %s: %d attempts, %d given up, handled %v: %s", a.Space, a.Action, a.Key, a.Attempts, a.GivenUp, a.Handled, a.Error))
	}
	return lines
}

// An action with a task that is tried again and again is reported, and not before the third attempt has failed; no more when the task is done. Tasks that were given up
// are counted, with the last of them.
func TestFailing_ActionsAreReportedWithTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(_ context.Context, key string, n int) (model.Value, error) {
			switch {
			case key == "never":
				return model.Value{}, tasks.Permanent(errors.New("no such card"))
			case key == "late" && n <= 5:
				return model.Value{}, fmt.Errorf("no answer to attempt %d", n)
			}
			return model.Int(1), nil
		}
		proc := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, MaxBackoff: 10 * time.Second}))}, nil)
		failing := func(want ...string) {
			t.Helper()
			var got []string
			w.Eventually(fmt.Sprint(want), func() bool {
				f := proc.Figures()
				got = failingLines(&f)
				return fmt.Sprint(got) == fmt.Sprint(want)
			})
		}
		w.Send("s", "start", "e1", `"late"`)
		w.Pass(2 * time.Second)
		failing() // two attempts have failed
		failing("s work late: 3 attempts, 0 given up, handled true: no answer to attempt 3")
		failing("s work late: 5 attempts, 0 given up, handled true: no answer to attempt 5")
		failing()
		w.Send("s", "start", "e2", `"never"`)
		failing("s work never: 1 attempts, 1 given up, handled true: no such card")
		w.Send("s", "start", "e3", `"well"`)
		w.eventuallyTask("s", "well", space.TaskDone)
		failing("s work never: 1 attempts, 1 given up, handled true: no such card")
	})
}

// A task that is tried again and again is reported however many others begin, fail for the first time or are done meanwhile.
func TestFailing_OtherTasksDoNotHideOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		out := newOutside()
		out.how = func(_ context.Context, key string, n int) (model.Value, error) {
			if key == "bad" || key[0] == 'o' && n == 1 {
				return model.Value{}, errors.New("no answer")
			}
			return model.Int(1), nil
		}
		proc := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(office(t, &tasks.Performer{Do: out.do, MaxBackoff: 10 * time.Second}))}, nil)
		attempts := func() int {
			f := proc.Figures()
			if len(f.Failing) == 0 {
				return 0
			}
			if got := f.Failing[0]; got.Key != "bad" || got.Error != "no answer" {
				t.Errorf("reported: %+v", got)
			}
			return f.Failing[0].Attempts
		}
		w.Send("s", "start", "bad", `"bad"`)
		w.Eventually("the task is reported", func() bool { return attempts() > 0 })
		for i := range 100 {
			key := fmt.Sprintf("%c%d", "ow"[i%2], i) // half of them fail at first
			w.Send("s", "start", key, `"`+key+`"`)
			w.Pass(500 * time.Millisecond)
			if attempts() == 0 {
				t.Fatalf("not reported after %s", key)
			}
		}
		w.Send("s", "cancel", "stop", `"bad"`)
		w.Eventually("it is reported no more", func() bool { f := proc.Figures(); return len(f.Failing) == 0 })
	})
}

// A task that its deadline has ended is given up, and not tried again: with and without a function for the ends. One that
// was cancelled is neither, nor is one of a workflow, whose run shows it.
func TestFailing_ATaskIsGivenUpAtItsDeadline(t *testing.T) {
	for name, change := range map[string]func(*space.ActionSpec){
		"alone":           func(*space.ActionSpec) {},
		"with a function": func(a *space.ActionSpec) { a.Done = func(*space.Tx, space.Task) error { return nil } },
		"of a workflow": func(a *space.ActionSpec) {
			a.Done, a.Discard = func(*space.Tx, space.Task) error { return nil }, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec := &space.ActionSpec{Name: "work", Performer: &tasks.Performer{
					Do: func(context.Context, string, model.Value) (model.Value, error) {
						return model.Value{}, errors.New("no answer")
					},
					MaxBackoff: time.Second,
				}}
				change(spec)
				p := space.NewProgram("office")
				if err := p.Action(spec); err != nil {
					t.Fatal(err)
				}
				for stream, h := range map[string]func(*space.Tx){
					"start":  func(tx *space.Tx) { tx.StartTask("work", "k", 1, space.Deadline(20*time.Second)) },
					"again":  func(tx *space.Tx) { tx.StartTask("work", "c", 1, space.Deadline(time.Hour)) },
					"cancel": func(tx *space.Tx) { tx.CancelTask("work", "c") },
				} {
					if err := p.Handle(stream, func(tx *space.Tx, _ *model.Event) (model.Value, error) { h(tx); return model.Value{}, nil }); err != nil {
						t.Fatal(err)
					}
				}
				w := newWorld(t, 1)
				proc := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
				one := func(what string, is func(*status.FailingAction) bool) {
					t.Helper()
					w.Eventually(what, func() bool {
						f := proc.Figures()
						return len(f.Failing) == 1 && is(&f.Failing[0])
					})
				}
				w.Send("s", "again", "e1", "")
				one("it is tried again", func(a *status.FailingAction) bool { return a.Key == "c" && a.GivenUp == 0 })
				w.Send("s", "cancel", "e2", "")
				w.Eventually("it is not tried again", func() bool { f := proc.Figures(); return len(f.Failing) == 0 })
				w.Send("s", "start", "e3", "")
				one("it is tried again", func(a *status.FailingAction) bool { return a.Key == "k" && a.GivenUp == 0 && a.Attempts >= 3 })
				if spec.Discard {
					w.Eventually("it is not tried again", func() bool { f := proc.Figures(); return len(f.Failing) == 0 })
					return
				}
				one("it is given up", func(a *status.FailingAction) bool {
					return a.Key == "k" && a.GivenUp == 1 && a.Attempts >= 3 && strings.Contains(a.Error, "within 20s")
				})
			})
		})
	}
}
