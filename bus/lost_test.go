package bus_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
)

// A deployment whose bucket of workers is gone is no new one: it keeps its partitions.
func TestProvision_ADeploymentWhoseWorkersBucketIsGoneKeepsItsPartitions(t *testing.T) {
	s := startServer(t, embedded.Config{})
	first := connect(t, bus.Config{Server: s, Partitions: 3})
	if err := first.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.JetStream().DeleteStream(t.Context(), "KV_SETTLE_WORKERS"); err != nil {
		t.Fatal(err)
	}
	b := connect(t, bus.Config{Server: s})
	if b.Partitions() != 3 {
		t.Errorf("it is taken to have %d partitions", b.Partitions())
	}
	if err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "KV_SETTLE_WORKERS") {
		t.Errorf("check: %v", err)
	}
	if err := b.Provision(t.Context()); err == nil || !strings.Contains(err.Error(), "--horizon") {
		t.Errorf("provision without a horizon: %v", err)
	}
	other := connect(t, bus.Config{Server: s, Horizon: model.DefaultHorizon})
	if err := other.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Check(t.Context()); err != nil || other.Partitions() != 3 {
		t.Errorf("with %d partitions: %v", other.Partitions(), err)
	}
	if _, err := bus.Connect(t.Context(), bus.Config{Server: s, Partitions: 8}); err == nil {
		t.Error("another number of partitions is taken")
	}
}

// A program that is started, for whatever reason, makes no empty stream in place of one that was there.
func TestComplete_CreatesNothingInPlaceOfAStreamThatWasThere(t *testing.T) {
	s, log := startServer(t, embedded.Config{}), newNotes()
	operator := connect(t, bus.Config{Server: s, Partitions: 2})
	if err := operator.Complete(t.Context()); err != nil { // a deployment that is new is made
		t.Fatal(err)
	}
	b := connect(t, bus.Config{Server: s, Logger: log.logger()})
	remove := func() {
		t.Helper()
		if err := operator.JetStream().DeleteStream(t.Context(), "SETTLE_LOG_1"); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	if err := b.Complete(t.Context()); err != nil { // one that has no data yet is made whole
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	operator.Send(model.Message{Space: "s", Stream: "add", ID: "e1"}, func(_ model.SendResult, err error) { sent <- err })
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	remove()
	done := make(chan error, 1)
	go func() { done <- b.Complete(t.Context()) }() // ends when the stream is there
	<-log.came
	if _, err := operator.JetStream().Stream(t.Context(), "SETTLE_LOG_1"); err == nil {
		t.Error("an empty one is in its place")
	}
	if err := operator.Provision(t.Context()); err != nil { // who says so knows it
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "nothing is created in their place") || !strings.Contains(text, "SETTLE_LOG_1") {
		t.Errorf("the log says\n%s", text)
	}
}
