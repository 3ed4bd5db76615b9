package coordinator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
)

// without is a bus without the lane of one partition for a while.
type without struct {
	*membus.Bus
	lane    int
	missing atomic.Bool
}

func (b *without) LaneEnd(ctx context.Context, partition int) (uint64, error) {
	if partition == b.lane && b.missing.Load() {
		return 0, model.ErrNoStream
	}
	return b.Bus.LaneEnd(ctx, partition)
}

func (b *without) LaneEvent(ctx context.Context, partition int, seq uint64) (model.Message, bool, error) {
	if partition == b.lane && b.missing.Load() {
		return model.Message{}, false, model.ErrNoStream
	}
	return b.Bus.LaneEvent(ctx, partition, seq)
}

// Send waits for a missing lane, as a bus does.
func (b *without) Send(m model.Message, done func(model.SendResult, error)) {
	if model.PartitionOf(m.Space, b.Partitions()) != b.lane || !b.missing.Load() {
		b.Bus.Send(m, done)
		return
	}
	go func() { // ends when the lane is there
		for b.missing.Load() {
			_ = pause.For(context.Background(), 10*time.Millisecond)
		}
		b.Bus.Send(m, done)
	}()
}

// A coordinator that starts while a lane is missing releases into the others. When the lane exists again, and
// has lost its end, the sends of the logs are released into it again, as at any start.
func TestMissingLane_OthersGetTheirSendsAndItIsComparedWhenItExists(t *testing.T) {
	for name, c := range map[string]struct {
		lost  uint64 // the number of lost events
		since int    // the number of events that other clients send before the comparison
	}{
		"nothing is lost": {0, 0}, "the lane lost its end": {3, 0},
		// Concurrent steps have no order, so the same case runs several times.
		"it is as long again": {3, 9}, "and again": {3, 9}, "and once more": {3, 9}, "and at last": {3, 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				here, gone := worldtest.SpacesIn(0, 2, 2), worldtest.SpacesIn(1, 2, 1)[0]
				from, whole := here[0], here[1]
				first, _ := w.coordinator(coordinator.Config{})
				for range 4 {
					w.commit(from, to(gone))
				}
				w.Eventually("the position is saved", func() bool { return w.position(0) == 4 })
				first.Stop()
				b := &without{Bus: w.Connect("coordinator"), lane: 1}
				b.missing.Store(true)
				w.CoordinatorOn(b, coordinator.Config{})
				for range 3 {
					w.commit(from, to(whole))
				}
				w.Eventually("sends reach the other lane", func() bool { return len(w.Lane(whole)) == 3 })
				w.Eventually("the position is saved", func() bool { return w.position(0) == 7 })
				w.commit(from, to(gone))
				w.Pass(time.Minute)
				if n := w.Log.Count("a lane cannot be compared"); n != 1 {
					t.Errorf("the missing lane was logged %d times", n)
				}
				if at := w.position(0); at != 7 {
					t.Errorf("the position is %d, and the send after 7 is not in its lane", at)
				}
				if c.lost > 0 {
					w.Server.LoseLane(1, 4-c.lost)
				}
				for i := range c.since {
					w.Send(gone, "other", fmt.Sprint("n", i))
				}
				b.missing.Store(false)
				w.Eventually("all sends are in the lane", w.released)
				w.Eventually("the position is saved", func() bool { return w.position(0) == 8 })
				if n := len(w.Lane(gone)); n != 5+c.since {
					t.Errorf("the lane has %d events, want 5 and %d of other clients", n, c.since)
				}
				if said := w.Log.Count("have lost their ends") > 0; said != (c.lost > 0) {
					t.Errorf("the lost end is logged: %v", said)
				}
			})
		})
	}
}
