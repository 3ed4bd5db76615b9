package worker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
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
		if n := strings.Count(w.logged.String(), "sent on, to its own"); n != 3 {
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
		p := w.process(worker.Config{ID: "a", Checkpoint: 10 * time.Millisecond}, nil)
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
