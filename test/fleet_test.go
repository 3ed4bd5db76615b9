package test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/worker"
)

// In a rolling restart, workers start, stop and crash while events arrive. In the end every event has had its
// effect, and the states are saved.
func TestRolling_NothingIsLostOrRepeatedAndAllIsSaved(t *testing.T) {
	t.Parallel()
	d := deploy(t, settle.Config{Programs: settle.Always(relay()), Workers: 2, Bus: bus.Config{Partitions: 4}})
	ctx := testContext(t)
	spaces := []string{"a", "b", "c", "d", "e", "f"}
	const perRound, rounds = 10, 6
	s := d.Client().Sender()
	n := 0
	for round := range rounds {
		for range perRound {
			for i, from := range spaces {
				if err := s.Send(ctx, flight(n, from, spaces[(i+1)%len(spaces)]), nil); err != nil {
					t.Fatal(err)
				}
			}
			n++
		}
		if _, err := d.AddWorker(ctx); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			d.KillWorker(d.Workers()[0])
		}
	}
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for _, space := range spaces {
		eventually(t, d.Client(), space, "departed", int64(n))
		eventually(t, d.Client(), space, "arrived", int64(n))
	}
	if err := d.StopWorkers(ctx); err != nil {
		t.Fatal(err)
	}
	for _, space := range spaces {
		list := readLog(t, d.Bus(), space)
		once(t, list)
		if len(list) != 2*n {
			t.Errorf("%s has %d receipts, want %d", space, len(list), 2*n)
		}
		wantSaved(t, d, space, map[string]string{"departed": fmt.Sprint(n), "arrived": fmt.Sprint(n)})
	}
}

// wantSaved checks that the STATE bucket is up to date with the log.
func wantSaved(t *testing.T, d *deployment, space string, docs map[string]string) {
	t.Helper()
	st, err := d.Bus().LoadState(testContext(t), space)
	if err != nil {
		t.Fatal(err)
	}
	head, err := d.Bus().Head(testContext(t), space)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mark.Seq != head {
		t.Errorf("%s is saved up to %d, its log ends at %d", space, st.Mark.Seq, head)
	}
	got := map[string]string{}
	for _, doc := range st.Docs {
		got[doc.Doc] = string(doc.Data)
	}
	for doc, want := range docs {
		if got[doc] != want {
			t.Errorf("the bucket has %s for %s/%s, want %s", got[doc], space, doc, want)
		}
	}
}

