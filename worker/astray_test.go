package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// A client that computes a wrong partition still gets an acknowledgement. Its event is handled nevertheless:
// once, and in order among the misrouted events.
func TestAstray_AnEventInTheLaneOfAnotherPartitionIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		home, wrong := worldtest.SpacesIn(1, 2, 1)[0], 0
		for _, id := range worldtest.Numbered(3) {
			if _, err := w.Server.SendTo(wrong, model.Message{Space: home, Stream: "add", ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		p := w.process(worker.Config{ID: "a"}, nil)
		w.EventuallyEnded(home, 3)
		w.Send(home, "add", "e2") // sent again, to the right lane
		w.Send(home, "add", "e4")
		w.EventuallyEnded(home, 4)
		p.Shutdown()
		w.wantHandled(home, worldtest.Numbered(4)...)
		w.WantPosition(wrong, 3)
		if n := w.Log.Count("forwarded to its own"); n != 1 { // each client can store many
			t.Errorf("%d warnings, want one about all of them:\n%s", n, w.Log)
		}
	})
}

// While the event's own lane has no room, the position of the lane that holds it is not saved beyond it, so
// that the next owner finds it after a crash.
func TestAstray_TheNextOwnerFindsUnforwardedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		home, wrong, neighbour := worldtest.SpacesIn(1, 2, 1)[0], 0, worldtest.SpacesIn(0, 2, 1)[0]
		if _, err := w.Server.SendTo(wrong, model.Message{Space: home, Stream: "add", ID: "e1"}); err != nil {
			t.Fatal(err)
		}
		w.Send(neighbour, "add", "e1")
		w.Send(worldtest.SpacesIn(1, 2, 2)[1], "add", "e1")
		w.Server.LimitLanes(1)
		p := w.process(worker.Config{ID: "a", Options: worker.Options{Checkpoint: 10 * time.Millisecond}}, nil)
		w.EventuallyEnded(neighbour, 1)
		w.Pass(time.Second)
		w.WantPosition(wrong, 0)
		p.Crash()
		w.Server.LimitLanes(0)
		w.worker("b")
		w.EventuallyEnded(home, 1)
		w.wantHandled(home, "e1")
		w.wantHandled(neighbour, "e1")
	})
}

// A space that no worker serves may hold the lane position back for longer than events are remembered.
// Misrouted events from before that time are not forwarded again.
func TestAstray_IsForwardedOnceHoweverFarThePositionLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, membus.Config{Partitions: 2, Horizon: horizon})
		home, wrong, nobody := worldtest.SpacesIn(1, 2, 1)[0], 0, worldtest.SpacesIn(0, 2, 1)[0]
		programs := func(name string) (*space.Program, error) {
			if name == nobody {
				return nil, nil
			}
			return book(t), nil
		}
		w.Send(nobody, "add", "waits")
		if _, err := w.Server.SendTo(wrong, model.Message{Space: home, Stream: "add", ID: "e1"}); err != nil {
			t.Fatal(err)
		}
		p := w.process(worker.Config{ID: "a", Programs: programs}, nil)
		w.EventuallyEnded(home, 1)
		w.Send(home, "add", "e2")
		w.EventuallyEnded(home, 2)
		w.Pass(forgotten + time.Hour)
		w.Send(home, "add", "e3")
		w.Pass(10 * time.Minute)
		p.Shutdown()
		w.process(worker.Config{ID: "b", Programs: programs}, nil)
		w.Pass(time.Minute)
		w.wantHandled(home, "e1", "e2", "e3")
		w.WantPosition(wrong, 0)
	})
}

// Many misrouted events that cannot be forwarded do not delay the other spaces of the lane.
func TestAstray_UnforwardedEventsDelayNoOtherSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		ids := worldtest.Numbered(100)
		a, b := worldtest.SpacesIn(0, 2, 1)[0], worldtest.SpacesIn(1, 2, 1)[0]
		for _, id := range ids {
			for p, s := range map[int]string{0: b, 1: a} { // any order: each in its lane
				if _, err := w.Server.SendTo(p, model.Message{Space: s, Stream: "add", ID: id}); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.Send(a, "add", "home")
		w.Server.LimitLanes(50)
		w.worker("w")
		w.EventuallyEnded(a, 1)
		w.wantHandled(a, "home")
		w.Server.LimitLanes(0)
		w.EventuallyEnded(a, 101)
		w.EventuallyEnded(b, 100)
		w.wantHandled(a, append([]string{"home"}, ids...)...)
		w.wantHandled(b, ids...)
	})
}
