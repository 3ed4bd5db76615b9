package flow_test

import (
	"context"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// TestRun_InMemory is the example of docs/workflows.md.
func TestRun_InMemory(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("shop")
	w := flow.New(p)
	w.Starlark("order.star", []byte(`
load("actions", "charge")

def run(cents):
    charge(cents = cents)
    return wait("approve", timeout = "48h")

workflow("order", run)
`))
	type charge struct {
		Cents int `json:"cents"`
	}
	flow.Perform(w, "charge", func(_ context.Context, in charge) (string, error) {
		return "receipt", nil
	})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	s := settletest.New(t, p).Space("shop")
	s.Call("workflow-start", map[string]any{"workflow": "order", "run": "o1", "args": map[string]any{"cents": 100}})
	for n := 1; n > 0; {
		n = s.Perform()
	}
	s.Advance(24 * time.Hour)
	s.Call("workflow-signal", map[string]any{"run": "o1", "signal": "approve", "value": "ann"})
	s.Expect("run_o1", "done", "state")
}

// What a builder calls an action with is its one argument, as a performer of another process finds it.
func TestCall_HasOneArgumentByPosition(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("shop")
	w := flow.New(p)
	w.External("ship")
	ship := flow.NewAction[map[string]int, string]("ship")
	flow.Define(w, "order", "1", func(b *flow.Builder, in flow.Value[map[string]int]) flow.Value[string] { return flow.Call(b, ship, in) })
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(context.Background()) })
	shop := d.Client().Space("shop")
	if _, err := flow.In(shop).Start(t.Context(), "order", "o1", map[string]int{"cents": 100}); err != nil {
		t.Fatal(err)
	}
	status, err := flow.In(shop).Status(t.Context(), "o1")
	if err != nil || len(status.Waiting) != 1 {
		t.Fatalf("%+v, %v", status, err)
	}
	task, _, err := shop.Get(t.Context(), model.TaskDoc("ship", "shop/o1/"+status.Waiting[0].ID))
	if got := task.At(model.Path{"in", "args"}).String(); err != nil || got != `[{"cents":100}]` {
		t.Errorf("the task is %s, %v", task, err)
	}
}
