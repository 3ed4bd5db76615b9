package flow_test

import (
	"context"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
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
