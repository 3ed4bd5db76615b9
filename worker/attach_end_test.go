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

// leaseBus counts leases, and can be broken: it then accepts no commit.
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

// An attachment that cannot continue ends completely, even before it is closed.
func TestAttach_AfterItsEndRequestsNothing(t *testing.T) {
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
		synctest.Wait() // until all of its goroutines have ended
		n := b.leases.Load()
		w.Pass(time.Minute)
		if m := b.leases.Load(); m > n {
			t.Errorf("%d leases after the end of the attachment", m-n)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		b.Bus.Close()
	})
}