// Everything stops, including the server, with unhandled events. Work continues from the disk.
func TestRestart_EverythingGoesOnFromTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := settle.Config{
		Programs: settle.Always(relay()), Options: worker.Options{Heartbeat: deployHeartbeat, Checkpoint: deployHeartbeat},
		Server: embedded.Config{StoreDir: dir, Fsync: embedded.FsyncInterval}, Bus: bus.Config{Partitions: 2},
	}
	ctx := testContext(t)
	first, err := settle.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	const n = 20
	for i := range n {
		if _, err := first.Client().Call(ctx, flight(i, "here", "there")); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.StopWorkers(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range n { // no worker runs to handle these
		if _, err := first.Client().Send(ctx, flight(n+i, "here", "there")); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	second := deploy(t, cfg)
	eventually(t, second.Client(), "here", "departed", 2*n)
	eventually(t, second.Client(), "there", "arrived", 2*n)
	rc, err := second.Client().Call(ctx, flight(0, "here", "there"))
	if err != nil || rc.Result.String() != "1" {
		t.Errorf("the first call again: %+v, %v", rc, err)
	}
	once(t, readLog(t, second.Bus(), "here"))
	once(t, readLog(t, second.Bus(), "there"))
}

// A worker without a program for a space keeps its events; once it has one, it handles them, although
// they were delivered long before.
func TestNoProgram_EventsWaitForAWorkerThatHasOne(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	known := false
	d := deploy(t, settle.Config{Bus: bus.Config{Partitions: 1}, Programs: func(space string) *settle.Program {
		mu.Lock()
		defer mu.Unlock()
		if space == "other" || known {
			return relay()
		}
		return nil
	}})
	ctx := testContext(t)
	for i := range 700 { // more than a page of the lane
		if _, err := d.Client().Send(ctx, flight(i, "here", "there")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Client().Call(ctx, flight(0, "other", "other")); err != nil {
		t.Fatal(err) // and so the 700 before it have been delivered
	}
	if head, err := d.Bus().Head(ctx, "here"); err != nil || head != 0 {
		t.Fatalf("head %d, %v", head, err)
	}
	mu.Lock()
	known = true
	mu.Unlock()
	if _, err := d.Client().Call(ctx, flight(700, "here", "there")); err != nil {
		t.Fatal(err)
	}
	list := readLog(t, d.Bus(), "here")
	once(t, list)
	for i, h := range list {
		if want := flight(i, "", "").ID.String(); h.key.ID != want {
			t.Fatalf("departure %d in the log is %s, want %s", i, h.key.ID, want)
		}
	}
	if len(list) != 701 {
		t.Errorf("%d departures, want 701", len(list))
	}
}

// The worker of a watched, computed document dies repeatedly; the watcher sees every revision once, and
// none after a later one.
func TestWatch_GoesOnAcrossCrashesWithoutGoingBack(t *testing.T) {
	t.Parallel()
	d := deploy(t, settle.Config{Programs: settle.Always(relay())})
	ctx := testContext(t)
	var mu sync.Mutex
	var revisions []uint64
	last := make(chan int64, 1000)
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for u, err := range d.Client().Space("here").Watch(watch, "total") {
			if err != nil {
				t.Errorf("watch: %v", err)
				return
			}
			mu.Lock()
			revisions = append(revisions, u.Revision)
			mu.Unlock()
			n, _ := u.Value.AsInt()
			last <- n
		}
	})
	for i := range 8 {
		if _, err := d.Client().Call(ctx, flight(i, "here", "there")); err != nil {
			t.Fatal(err)
		}
		for n := int64(-1); n != int64(i+1); {
			select {
			case n = <-last:
			case <-ctx.Done():
				t.Fatalf("the watcher sees %d, want %d", n, i+1)
			}
		}
		d.KillWorker(d.Workers()[0])
		if _, err := d.AddWorker(ctx); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	watching.Wait()
	for i := 1; i < len(revisions); i++ {
		if revisions[i] <= revisions[i-1] {
			t.Errorf("revisions %v do not grow", revisions)
		}
	}
}

// A worker crashes and is restarted under the same name, as by a supervisor, with appends of the former
// process in any state.
func TestSameName_AWorkerThatIsStartedAgainIsNotItsFormerSelf(t *testing.T) {
	t.Parallel()
	d := deploy(t, settle.Config{Programs: settle.Always(relay())})
	ctx := testContext(t)
	if err := d.StopWorkers(ctx); err != nil {
		t.Fatal(err)
	}
	const n, lives = 300, 6
	s := d.Client().Sender()
	for life := range lives {
		b := connect(t, d)
		start := func() (*worker.Worker, error) {
			return settle.StartWorker(ctx, b, settle.WorkerConfig{
				ID: "same", Programs: settle.Always(relay()), Options: worker.Options{Heartbeat: deployHeartbeat, Checkpoint: deployHeartbeat},
			})
		}
		w, err := start()
		for range 10 { // from the last announcement of the former process
			if _, taken := errors.AsType[*worker.TakenError](err); !taken {
				break
			}
			w, err = start()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range n / lives {
			if err := s.Send(ctx, flight(life*n/lives+i, "here", "there"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if life < lives-1 {
			w.Kill()
			b.Kill()
			continue
		}
		defer func() { w.Kill(); b.Kill() }()
	}
	eventually(t, d.Client(), "here", "departed", n)
	eventually(t, d.Client(), "there", "arrived", n)
	here := readLog(t, d.Bus(), "here")
	once(t, here)
	once(t, readLog(t, d.Bus(), "there"))
	for i, h := range here {
		if want := flight(i, "", "").ID.String(); h.key.ID != want {
			t.Fatalf("departure %d in the log is %s, want %s", i, h.key.ID, want)
		}
	}
}
