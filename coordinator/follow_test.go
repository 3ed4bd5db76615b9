package coordinator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
)

// cutOff is a bus that loses the log when the test asks for it.
type cutOff struct {
	*membus.Bus
	lose     chan struct{}
	followed atomic.Int64
}

func (b *cutOff) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.followed.Add(1)
	go func() { // ends with ctx
		select {
		case <-b.lose:
			cancel()
		case <-ctx.Done():
		}
	}()
	return b.Bus.FollowReleases(ctx, partition, after, deliver)
}

// A new subscription starts after what was released, not after what was read: the position must not pass a
// send that is in no lane yet.
func TestTail_ANewSubscriptionDoesNotPassUnreleasedSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &cutOff{Bus: w.Connect("coordinator"), lose: make(chan struct{})}
		w.Server.LimitLanes(1)
		w.Send("there", "add", "first") // so that a lane with a limit of one is full
		w.CoordinatorOn(b, coordinator.Config{Save: 50 * time.Millisecond})
		seq := w.commit("here", to("there"))
		w.Pass(2 * time.Second)
		select {
		case b.lose <- struct{}{}:
		case <-time.After(time.Minute):
			t.Fatal("the log is no longer followed")
		}
		w.Eventually("the log is followed again", func() bool { return b.followed.Load() > 1 })
		w.Pass(5 * time.Second)
		if at := w.position(0); at >= seq {
			t.Errorf("the position is %d, and the send at %d is in no lane", at, seq)
		}
		w.Server.LimitLanes(0)
		w.Eventually("the send is released, and the position is saved", func() bool { return w.position(0) >= seq && w.released() })
	})
}
