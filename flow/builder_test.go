package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/settletest"
)

var (
	twice = flow.NewAction[int, int]("twice")
	fails = flow.NewAction[int, string]("fails")
)

type request struct {
	N int `json:"n"`
}

type answer struct {
	N        int
	Error    string
	Approved string
	Steps    []string
}

// everything uses each step of a Builder.
func everything(w *flow.Workflows, version string) {
	flow.Define(w, "all", version, func(b *flow.Builder, in flow.Value[request]) flow.Value[answer] {
		flow.Check(b, in, func(r request) error {
			if r.N < 0 {
				return &flow.Error{Type: "Negative", Message: fmt.Sprint(r.N)}
			}
			return nil
		})
		n := flow.While(b, flow.Map(b, in, func(r request) int { return r.N }), func(n int) bool { return n < 100 },
			func(b *flow.Builder, n flow.Value[int]) flow.Value[int] { return flow.Call(b, twice, n) })
		failed := flow.Try(b, fails, n, flow.Retry(3, time.Minute, "Offline"), flow.Within(time.Second))
		flow.Sleep(b, time.Hour)
		steps := flow.Loop(b, flow.Const(b, []int{1, 2}), func(b *flow.Builder, i flow.Value[int]) flow.Value[string] {
			return flow.If(b, i, func(i int) bool { return i == 1 },
				func(b *flow.Builder) flow.Value[string] { return flow.Const(b, "one") },
				func(b *flow.Builder) flow.Value[string] {
					return flow.Map(b, i, func(i int) string { return fmt.Sprint(i) })
				})
		})
		first := flow.Wait[string](b, "approve")
		second := flow.TryWait[string](b, "again", time.Hour)
		rest := flow.Map2(b, first, second, func(a string, o flow.Outcome[string]) answer {
			return answer{Approved: a + " " + o.Value + o.Error.Type}
		})
		rest = flow.Map2(b, rest, steps, func(a answer, steps []string) answer { a.Steps = steps; return a })
		return flow.Map2(b, flow.Map2(b, rest, n, func(a answer, n int) answer { a.N = n; return a }), failed,
			func(a answer, o flow.Outcome[string]) answer { a.Error = o.Error.Error(); return a })
	})
}

func everythingIn(t *testing.T) *settletest.Space {
	t.Helper()
	p := settle.NewProgram("all")
	w := flow.New(p)
	everything(w, "1")
	twice.Perform(w, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	fails.Perform(w, func(ctx context.Context, n int) (string, error) {
		return "", &flow.Error{Type: "Offline", Message: fmt.Sprintf("attempt %d of %d", flow.AttemptOf(ctx).Number, n)}
	})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	return settletest.New(t, p).Space("s")
}

// perform performs actions until none is pending.
func perform(s *settletest.Space) {
	for n := 1; n > 0; {
		n = s.Perform()
	}
}

func TestBuilder_EachStep(t *testing.T) {
	s := everythingIn(t)
	s.Call("workflow-start", map[string]any{"workflow": "all", "run": "r", "args": request{7}})
	perform(s)
	s.Advance(time.Minute)
	perform(s)
	s.World().Restart()
	s.Advance(2 * time.Minute)
	perform(s)
	s.Advance(time.Hour)
	s.Call("workflow-signal", map[string]any{"run": "r", "signal": "approve", "value": "ann"})
	s.Advance(time.Hour)
	s.Expect("run_r", answer{N: 112, Error: "Offline: attempt 3 of 112", Approved: "ann TimeoutError", Steps: []string{"one", "2"}}, "result")

	s.Call("workflow-start", map[string]any{"workflow": "all", "run": "q", "args": request{-1}})
	s.Expect("run_q", "failed", "state")
	s.Expect("run_q", "Negative", "error", "type")
}

// A mistake in the declarations is reported when everything is registered.
func TestRegister_ReportsWhatIsMissing(t *testing.T) {
	for want, add := range map[string]func(w *flow.Workflows){
		"calls action twice, and nothing performs it": func(w *flow.Workflows) {
			everything(w, "1")
			fails.Perform(w, func(context.Context, int) (string, error) { return "", nil })
		},
		`the version "1.0" must be letters and digits`: func(w *flow.Workflows) { everything(w, "1.0") },
		"order.star:1:1: there is no workflow":         func(w *flow.Workflows) { w.Starlark("order.star", []byte("x = 1\n")) },
		"there are two workflows order": func(w *flow.Workflows) {
			w.Starlark("order.star", []byte(orderSource))
			w.Starlark("order.star", []byte(orderSource))
		},
		"action charge: the function is nil": func(w *flow.Workflows) { flow.Perform[int, int](w, "charge", nil) },
	} {
		w := flow.New(settle.NewProgram("p"))
		add(w)
		if err := w.Register(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
