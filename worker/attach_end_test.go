package worker_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// leaseBus counts leases, and can be broken: it then takes no commit.
type leaseBus struct {
	*membus.Bus
	leases atomic.Int64
	broken atomic.Bool
}

func (b *leaseBus) Observe(l model.Lease) error { b.leases.Add(1); return b.Bus.Observe(l) }
func (b *leaseBus) Append(a model.Append, done func(uint64, error)) {
	if b.broken.Load() {
		done(0, model.ErrTooLarge)
		return
	}
	b.Bus.Append(a, done)
}

// One that cannot go on has ended altogether, though nobody has closed it yet.
func TestAttach_OneThatHasEndedAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &leaseBus{Bus: w.Server.Connect("app")}
		a, err := worker.Attach(t.Context(), b, worker.AttachConfig{ID: "app", Space: "s", Events: true, Program: book(t)})
		if err != nil {
			t.Fatal(err)
		}
		b.broken.Store(true)
		w.Send("s", "add", "e1", `1`)
		<-a.Done()
		synctest.Wait() // until all of it has ended
		n := b.leases.Load()
		w.Pass(time.Minute)
		if m := b.leases.Load(); m > n {
			t.Errorf("%d leases after its end", m-n)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		b.Bus.Close()
	})
}
