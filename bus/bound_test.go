package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// An event that depends on what was read in one epoch of the store is not sent in another one; an independent
// event is.
func TestSend_AnEventOfAnotherEpochIsRefused(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{Partitions: 1})
	send := func(m model.Message) error {
		done := make(chan error, 1)
		b.Send(m, func(_ model.SendResult, err error) { done <- err })
		return <-done
	}
	m := model.Message{Space: "cart", Stream: "add", ID: "e1", Bound: true, Epoch: b.Epoch() + 1}
	if err := send(m); !errors.Is(err, model.ErrRewound) {
		t.Errorf("bound to another epoch: %v", err)
	}
	m.ID, m.Epoch = "e2", b.Epoch()
	if err := send(m); err != nil {
		t.Errorf("bound to the present one: %v", err)
	}
	if err := send(model.Message{Space: "cart", Stream: "add", ID: "e3", Epoch: b.Epoch() + 1}); err != nil {
		t.Errorf("bound to none: %v", err)
	}
	if events, err := b.ReadLane(t.Context(), "cart", 0, 10); err != nil || len(events) != 2 {
		t.Errorf("the lane holds %+v, %v", events, err)
	}
}

// A write or removal in a session carries the session's epoch in its context, and is refused in another one,
// whenever the store went back.
func TestBus_NothingIsStoredOrRemovedInAnotherEpoch(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{Partitions: 1})
	within, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // turns a hang into a failure
	defer cancel()
	ctx := port.WithEpoch(within, b.Epoch()+1)
	doc := []model.StateDoc{{Doc: "n", Data: []byte("1"), Seq: 2}}
	for name, request := range map[string]func() error{
		"SaveState":    func() error { return b.SaveState(ctx, "cart", doc, nil) },
		"PurgeState":   func() error { return b.PurgeState(ctx, "cart", doc) },
		"SavePosition": func() error { return b.SavePosition(ctx, 0, "lane", 7) },
		"MovePosition": func() error { return b.MovePosition(ctx, 0, "lane", 7) },
		"SaveAhead":    func() error { return b.SaveAhead(ctx, 0, model.Ahead{UpTo: 7}) },
		"FillLane":     func() error { return b.FillLane(ctx, 0, 3, nil) },
		"PurgeLog":     func() error { return b.PurgeLog(ctx, "cart", 3) },
		"PurgeLane": func() error {
			_, err := b.PurgeLane(ctx, 0, 3, 0)
			return err
		},
		"StoreDead": func() error {
			return b.StoreDead(ctx, &model.DeadLetter{Space: "cart", Stream: "add", Event: "e1", Lane: 1, Outcome: model.Failed, Error: "no"})
		},
		"FollowSpace":    func() error { return b.FollowSpace(ctx, "cart", 0, func(model.LogEntry) {}) },
		"FollowLog":      func() error { return b.FollowLog(ctx, 0, 0, func(model.LogEntry) {}) },
		"FollowReleases": func() error { return b.FollowReleases(ctx, 0, 0, func(model.LogEntry) {}) },
		"FollowLane":     func() error { return b.FollowLane(ctx, 0, 0, func(model.Message) {}) },
	} {
		if err := request(); !errors.Is(err, model.ErrRewound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if end, err := b.LaneEnd(within, 0); err != nil || end != 0 {
		t.Errorf("the lane ends at %d, %v", end, err)
	}
	if st, err := b.LoadState(within, "cart"); err != nil || len(st.Docs) != 0 {
		t.Errorf("saved are %+v, %v", st.Docs, err)
	}
}
