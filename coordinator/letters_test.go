package coordinator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// reluctant is a bus that refuses letters a few times.
type reluctant struct {
	*membus.Bus
	refuse atomic.Int64
}

func (b *reluctant) StoreDead(ctx context.Context, d *model.DeadLetter) error {
	if b.refuse.Add(-1) >= 0 {
		return errors.New("not today")
	}
	return b.Bus.StoreDead(ctx, d)
}

func TestDeadLetter_AFailedWriteIsRetriedUntilTheLetterIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &reluctant{Bus: w.Connect("coordinator")}
		b.refuse.Store(5)
		w.Send("a", "add", "e1")
		seq := w.end("a", &model.Receipt{Event: "e1", Lane: 1, Outcome: model.Failed, Error: "no"})
		w.CoordinatorOn(b, coordinator.Config{})
		w.Eventually("the letter is written", func() bool { return len(w.Server.ReadDead("", 0, 10)) == 1 })
		w.Eventually("the position passes its commit", func() bool { return w.position(0) == seq })
	})
}

// deposed is a bus whose leader does not know the newest events for a few reads.
type deposed struct {
	*membus.Bus
	forget atomic.Int64
}

func (b *deposed) StaleWindow() time.Duration { return port.StaleLeader }

func (b *deposed) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	if b.forget.Add(-1) >= 0 {
		return model.Message{}, false, nil
	}
	return b.Bus.FindEvent(ctx, space, stream, id)
}

// A deposed leader answers from the past: an event that has just ended was in its lane, so its letter gets
// its payload.
func TestDeadLetter_ADeposedLeaderIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &deposed{Bus: w.Connect("coordinator")}
		b.forget.Store(3)
		w.Send("a", "add", "e1")
		w.end("a", &model.Receipt{Event: "e1", Lane: 1, Outcome: model.Failed, Error: "no"})
		w.CoordinatorOn(b, coordinator.Config{})
		w.Eventually("the letter is written", func() bool { return len(w.Server.ReadDead("", 0, 10)) == 1 })
		if d := w.Server.ReadDead("", 0, 10)[0]; d.Lost != "" {
			t.Errorf("the letter reports its payload as lost: %s", d.Lost)
		}
	})
}

// An event that was purged from its lane holds the letters up until no leader can answer from the past, and
// then counts as lost.
func TestDeadLetter_AnEventThatWasPurgedCountsAsLostAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &deposed{Bus: w.Connect("coordinator")}
		seq := w.end("a", &model.Receipt{Event: "e1", Lane: 1, Outcome: model.Failed, Error: "no"})
		w.CoordinatorOn(b, coordinator.Config{})
		w.Eventually("the letter reports the loss", func() bool {
			letters := w.Server.ReadDead("", 0, 10)
			return len(letters) == 1 && letters[0].Lost != ""
		})
		w.Eventually("the position passes its commit", func() bool { return w.position(0) == seq })
	})
}

// An event that a space has sent to itself is in no lane. If its origin was purged, too, the payload is lost:
// the letter reports that, and delays nothing.
func TestDeadLetter_AMissingPayloadIsReportedAsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &deposed{Bus: w.Connect("coordinator")}
		seq := w.end("a", &model.Receipt{Event: "e1", Outcome: model.Failed, Error: "no"})
		w.CoordinatorOn(b, coordinator.Config{})
		w.Pass(2 * time.Second)
		letters := w.Server.ReadDead("", 0, 10)
		if len(letters) != 1 || letters[0].Lost == "" {
			t.Fatalf("the letters are %+v, want one that reports its payload as lost", letters)
		}
		if w.position(0) != seq {
			t.Errorf("position %d, want %d", w.position(0), seq)
		}
	})
}

// A released event carries the fields of its send for the receiver: its position, the depth of its chain, and
// its time.
func TestRelease_CarriesTheFieldsOfTheSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		s := to("b")
		s.Depth, s.NotBefore = 7, 946684900000
		w.commit("a", s)
		w.coordinator(coordinator.Config{})
		w.Eventually("the send is released", w.released)
		if m := w.Server.ReadLane("b", 0, 1)[0]; m.Position != 1 || m.Depth != 7 || m.NotBefore != s.NotBefore {
			t.Errorf("released as %+v", m)
		}
	})
}

// However an event ends without effect, its origin gets a notice, although the commit with the receipt sends
// nothing itself.
func TestNotice_FollowsEveryEndWithoutEffect(t *testing.T) {
	for _, how := range []model.Outcome{model.Refused, model.Cancelled, model.Expired} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.commit("a", to("b"))
			w.end("b", &model.Receipt{Event: w.sent["b"]["a"][0], Lane: 1, Outcome: how, Error: "no", Pos: 1})
			w.coordinator(coordinator.Config{})
			w.Eventually("the origin gets a notice that it was "+string(how), func() bool { return len(w.Server.ReadLane("a", 0, 1)) == 1 })
		})
	}
}

// A notice is one link further in the chain than the event that it is about.
func TestNotice_CarriesTheDepthOfTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.commit("a", to("b"))
		w.end("b", &model.Receipt{Event: w.sent["b"]["a"][0], Lane: 1, Outcome: model.Refused, Error: "no", Depth: 7, Pos: 1})
		w.coordinator(coordinator.Config{})
		w.Eventually("the notice is in the lane", func() bool { return len(w.Server.ReadLane("a", 0, 1)) == 1 })
		if m := w.Server.ReadLane("a", 0, 1)[0]; m.Depth < 7 {
			t.Errorf("the notice has depth %d", m.Depth)
		}
	})
}
