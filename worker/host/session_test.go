package host

import (
	"errors"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// pastBus is a bus whose store goes back. Any write or removal except Append fails the test.
type pastBus struct {
	Bus
	epoch    uint64
	appended model.Append
	sent     model.Message
}

func (b *pastBus) Epoch() uint64                                { return b.epoch }
func (b *pastBus) Append(a model.Append, _ func(uint64, error)) { b.appended = a }
func (b *pastBus) Send(m model.Message, _ func(model.SendResult, error)) {
	b.sent = m
}

// Memory of an earlier epoch writes and removes nothing in the present store.
func TestSession_OfAnEarlierEpochChangesNothing(t *testing.T) {
	b := &pastBus{epoch: 3}
	s := port.Session(b)
	b.epoch++
	s.Append(model.Append{Space: "s"}, nil)
	if b.appended.Epoch != 3 {
		t.Errorf("the append has epoch %d, want 3, so that the bus refuses it", b.appended.Epoch)
	}
	s.Send(model.Message{Space: "s"}, nil)
	if !b.sent.Bound || b.sent.Epoch != 3 {
		t.Errorf("the event was sent with %+v", b.sent)
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"SaveState":      func() error { return s.SaveState(ctx, "s", nil, nil) },
		"SavePosition":   func() error { return s.SavePosition(ctx, 0, "lane", 1) },
		"SaveAhead":      func() error { return s.SaveAhead(ctx, 0, model.Ahead{}) },
		"MovePosition":   func() error { return s.MovePosition(ctx, 0, "lane", 1) },
		"PurgeState":     func() error { return s.PurgeState(ctx, "s", nil) },
		"PurgeLog":       func() error { return s.PurgeLog(ctx, "s", 1) },
		"PurgeLane":      func() error { _, err := s.PurgeLane(ctx, 0, 1, time.Hour); return err },
		"FillLane":       func() error { return s.FillLane(ctx, 0, 1, nil) },
		"StoreDead":      func() error { return s.StoreDead(ctx, nil) },
		"FollowSpace":    func() error { return s.FollowSpace(ctx, "s", 0, nil) },
		"FollowLog":      func() error { return s.FollowLog(ctx, 0, 0, nil) },
		"FollowReleases": func() error { return s.FollowReleases(ctx, 0, 0, nil) },
		"FollowLane":     func() error { return s.FollowLane(ctx, 0, 0, nil) },
	} {
		if err := attempted(call); !errors.Is(err, model.ErrRewound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// attempted returns the result of a call, or that the call has reached the bus, which has no such method.
func attempted(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the call reached the bus")
		}
	}()
	return call()
}

// A partition whose store has gone back does not continue with its lane: it restarts.
func TestPartition_OfAnEarlierEpochEnds(t *testing.T) {
	b := &pastBus{}
	anew := false
	p := &servedPartition{env: env{bus: port.Session(b)}, current: b.Epoch, restart: func(*servedPartition) { anew = true }}
	b.epoch++
	if err := attempted(func() error { return p.followLane(t.Context()) }); !errors.Is(err, model.ErrStopped) || !anew {
		t.Errorf("the partition follows its lane: %v", err)
	}
}
