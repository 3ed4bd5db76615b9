package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

const gate = `
load("actions", "open")

def run(n = 1):
    a = wait("go")
    b = open(n)
    return [a, b]

workflow("gate", run)
`

// gated returns a program whose action fails until it is repaired.
func gated(t *testing.T, repaired *bool) *settle.Program {
	t.Helper()
	p := settle.NewProgram("gate")
	w := flow.New(p)
	w.Starlark("gate.star", []byte(gate))
	flow.Perform(w, "open", func(ctx context.Context, n int) (string, error) {
		if !*repaired {
			return "", &flow.Error{Type: "Stuck", Message: "it is stuck"}
		}
		return flow.AttemptOf(ctx).Key, nil
	})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	return p
}

func deployed(t *testing.T, p *settle.Program) *settle.Deployment {
	t.Helper()
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestRuns_OperationsAndTheirRefusals(t *testing.T) {
	t.Parallel()
	repaired := false
	d := deployed(t, gated(t, &repaired))
	ctx, r := t.Context(), flow.In(d.Client().Space("s"))
	check := func(what string, err, want error) {
		t.Helper()
		var refused *flow.Refusal
		if !errors.Is(err, want) || want != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	_, err := r.Start(ctx, "gates", "a", nil)
	check("an unknown workflow", err, flow.ErrNoWorkflow)
	check("a signal without a run", r.Signal(ctx, "a", "go", 1), flow.ErrNoRun)
	check("a retry without a run", r.Retry(ctx, "a"), flow.ErrNoRun)
	_, err = r.Start(ctx, "gate", "a", nil, flow.Attributes(map[string]any{"k": []int{1}}))
	check("a list as an attribute", err, flow.ErrInvalid)
	_, err = r.Start(ctx, "gate", "a", map[string]int{"m": 2})
	check("an argument that the workflow does not have", err, flow.ErrInvalid)
	fresh, err := r.Start(ctx, "gate", "a", map[string]int{"n": 2}, flow.Attributes(struct {
		Customer string `json:"customer"`
	}{"c7"}))
	if check("a start", err, nil); !fresh {
		t.Error("it is not fresh")
	}
	_, err = r.Start(ctx, "gate", "a", nil)
	check("other arguments", err, flow.ErrExists)
	check("a retry of a run in flight", r.Retry(ctx, "a"), flow.ErrNotEnded)
	check("a signal", r.Signal(ctx, "a", "go", 1), nil)
	if _, err := flow.Result[[]any](ctx, r, "a"); err == nil || err.Error() != "Stuck: it is stuck" {
		t.Error(err)
	}
	check("a signal after the end", r.Signal(ctx, "a", "go", 1), flow.ErrEnded)
	check("a cancel after the end", r.Cancel(ctx, "a", ""), flow.ErrEnded)
	check("a reset to no step", r.Reset(ctx, "a", 17), flow.ErrInvalid)
	repaired = true
	check("a retry", r.Retry(ctx, "a"), nil)
	got, err := flow.Result[[]any](ctx, r, "a")
	if check("its result", err, nil); len(got) != 2 || got[1] != "s/a/1/0" {
		t.Error(got)
	}
	check("a reset", r.Reset(ctx, "a", 1, flow.Latest()), nil)
	check("the signal that it dropped", r.Signal(ctx, "a", "go", 1), nil)
	if got, err = flow.Result[[]any](ctx, r, "a"); err != nil || got[1] != "s/a/g1/1/0" {
		t.Error(got, err)
	}
	h, err := r.History(ctx, "a")
	if check("the history", err, nil); len(h.Events) != 4 || h.Gone() != 0 || h.Events[1].Kind != "reset" || h.Events[3].Action != "open" {
		t.Errorf("%+v", h)
	}
	p, err := r.Find(ctx, flow.Filter{Attributes: map[string]settle.Value{"customer": model.String("c7")}})
	if check("a search", err, nil); len(p.Runs) != 1 || p.Runs[0].ID != "a" || p.Runs[0].State != flow.Done {
		t.Errorf("%+v", p)
	}
	for letter, err := range d.Client().DeadLetters(ctx) {
		t.Error("a dead letter", letter, err)
	}
}

// A client that does not ask for refusals has an error, and its event is a dead letter: it cannot take a refusal for
// a success.
func TestRefusal_IsAnErrorForClientsThatDoNotAskForIt(t *testing.T) {
	t.Parallel()
	repaired := true
	s := settletest.New(t, gated(t, &repaired)).Space("s")
	for stream, payload := range map[string]map[string]any{
		"workflow-start":  {"workflow": "x", "run": "a"},
		"workflow-signal": {"run": "a", "signal": "go"},
		"workflow-cancel": {"run": "a"},
		"workflow-retry":  {"run": "a"},
		"workflow-reset":  {"run": "a", "step": 1},
	} {
		if rc := s.Send(stream, payload); rc.Outcome != model.Failed || rc.Error == "" {
			t.Errorf("%s: %v", stream, rc)
		}
		payload["answer"] = true
		out := s.Call(stream, payload)
		if message, _ := out.Get("message").AsString(); out.Get("refused").IsAbsent() || message == "" || out.Get("run").String() != `"a"` {
			t.Errorf("%s: %s", stream, out)
		}
	}
}

// A worker of an earlier version knows nothing of results of signals, and fails what it refuses.
func TestRuns_OfAnEarlierWorker(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("earlier")
	settle.NewStream[map[string]any]("workflow-signal").Handle(p, func(_ *settle.Tx, in map[string]any) error {
		if in["run"] != "a" {
			return errors.New(`space s has no run`)
		}
		return nil
	})
	r := flow.In(deployed(t, p).Client().Space("s"))
	if err := r.Signal(t.Context(), "a", "go", nil); err != nil {
		t.Error(err)
	}
	var failed *settle.NotHandledError
	if err := r.Signal(t.Context(), "b", "go", nil); !errors.As(err, &failed) || !strings.Contains(err.Error(), "has no run") {
		t.Error(err)
	}
}
