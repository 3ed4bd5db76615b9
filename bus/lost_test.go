package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
)

// A deployment without its bucket of workers is not a new one: it keeps its partitions.
func TestProvision_ADeploymentWithoutItsWorkersBucketKeepsItsPartitions(t *testing.T) {
	t.Parallel()
	s := natstest.StartServer(t, embedded.Config{})
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

// A program that starts, for whatever reason, creates no empty stream in place of a lost one.
func TestComplete_CreatesNothingInPlaceOfALostStream(t *testing.T) {
	t.Parallel()
	s, log := natstest.StartServer(t, embedded.Config{}), newNotes()
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
	for what, complete := range map[string]func(context.Context) error{"complete": b.Complete, "await": b.AwaitProvision} {
		if err := complete(t.Context()); err != nil { // the other partition can be served
			t.Errorf("%s: %v", what, err)
		}
		if isThere(t, operator, "SETTLE_LOG_1") {
			t.Errorf("%s: an empty one is in its place", what)
		}
	}
	if text := log.String(); strings.Count(text, "nothing is created in their place") != 2 || !strings.Contains(text, "SETTLE_LOG_1") {
		t.Errorf("the logger wrote\n%s", text)
	}
	if err := operator.JetStream().DeleteStream(t.Context(), "SETTLE_DEAD"); err != nil { // it belongs to no partition
		t.Fatal(err)
	}
	if err := b.Complete(t.Context()); err != nil || !isThere(t, operator, "SETTLE_DEAD") || isThere(t, operator, "SETTLE_LOG_1") {
		t.Errorf("without a stream that belongs to no partition: %v", err)
	}
}

// isThere reports whether a stream exists.
func isThere(t *testing.T, b *bus.Bus, name string) bool {
	t.Helper()
	_, err := b.JetStream().Stream(t.Context(), name)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// Without the bucket of the workers, no worker knows of another, so they wait for it.
func TestComplete_WaitsForTheBucketOfTheWorkers(t *testing.T) {
	t.Parallel()
	s, log := natstest.StartServer(t, embedded.Config{}), newNotes()
	operator := connect(t, bus.Config{Server: s, Partitions: 2, Horizon: model.DefaultHorizon})
	if err := operator.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSend(t, operator, "s", "e1")
	gone := []string{"KV_SETTLE_WORKERS", "SETTLE_LOG_1"}
	for _, stream := range gone {
		if err := operator.JetStream().DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	b := connect(t, bus.Config{Server: s, Logger: log.logger()})
	done := make(chan error, 1)
	go func() { done <- b.Complete(t.Context()) }() // ends when the bucket is there
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !strings.Contains(log.String(), "waiting for the bucket of the workers") {
		<-look.C
	}
	for _, stream := range gone {
		if isThere(t, operator, stream) {
			t.Errorf("an empty stream is in the place of %s", stream)
		}
	}
	if err := operator.Provision(t.Context()); err != nil { // the operator decides so, knowing it
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Each stream is checked independently: one without an answer, as without a leader, does not delay the others.
func TestDefects_NameEachStreamAndDoNotWaitForOneThatIsSilent(t *testing.T) {
	var silent atomic.Bool
	b := through(t, func(request string, _ *nats.Msg) bool { return !silent.Load() || request != "STREAM.INFO.SETTLE_LOG_0" })
	if _, err := b.Defects(t.Context()); !errors.Is(err, provision.ErrNoDeployment) {
		t.Errorf("without a deployment: %v", err)
	}
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := b.Defects(t.Context()); len(found) > 0 || err != nil {
		t.Errorf("of a deployment that is whole: %v, %v", found, err)
	}
	b.HurryUp()
	silent.Store(true)
	if err := b.JetStream().DeleteStream(t.Context(), "SETTLE_DEAD"); err != nil {
		t.Fatal(err)
	}
	lane := stream(t, b, "SETTLE_LANE_0").CachedInfo().Config
	lane.MaxAge = time.Hour
	update(t, b, lane)
	found, err := b.Defects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range found {
		got = append(got, fmt.Sprint(d.Stream, " of ", d.Partition, ", missing: ", d.Missing(), ", silent: ", d.Silent()))
	}
	want := "SETTLE_DEAD of -1, missing: true, silent: false; SETTLE_LOG_0 of 0, missing: false, silent: true; SETTLE_LANE_0 of 0, missing: false, silent: false"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("the defects are %s, want %s", text, want)
	}
	for i, says := range []string{"no such stream", "has not answered within", "maximum age is 1h0m0s"} {
		if len(found) == 3 && !strings.Contains(found[i].Err.Error(), says) {
			t.Errorf("for %s the result is %v", found[i].Stream, found[i].Err)
		}
	}
}
