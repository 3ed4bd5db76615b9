package settletest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// A handler with a time limit sees it as a context that ends, and is called again. In a world, where nothing
// takes time, the context does not end.
func TestWithin_AHandlerSeesItsLimitAsAContextAndIsCalledAgain(t *testing.T) {
	wait := settle.NewRequest[string, int]("wait")
	var calls atomic.Int64
	program := func(idle bool) *settle.Program {
		p := settle.NewProgram("p")
		wait.Handle(p, func(tx *settle.Tx, _ string) (int, error) {
			n := int(calls.Add(1))
			ctx := settle.Context(tx)
			if n == 1 && !idle {
				if at, has := ctx.Deadline(); !has || time.Until(at) != 5*time.Second {
					t.Errorf("the context ends at %v", at)
				}
				<-ctx.Done()
			}
			return 0, ctx.Err()
		}, settle.Within(5*time.Second))
		return p
	}
	settletest.RunFleet(t, program(false), settletest.FleetOptions{Workers: 1, Faults: -1}, func(f *settletest.Fleet) {
		settletest.Post(f.Space("s"), wait, settle.ID("e1"), "x")
		f.Advance(time.Minute)
		settletest.Call(f.Space("s"), wait, "y")
		if n := calls.Load(); n != 5 { // each attempt with a result is repeated, to compare results
			t.Errorf("%d calls", n)
		}
	})
	s := settletest.New(t, program(true)).Space("s")
	if r := settletest.Send(s, wait, "x"); r.Outcome != model.Handled {
		t.Errorf("in a world: %s, %s", r.Outcome, r.Error)
	}
}
