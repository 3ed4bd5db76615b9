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

// without is a bus of whose partitions one has no lane for a while.
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

// Send waits for a lane that is missing, as a bus does.
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

// A coordinator that is started while a lane is missing releases into the others. When the lane is there again, and has
// lost its end, it is given what logs have sent it, as at any start.
func TestMissingLane_TheOthersAreReleasedIntoAndItIsComparedWhenItIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		lost  uint64 // so many of the last events
		since int    // other clients send so many before it is compared
	}{
		"it has what it had": {0, 0}, "it has lost its end": {3, 0},
		// What is done at the same moment has no order, so this is tried often enough.
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
				w.Eventually("the other lane is released into", func() bool { return len(w.Lane(whole)) == 3 })
				w.Eventually("the position is saved", func() bool { return w.position(0) == 7 })
				w.commit(from, to(gone))
				w.Pass(time.Minute)
				if n := w.Log.Count("a lane cannot be compared"); n != 1 {
					t.Errorf("it was logged %d times that the lane is missing", n)
				}
				if at := w.position(0); at != 7 {
					t.Errorf("the position is %d, and what is sent behind 7 is not in its lane", at)
				}
				if c.lost > 0 {
					w.Server.LoseLane(1, 4-c.lost)
				}
				for i := range c.since {
					w.Send(gone, "other", fmt.Sprint("n", i))
				}
				b.missing.Store(false)
				w.Eventually("all of it is there", w.released)
				w.Eventually("the position is saved", func() bool { return w.position(0) == 8 })
				if n := len(w.Lane(gone)); n != 5+c.since {
					t.Errorf("the lane holds %d events, want 5, and %d of others", n, c.since)
				}
				if said := w.Log.Count("have lost their ends") > 0; said != (c.lost > 0) {
					t.Errorf("that it has lost its end is said: %v", said)
				}
			})
		})
	}
}
