package flow_test

import (
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/deadline"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/remote"
	"github.com/settlehq/settle/settletest"
)

// The deadline of an action ends a call that no performer takes, each attempt by itself, with an error that a workflow handles like a timeout. It
// bounds neither the pauses nor the run.
func TestDeadline_OfAnActionEndsACallThatNoPerformerTakes(t *testing.T) {
	for name, options := range map[string][]settle.ActionOption{
		"performers": {deadline.After(time.Hour)},
		"clients":    {deadline.After(time.Hour), remote.Watched()},
	} {
		p := settle.NewProgram("shop")
		w := flow.New(p)
		w.Starlark("shop.star", []byte(`
load("actions", "charge")

def run():
    once = attempt(charge(cents = 5))
    again = attempt(retry(charge(cents = 6), attempts = 2, backoff = "1m", on = ["TimeoutError"]))
    return [once.failed("DeadlineError"), once.failed("TimeoutError"), again.failed("DeadlineError")]

workflow("run", run)
`))
		w.External("charge", options...)
		if err := w.Register(); err != nil {
			t.Fatal(err)
		}
		s := settletest.New(t, p).Space("s")
		s.Call("workflow-start", map[string]any{"workflow": "run", "run": "r"})
		s.Advance(3*time.Hour + time.Minute - time.Second)
		s.Expect("run_r", "running", "state")
		s.World().Restart()
		s.Advance(time.Second)
		s.Expect("run_r", "done", "state")
		if got := s.Get("run_r", "result").String(); got != "[true,true,true]" {
			t.Errorf("%s: %s, error %v", name, got, s.Get("run_r", "error"))
		}
	}
}
