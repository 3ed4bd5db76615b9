package membus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// late is a bus whose store goes back after a session has passed a request on, and before the bus receives
// it.
type late struct {
	port.Bus
	goBack func()
}

func (l late) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	l.goBack()
	return l.Bus.SaveState(ctx, space, docs, mark)
}

func (l late) SavePosition(ctx context.Context, partition int, name string, seq uint64) error {
	l.goBack()
	return l.Bus.SavePosition(ctx, partition, name, seq)
}

func (l late) MovePosition(ctx context.Context, partition int, name string, seq uint64) error {
	l.goBack()
	return l.Bus.MovePosition(ctx, partition, name, seq)
}

func (l late) SaveAhead(ctx context.Context, partition int, a model.Ahead) error {
	l.goBack()
	return l.Bus.SaveAhead(ctx, partition, a)
}

func (l late) FillLane(ctx context.Context, partition int, upTo uint64, names []model.Message) error {
	l.goBack()
	return l.Bus.FillLane(ctx, partition, upTo, names)
}

func (l late) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	l.goBack()
	return l.Bus.FollowSpace(ctx, space, after, deliver)
}

// A request of a session changes nothing in a store that goes back between the session and the bus.
func TestSession_NothingIsStoredInAnotherEpoch(t *testing.T) {
	for name, request := range map[string]func(context.Context, port.Bus) error{
		"SaveState": func(ctx context.Context, b port.Bus) error {
			return b.SaveState(ctx, "s", []model.StateDoc{{Doc: "n", Data: []byte("1"), Seq: 2}}, &model.StateDoc{Data: []byte("{}"), Seq: 2})
		},
		"SavePosition": func(ctx context.Context, b port.Bus) error { return b.SavePosition(ctx, 0, "lane", 7) },
		"MovePosition": func(ctx context.Context, b port.Bus) error { return b.MovePosition(ctx, 0, "lane", 7) },
		"SaveAhead":    func(ctx context.Context, b port.Bus) error { return b.SaveAhead(ctx, 0, model.Ahead{UpTo: 7}) },
		"FillLane":     func(ctx context.Context, b port.Bus) error { return b.FillLane(ctx, 0, 3, nil) },
		"FollowSpace": func(ctx context.Context, b port.Bus) error {
			return b.FollowSpace(ctx, "s", 0, func(model.LogEntry) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := membus.NewServer(membus.Config{Partitions: 1})
			b := s.Connect("a")
			defer b.Close()
			empty := s.Snapshot()
			session := port.Session(late{b, func() { s.GoBack(empty) }})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // turns a hang into a failure
			defer cancel()
			if err := request(ctx, session); !errors.Is(err, model.ErrRewound) {
				t.Errorf("the session ended with %v", err)
			}
			if mark := s.LoadState("s").Mark; mark.Seq != 0 || s.LoadPosition(0, "lane") != 0 || s.LaneEnd(0) != 0 {
				t.Errorf("the store has a mark at %d, position %d, and %d events", mark.Seq, s.LoadPosition(0, "lane"), s.LaneEnd(0))
			}
		})
	}
}
