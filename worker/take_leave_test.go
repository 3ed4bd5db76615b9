package worker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

// withoutMembers is a bus that can no longer store announcements, because the members bucket is gone.
type withoutMembers struct {
	*membus.Bus
	gone atomic.Bool
}

func (b *withoutMembers) Announce(ctx context.Context, m model.Member) error {
	if !b.gone.Load() {
		return b.Bus.Announce(ctx, m)
	}
	<-ctx.Done() // Announce retries for as long as the caller waits
	return ctx.Err()
}

func TestStop_AWorkerThatCannotAnnounceItsDepartureStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		bus := &withoutMembers{}
		p := w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		bus.gone.Store(true)
		if err := p.Stop(context.WithoutCancel(t.Context())); err == nil || !strings.Contains(err.Error(), "could not announce it") {
			t.Errorf("Stop returned %v", err)
		}
	})
}
