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

// A client that has the partition wrong is told that its event is stored. It is handled, then,
// once, and in the order of those that went astray together.
func TestAstray_AnEventInTheLaneOfAnotherPartitionIsHandledAllTheSame(t *testing.T) {
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
		w.Send(home, "add", "e2") // it is sent again, to the right lane
		w.Send(home, "add", "e4")
		w.EventuallyEnded(home, 4)
		p.Shutdown()
		w.wantHandled(home, worldtest.Numbered(4)...)
		w.WantPosition(wrong, 3)
		if n := w.Log.Count("forwarded to its own"); n != 3 {
			t.Errorf("%d warnings, want one per event:\n%s", n, w.Log)
		}
	})
}

// As long as its own lane has no room, the position of the lane where it stands is not saved
// beyond it: the worker may crash, and the next one finds it.
func TestAstray_WhatCouldNotBeSentOnIsFoundByTheNextOwner(t *testing.T) {
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

// The lane position may stay behind for the sake of a space that nobody serves, for longer than
// anybody remembers an event. What went astray before that is not sent on again.
func TestAstray_IsSentOnOnceHoweverFarThePositionLagsBehind(t *testing.T) {
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

// Many that cannot be sent on hold nobody up who is at home in the lane.
func TestAstray_WhatWaitsForItsLaneHoldsNobodyUp(t *testing.T) {
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
