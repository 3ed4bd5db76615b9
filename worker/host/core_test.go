package host

import (
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
)

// testCore implements Core for a space as far as these tests need it, like package worker.
type testCore struct{ *space.Space }

func newTestCore(runtime string, limits ledger.Limits) (testCore, error) {
	return newTestCoreOf(runtime, limits, replica.New("s"))
}

func newTestCoreOf(runtime string, limits ledger.Limits, r *replica.Replica) (testCore, error) {
	s, err := space.New(space.Config{Space: "s", Runtime: runtime, Limits: limits}, space.NewProgram("none"), r)
	return testCore{s}, err
}

func (c testCore) Settle(now time.Duration) Ready {
	r := c.Space.Settle(now)
	out := Ready{Append: r.Append, Wake: r.Wake, Due: r.Due, More: r.More, Undone: r.Undone}
	if r.Refill != nil {
		out.Refill, out.RefillAfter = true, r.Refill.After
	}
	return out
}

func (c testCore) StuckAt(func(time.Duration) string) (status.Stuck, bool) {
	return status.Stuck{}, false
}
func (c testCore) Overran(o Overrun)  { c.Space.Overran(space.Overrun(o)) }
func (c testCore) LastMissed() Missed { return Missed(c.Space.LastMissed()) }
func (c testCore) Mirror(of Ref, v model.Value, via *model.Trail) {
	c.Space.MirrorVia(of.Space, of.Doc, v, via)
}
func (c testCore) Woken(model.Trace)                   {}
func (c testCore) Change(Program) error                { return nil }
func (c testCore) Observed() ([]model.StateDoc, error) { return nil, nil }
func (c testCore) LookAtTasks()                        {}
func (c testCore) PerformTasks()                       {}
func (c testCore) TasksUndone([]uint64)                {}
func (c testCore) TasksPending() bool                  { return false }
func (c testCore) TasksAt() time.Duration              { return 0 }
func (c testCore) HoldsTasks(string) bool              { return false }

func (c testCore) Freshness(doc string) Freshness {
	f := c.Space.Freshness(doc)
	return Freshness{Pending: f.Pending, Reason: f.Reason}
}

func (c testCore) BeginCommit(*model.Commit, model.Trace) (model.Trace, func(uint64, error)) {
	return model.Trace{}, func(uint64, error) {}
}
