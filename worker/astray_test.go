package worker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// A client that has the partition wrong is told that its event is stored. It is handled, then,
// once, and in the order of those that went astray together.
func TestAstray_AnEventInTheLaneOfAnotherPartitionIsHandledAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		home, wrong := spacesOf(1, 2, 1)[0], 0
		for _, id := range numbered(3) {
			if _, err := w.server.SendTo(wrong, model.Message{Space: home, Stream: "add", ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		p := w.process(worker.Config{ID: "a"}, nil)
		w.eventuallyHandled(home, 3)
		w.send(home, "add", "e2") // whoever sends it again has it right this time
		w.send(home, "add", "e4")
		w.eventuallyHandled(home, 4)
		p.stop()
		w.wantHandled(home, numbered(4)...)
		w.wantPosition(wrong, 3)
		if n := strings.Count(w.logged.String(), "forwarded to its own"); n != 3 {
			t.Errorf("%d warnings, want one per event:\n%s", n, w.logged)
		}
	})
}

// As long as its own lane has no room, the position of the lane where it stands is not saved
// beyond it: the worker may crash, and the next one finds it.
func TestAstray_WhatCouldNotBeSentOnIsFoundByTheNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		home, wrong, neighbour := spacesOf(1, 2, 1)[0], 0, spacesOf(0, 2, 1)[0]
		if _, err := w.server.SendTo(wrong, model.Message{Space: home, Stream: "add", ID: "e1"}); err != nil {
			t.Fatal(err)
		}
		w.send(neighbour, "add", "e1")
		w.send(spacesOf(1, 2, 2)[1], "add", "e1")
		w.server.LimitLanes(1)
		p := w.process(worker.Config{ID: "a", Options: worker.Options{Checkpoint: 10 * time.Millisecond}}, nil)
		w.eventuallyHandled(neighbour, 1)
		w.pass(time.Second)
		w.wantPosition(wrong, 0)
		p.crash()
		w.server.LimitLanes(0)
		w.worker("b")
		w.eventuallyHandled(home, 1)
		w.wantHandled(home, "e1")
		w.wantHandled(neighbour, "e1")
	})
}

// The lane position may stay behind for the sake of a space that nobody serves, for longer than
// anybody remembers an event. What went astray before that is not sent on again.
func TestAstray_IsSentOnOnceHoweverFarThePositionLagsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, membus.Config{Partitions: 2, Horizon: horizon})
		home, wrong, nobody := spacesOf(1, 2, 1)[0], 0, spacesOf(0, 2, 1)[0]
		programs := func(name string) (*space.Program, error) {
			if name == nobody {
				return nil, nil
			}
			return book(t), nil
		}
		w.send(nobody, "add", "waits")
		if _, err := w.server.SendTo(wrong, model.Message{Space: home, Stream: "add", ID: "e1"}); err != nil {
			t.Fatal(err)
		}
		p := w.process(worker.Config{ID: "a", Programs: programs}, nil)
		w.eventuallyHandled(home, 1)
		w.send(home, "add", "e2")
		w.eventuallyHandled(home, 2)
		w.pass(forgotten + time.Hour)
		w.send(home, "add", "e3")
		w.pass(10 * time.Minute)
		p.stop()
		w.process(worker.Config{ID: "b", Programs: programs}, nil)
		w.pass(time.Minute)
		w.wantHandled(home, "e1", "e2", "e3")
		w.wantPosition(wrong, 0)
	})
}

// Many that cannot be sent on hold nobody up who is at home in the lane.
func TestAstray_WhatWaitsForItsLaneHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		ids := numbered(100)
		a, b := spacesOf(0, 2, 1)[0], spacesOf(1, 2, 1)[0]
		for _, id := range ids {
			for p, s := range map[int]string{0: b, 1: a} { // any order: each in its lane
				if _, err := w.server.SendTo(p, model.Message{Space: s, Stream: "add", ID: id}); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.send(a, "add", "home")
		w.server.LimitLanes(50)
		w.worker("w")
		w.eventuallyHandled(a, 1)
		w.wantHandled(a, "home")
		w.server.LimitLanes(0)
		w.eventuallyHandled(a, 101)
		w.eventuallyHandled(b, 100)
		w.wantHandled(a, append([]string{"home"}, ids...)...)
		w.wantHandled(b, ids...)
	})
}
