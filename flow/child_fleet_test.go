package flow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/settletest"
)

const fleetSource = `
def run(n):
    rs = parallel([child("leaf", {"n": i}, space = "leaf-" + str(i)) for i in range(n)])
    late = attempt(timeout(child("leaf", {"n": -1}, space = "leaf-0"), "1m"))
    again = attempt(parallel(child("leaf", {"n": -1}, space = "leaf-1"), child("none", {}, space = "leaf-2")))
    return [sum(rs), late.error.type, again.error.type]

workflow("w", run)
`

const leafSource = `
load("actions", "twice")
def run(n):
    if n < 0:
        wait("never")
    x = twice(n)
    return x

workflow("leaf", run)
`

// Workers are killed and messages are lost while runs in several spaces wait for each other. Each has the outcome that it has
// without that, nothing waits without end, and every event is handled once.
func TestChild_InAFleetWithFaults(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("p")
	w := flow.New(p)
	w.Starlark("w.star", []byte(fleetSource))
	w.Starlark("leaf.star", []byte(leafSource))
	flow.Perform(w, "twice", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	settletest.RunFleet(t, p, settletest.FleetOptions{Workers: 3, Seeds: 4}, func(f *settletest.Fleet) {
		s := f.Space("shop")
		for i := range 3 {
			s.Post("workflow-start", settle.ID(fmt.Sprint("start-", i)), map[string]any{"workflow": "w", "run": fmt.Sprint("r", i), "args": map[string]int{"n": 3 + i}})
			f.Advance(time.Duration(f.Rand.IntN(3000)) * time.Millisecond)
			f.Kill()
			f.Start()
		}
		f.Advance(5 * time.Minute)
		f.Rest()
		for i := range 3 {
			n := 3 + i
			want := fmt.Sprintf(`[%d,"TimeoutError","UnknownWorkflowError"]`, n*(n-1))
			if got := s.Get(fmt.Sprint("run_r", i)).Get("result").String(); got != want {
				t.Errorf("run %d: %s, want %s", i, got, want)
			}
		}
		for i := range 5 {
			for id, entry := range f.Space(fmt.Sprint("leaf-", i)).Get("runs").All() {
				if state, _ := entry.Get("state").AsString(); state == "running" {
					t.Errorf("run %s in leaf-%d goes on", id, i)
				}
			}
		}
	})
}
