package history_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// countingBus counts how often an event is looked up.
type countingBus struct {
	port.Client
	looks atomic.Int64
}

func (b *countingBus) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	b.looks.Add(1)
	return b.Client.FindEvent(ctx, space, stream, id)
}

// However long a wait for an event takes, the event is looked up only when the wait begins, and once more
// when a deposed leader must know it; otherwise the logs are followed.
func TestWait_LooksUpAMissingEventOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := &countingBus{Client: w.Client}
		if err := <-w.waiting(t.Context(), b, "a", "e1"); err == nil { // after five minutes
			t.Error("the wait for an event that was never sent has ended")
		}
		if n := b.looks.Load(); n != 2 {
			t.Errorf("looked up %d times, want 2", n)
		}
	})
}
