package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

// logless is a bus without the log of one space.
type logless struct {
	*membus.Bus
	space string
	gone  atomic.Bool
	asked atomic.Int64
}

func (b *logless) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	if space == b.space && b.gone.Load() {
		b.asked.Add(1)
		return model.SpaceState{}, errStore
	}
	return b.Bus.LoadState(ctx, space)
}

// Loading a space that cannot be loaded is retried at growing intervals, however many events arrive for it,
// and the log lines stay few. Once the space can be loaded, all events are handled.
func TestFailing_LoadsAreRetriedAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		bus := &logless{space: "s"}
		bus.gone.Store(true)
		p := w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		const events = 1200 // for two minutes
		for i := range events {
			w.Send("s", "add", fmt.Sprint("e", i))
			w.Pass(101 * time.Millisecond)
		}
		if n := bus.asked.Load(); n < 10 || n > 20 {
			t.Errorf("the load was tried %d times", n)
		}
		if n := w.Log.Count("activate space"); n < 1 || n > 3 {
			t.Errorf("the failure was logged %d times", n)
		}
		bus.gone.Store(false)
		w.EventuallyEnded("s", events)
		p.Shutdown()
	})
}
