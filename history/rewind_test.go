package history_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// rewinding is a bus whose store goes back right after the first request for a head.
type rewinding struct {
	*membus.Bus
	epoch atomic.Uint64
}

func (b *rewinding) Epoch() uint64 { return b.epoch.Load() }

func (b *rewinding) Head(ctx context.Context, space string) (uint64, error) {
	head, err := b.Bus.Head(ctx, space)
	if b.epoch.Add(1) == 1 {
		head += 10 // which are lost
	}
	return head, err
}

// A read does not wait for what a store has lost since the read began.
func TestRead_GoesBackWithTheStore(t *testing.T) {
	b := &rewinding{Bus: membus.NewServer(membus.Config{Partitions: 1}).Connect("c")}
	t.Cleanup(b.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := history.Read(ctx, b, "s", "n")
	if err != nil || !d.Value.IsAbsent() || d.Read != 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

// A search for a receipt does not wait for a part of the log that is lost since.
func TestFindReceipt_GoesBackWithTheStore(t *testing.T) {
	b := &rewinding{Bus: membus.NewServer(membus.Config{Partitions: 1}).Connect("c")}
	t.Cleanup(b.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.Send(model.Message{Space: "s", Stream: "add", ID: "e1"}, func(model.SendResult, error) {})
	if _, there, err := b.FindEvent(ctx, "s", "add", "e1"); !there || err != nil {
		t.Fatal("the event is not there: ", err)
	}
	if h, err := history.FindReceiptUpTo(ctx, b, "s", "add", "e1", 20); h != nil || err != nil {
		t.Errorf("%+v, %v", h, err)
	}
}
