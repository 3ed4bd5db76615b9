package test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// The whole path of an event: lane, handler, commit, receipt, release, the other space's handler, and a watcher
// of a derived document.
func TestWholePath_EventToReceiptToReleaseToWatcher(t *testing.T) {
	t.Parallel()
	onBothServers(t, wholePath)
}

func wholePath(t *testing.T, base settle.Config) {
	base.Programs = settle.Always(relay())
	d := deploy(t, base)
	ctx := testContext(t)
	rc, err := d.Client().Call(ctx, flight(1, "here", "there"))
	if err != nil {
		t.Fatal(err)
	}
	if rc.Outcome != model.Handled || rc.Result.String() != "1" {
		t.Errorf("receipt %+v, want handled with result 1", rc)
	}
	eventually(t, d.Client(), "there", "arrived", 1)
	eventually(t, d.Client(), "there", "total", 1)
}

func TestQ11_SendingTwice_TakesEffectOnce_AndReturnsTheSameReceipt(t *testing.T) {
	t.Parallel()
	onBothServers(t, sendingTwice)
}

func sendingTwice(t *testing.T, base settle.Config) {
	base.Programs = settle.Always(relay())
	d := deploy(t, base)
	ctx := testContext(t)
	for i := range 3 {
		rc, err := d.Client().Call(ctx, flight(1, "here", "there"))
		if err != nil {
			t.Fatal(err)
		}
		if rc.Result.String() != "1" {
			t.Errorf("call %d: result %v, want 1: the event was handled again", i, rc.Result)
		}
	}
	// A plain NATS client cannot enqueue an event twice either: the stream itself refuses it.
	subject := d.Bus().LaneSubject("here", "depart", "f1")
	if _, err := d.Bus().JetStream().Publish(ctx, subject, []byte(`{"to":"there"}`)); err == nil {
		t.Error("a plain publish with a used event id was accepted")
	}
	once(t, readLog(t, d.Bus(), "here"))
}

