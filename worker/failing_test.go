package worker_test

import (
	"context"
	"errors"
	"fmt"
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
