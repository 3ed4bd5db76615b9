package bus_test

import (
	"errors"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
)

// An event that follows from what was read in one epoch of the store is not sent in another; one that
// follows from nothing is.
func TestSend_WhatIsBoundToAnotherEpochIsRefused(t *testing.T) {
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
