package coordinator_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
)

// announced returns the last announcement of a coordinator.
func (w *world) announced(id string) (last model.Member) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	_ = w.Client.FollowMembers(ctx, func(m model.Member) {
		if m.ID == id {
			last = m
		}
	}, cancel)
	return last
}

const (
	noRoom    = "WARN a lane has no room"
	roomAgain = "INFO a lane has room again"
)

// A full lane is logged once for all events that wait for it, with their number and since when, then at
// growing intervals, and once when it has room again. A later episode is logged separately. During an episode
// the coordinator's announcements report it.
func TestFull_AFullLaneIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Server.LimitLanes(3)
		w.coordinator(coordinator.Config{ID: "c1", Window: 8})
		since := time.Now().UTC()
		for range 20 {
			w.commit("a", to("b"))
		}
		w.Pass(30 * time.Second)
		lines := w.Log.Lines(noRoom)
		if len(lines) != 1 {
			t.Fatalf("the full lane is reported %d times in half a minute:\n%s", len(lines), w.Log)
		}
		for _, part := range []string{" partition=0 ", " space=b ", " stream=add ", " from=a ", " since=" + since.Format("2006-01-02"), " waiting="} {
			if !strings.Contains(lines[0], part) {
				t.Errorf("the report lacks%s:\n%s", part, lines[0])
			}
		}
		full := w.announced("c1").Full
		if len(full) != 1 || full[0].Partition != 0 || full[0].Space != "b" || full[0].Waiting != 8 || full[0].Since.Sub(since) > time.Second {
			t.Errorf("the coordinator announces %+v", full)
		}
		w.Pass(time.Hour)
		if n := w.Log.Count(noRoom); n < 5 || n > 9 {
			t.Errorf("the full lane is reported %d times in an hour", n)
		}
		if n := w.Log.Count(roomAgain); n != 0 {
			t.Errorf("the end is reported too early:\n%s", w.Log)
		}
		w.Server.LimitLanes(0)
		w.Pass(time.Minute)
		w.wantReleased()
		if lines := w.Log.Lines(roomAgain); len(lines) != 1 || !strings.Contains(lines[0], " for=1h0m") {
			t.Errorf("the end is reported as %v", lines)
		}
		if full := w.announced("c1").Full; len(full) != 0 {
			t.Errorf("the coordinator still announces %+v", full)
		}
		before := w.Log.Count(noRoom)
		w.Server.LimitLanes(1)
		w.commit("a", to("b"))
		w.Pass(time.Second)
		if n := w.Log.Count(noRoom) - before; n != 1 {
			t.Errorf("a later episode is reported %d times at once", n)
		}
	})
}

// A lane that has room for one event from time to time counts as full throughout.
func TestFull_ALittleRoomDoesNotEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Server.LimitLanes(1)
		w.coordinator(coordinator.Config{Window: 8})
		for range 100 {
			w.commit("a", to("b"))
		}
		for room := 2; room < 50; room++ {
			w.Pass(10 * time.Second)
			w.Server.LimitLanes(room)
		}
		if n := w.Log.Count(noRoom); n < 2 || n > 5 {
			t.Errorf("the full lane is reported %d times in eight minutes", n)
		}
		if n := w.Log.Count(roomAgain); n != 0 {
			t.Errorf("the end is reported %d times", n)
		}
	})
}

// A letter that cannot be written for an hour is retried throughout, with few log lines.
func TestDeadLetter_AnHourOfRefusalsWritesFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Connect("coordinator")
		w.Send("a", "add", "e1")
		w.CoordinatorOn(noBurial{b}, coordinator.Config{})
		w.end("a", &model.Receipt{Event: "e1", Lane: 1, Outcome: model.Failed, Error: "no"})
		w.Pass(time.Hour)
		if n := w.Log.Count("ERROR store a dead letter"); n < 5 || n > 9 {
			t.Errorf("the failure is reported %d times in an hour", n)
		}
	})
}

// noBurial is a bus that never stores a letter.
type noBurial struct{ *membus.Bus }

func (noBurial) StoreDead(context.Context, *model.DeadLetter) error { return membus.ErrOutage }
