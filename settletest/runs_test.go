package settletest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/settletest"
)

// A failed expectation of a run's result has the error of the run.
func TestExpect_NamesTheRunsThatHaveFailed(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("shop")
	w := flow.New(p)
	w.Starlark("order.star", []byte("pay = action(\"pay\", attempts = 1)\ndef order(id):\n    return pay(id)\nworkflow(\"order\", order)\n"))
	flow.Perform(w, "pay", func(context.Context, int) (string, error) { return "", errors.New("card declined") })
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	failing(t, func(tb *recorder) {
		s := settletest.New(tb, p).Space("shop")
		s.Call("workflow-start", map[string]any{"workflow": "order", "run": "o1", "args": map[string]any{"id": 1}})
		for n := 1; n > 0; {
			n = s.Perform()
		}
		s.Expect("run_o1", "receipt", "result")
	}).wantFailure("got   nothing", "space shop: run o1 has failed", "card declined")
}
