package flow_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/settletest"
)

var (
	reserve = flow.NewAction[string, string]("reserve")
	release = flow.NewAction[string, bool]("release")
)

type seating struct {
	Seats []string `json:"seats"`
}

// reservations reserves seats, which are released if the run fails, and waits for a signal.
func reservations(b *flow.Builder, in flow.Value[seating]) flow.Value[int] {
	flow.Deadline(b, 24*time.Hour)
	seats := flow.Map(b, in, func(in seating) []string { return in.Seats })
	all := flow.Loop(b, seats, func(b *flow.Builder, seat flow.Value[string]) flow.Value[string] {
		flow.Compensate(b, release, seat, flow.Retry(3, time.Second), flow.Step(time.Second), flow.MaxBackoff(time.Minute))
		return flow.Call(b, reserve, seat)
	})
	flow.Wait[string](b, "confirm")
	return flow.Map(b, all, func(all []string) int { return len(all) })
}

func reservationsIn(t *testing.T, log *[]string) *settletest.Space {
	t.Helper()
	p := settle.NewProgram("seats")
	w := flow.New(p)
	flow.Define(w, "seats", "1", reservations)
	reserve.Perform(w, func(_ context.Context, seat string) (string, error) { return seat, nil })
	release.Perform(w, func(ctx context.Context, seat string) (bool, error) {
		a := flow.AttemptOf(ctx)
		if *log = append(*log, a.Key); seat == "bad" && a.Number < 3 {
			return false, &flow.Error{Type: "Offline"}
		}
		return true, nil
	})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	return settletest.New(t, p).Space("s")
}

func TestCompensate_OfABuilderUndoesWhenTheDeadlineHasPassed(t *testing.T) {
	t.Parallel()
	var log []string
	s := reservationsIn(t, &log)
	for _, id := range []string{"late", "confirmed"} {
		s.Call("workflow-start", map[string]any{"workflow": "seats", "run": id, "args": seating{[]string{"good", "bad"}}})
		perform(s)
		s.World().Restart()
	}
	s.Call("workflow-signal", map[string]any{"run": "confirmed", "signal": "confirm"})
	s.Expect("run_confirmed", 2, "result")
	s.Advance(24 * time.Hour)
	s.Expect("run_late", "DeadlineError", "undoing", "type")
	s.Expect("run_late", "running", "state")
	perform(s)
	s.Advance(time.Second)
	perform(s)
	s.Advance(time.Second) // of the second pause, which is longer
	perform(s)
	s.World().Restart()
	s.Advance(time.Second)
	perform(s)
	s.Expect("run_late", "failed", "state")
	s.Expect("run_late", map[string]int{"steps": 2}, "error", "undone")
	bad, good := "s/late/undo2.", "s/late/undo1."
	if want := []string{bad, bad, bad, good}; len(log) != len(want) {
		t.Errorf("%v, want %v", log, want)
	} else {
		for i := range want {
			if !strings.HasPrefix(log[i], want[i]) {
				t.Errorf("%v, want %v", log, want)
			}
		}
	}
}

func TestDefine_RefusesPoliciesThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for want, build := range map[string]func(b *flow.Builder, in flow.Value[string]) flow.Value[string]{
		"workflow w: the call of action reserve (line": func(b *flow.Builder, in flow.Value[string]) flow.Value[string] {
			return flow.Call(b, reserve, in, flow.Retry(-1, time.Second))
		},
		"a factor is from 1 to 100": func(b *flow.Builder, in flow.Value[string]) flow.Value[string] {
			return flow.Call(b, reserve, in, flow.Retry(2, time.Second), flow.Factor(0.5))
		},
		"the times of a policy are positive": func(b *flow.Builder, in flow.Value[string]) flow.Value[string] {
			return flow.Call(b, reserve, in, flow.Retry(2, time.Second), flow.Step(-time.Second))
		},
		"write one of them": func(b *flow.Builder, in flow.Value[string]) flow.Value[string] {
			return flow.Call(b, reserve, in, flow.Step(time.Second), flow.Retry(2, time.Second))
		},
		"the deadline -1s is shorter than a millisecond": func(b *flow.Builder, in flow.Value[string]) flow.Value[string] {
			flow.Deadline(b, -time.Second)
			return in
		},
	} {
		w := flow.New(settle.NewProgram("p"))
		flow.Define(w, "w", "1", build)
		if err := w.Register(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