func TestDormant_WhatNobodyWatchesIsNotComputed(t *testing.T) {
	t.Parallel()
	d := deploy(t, settle.Config{Programs: settle.Always(relay())})
	ctx := testContext(t)
	for i := range 20 {
		if _, err := d.Client().Call(ctx, flight(i, "here", "there")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, d.Client(), "there", "total", 20)
	for k, n := range d.Runs() {
		if k.Space == "here" {
			t.Errorf("computation %s of the unwatched space ran %d times", k.Node, n)
		}
	}
}

// A worker dies with commits in flight; the next owner continues at the cursor.
func TestCrash_NextOwnerGoesOnAtTheCursor(t *testing.T) {
	t.Parallel()
	onBothServers(t, crash)
}

func crash(t *testing.T, base settle.Config) {
	base.Programs = settle.Always(relay())
	base.Workers = 2
	d := deploy(t, base)
	ctx := testContext(t)
	const n = 600
	s := d.Client().Sender()
	for i := range n {
		if i%200 == 100 { // with hundreds of events queued and commits under way
			d.KillWorker(d.Workers()[0])
			if _, err := d.AddWorker(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Send(ctx, flight(i, "here", "there"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, d.Client(), "here", "departed", n)
	eventually(t, d.Client(), "there", "arrived", n)
	here, there := readLog(t, d.Bus(), "here"), readLog(t, d.Bus(), "there")
	once(t, here)
	once(t, there)
	if len(here) != n || len(there) != n {
		t.Errorf("%d departures and %d arrivals, want %d of each", len(here), len(there), n)
	}
	for i, h := range here {
		if want := flight(i, "", "").ID.String(); h.key.ID != want {
			t.Fatalf("departure %d in the log is %s, want %s: the lane's order was lost", i, h.key.ID, want)
		}
	}
	for i, h := range there {
		if h.rc.Pos != uint64(i+1) {
			t.Fatalf("arrival %d has position %d: the origin's order was lost", i, h.rc.Pos)
		}
	}
}

// Coordinators that overlap, and one that has lost its position, release events again, without any effect.
func TestRelease_RepeatedByForgetfulCoordinators_TakesEffectOnce(t *testing.T) {
	t.Parallel()
	d := deploy(t, settle.Config{Programs: settle.Always(relay())})
	ctx := testContext(t)
	const n = 100
	for i := range n {
		if _, err := d.Client().Send(ctx, flight(i, "here", "there")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, d.Client(), "there", "arrived", n)
	again := coordinator.New(forgetful{d.Bus()}, coordinator.Config{})
	again.Start()
	defer again.Stop()
	for released, _ := again.Released(); released < n; released, _ = again.Released() {
		if ctx.Err() != nil {
			t.Fatalf("%d of %d released again", released, n)
		}
	}
	if _, repeated := again.Released(); repeated < n {
		t.Errorf("%d of %d releases were recognised as repetitions by the lane", repeated, n)
	}
	if _, err := d.Client().Call(ctx, flight(n, "here", "there")); err != nil {
		t.Fatal(err)
	}
	eventually(t, d.Client(), "there", "arrived", n+1)
	once(t, readLog(t, d.Bus(), "there"))
}

// forgetful is a bus on which no position was ever saved.
type forgetful struct{ *bus.Bus }

func (forgetful) LoadPosition(context.Context, int, string) (uint64, error) { return 0, nil }

// Two workers, each of which believes that it is alone, compete for every space. The only effect is refused
// appends.
func TestDisagreement_TwoOwnersOfOneSpace_HandleEachEventOnce(t *testing.T) {
	t.Parallel()
	onBothServers(t, disagreement)
}

func disagreement(t *testing.T, base settle.Config) {
	base.Programs = settle.Always(relay())
	d := deploy(t, base)
	ctx := testContext(t)
	rival := connect(t, d)
	w, err := settle.StartWorker(ctx, hermit{rival}, settle.WorkerConfig{
		ID: "rival", Programs: settle.Always(relay()), Options: worker.Options{Heartbeat: deployHeartbeat, Checkpoint: deployHeartbeat},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		rival.Close()
	}()
	s := d.Client().Sender()
	for n := 0; d.Counts().Refused+w.Counts().Refused == 0; { // until the two have met
		for range 300 {
			if err := s.Send(ctx, flight(n, "here", "there"), nil); err != nil {
				t.Fatal(err)
			}
			n++
		}
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		eventually(t, d.Client(), "here", "departed", int64(n))
		eventually(t, d.Client(), "there", "arrived", int64(n))
	}
	once(t, readLog(t, d.Bus(), "here"))
	once(t, readLog(t, d.Bus(), "there"))
}

// hermit is a bus without any other members.
type hermit struct{ *bus.Bus }

func (h hermit) FollowMembers(ctx context.Context, _ func(model.Member), ready func()) error {
	ready()
	<-ctx.Done()
	return ctx.Err()
}

func (hermit) Announce(context.Context, model.Member) error { return nil }

// The documents are an ordinary KV bucket: any NATS client can read and watch them.
func TestPlainClient_ReadsAndFollowsTheStateBucket(t *testing.T) {
	t.Parallel()
	d := deploy(t, settle.Config{Programs: settle.Always(relay())})
	ctx := testContext(t)
	js := d.Bus().JetStream()
	kv, err := js.KeyValue(ctx, d.Bus().StateBucket("here"))
	if err != nil {
		t.Fatal(err)
	}
	watch, err := kv.Watch(ctx, "here.departed")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Stop() }()
	if _, err := d.Client().Call(ctx, flight(1, "here", "there")); err != nil {
		t.Fatal(err)
	}
	if got := nextUpdate(ctx, t, watch); got != "1" {
		t.Errorf("the bucket says %s, want 1", got)
	}
	entry, err := kv.Get(ctx, "here.departed")
	if err != nil || string(entry.Value()) != "1" {
		t.Errorf("get: %v %v, want 1", entry, err)
	}
}

func nextUpdate(ctx context.Context, t *testing.T, w jetstream.KeyWatcher) string {
	t.Helper()
	for {
		select {
		case e := <-w.Updates():
			if e != nil {
				return string(e.Value())
			}
		case <-ctx.Done():
			t.Fatal("the bucket never showed the document")
		}
	}
}
