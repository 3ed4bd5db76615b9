package test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/worker"
)

// hits returns a program that counts events: in total, by the last digit of their number, and by a
// computation. It also counts attempts.
func hits(attempts *atomic.Int64) *settle.Program {
	return settle.NewProgram("hits").
		Handle("hit", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			attempts.Add(1)
			digit := ev.ID[len(ev.ID)-1:]
			n, _ := tx.Get("digits", digit).AsInt()
			tx.Set("digits", n+1, digit)
			tx.Set("last", ev.ID)
			return settle.ValueOf(increment(tx, "n"))
		}).
		Compute("sum", func(v *settle.View) (settle.Value, error) {
			sum := int64(0)
			for _, v := range v.Get("digits").All() { // any order: a sum
				n, _ := v.AsInt()
				sum += n
			}
			return settle.ValueOf(sum)
		})
}

// racer is one of the runtimes. The first is a worker, and owns the space.
type racer struct {
	id       string
	attempts atomic.Int64
	attached *worker.Attachment
	counts   func() worker.Counts
}

// Sixteen runtimes handle all events of one space, each of them every event that it does not know to be handled
// yet. However much work is wasted, every event takes effect once, in the order of the lane.
func TestI11_SixteenRuntimesRaceForEachOfTenThousandEvents(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) { raceFor(t, settle.Config{}, raced.Fewer(10_000, 40)) })
	t.Run("cluster", func(t *testing.T) { raceFor(t, onCluster(t), raced.Fewer(1_000, 20)) })
}

func raceFor(t *testing.T, base settle.Config, events int) {
	base.Programs, base.Workers = settle.Always(hits(new(atomic.Int64))), -1
	d := deploy(t, base)
	racers := []*racer{ownerOf(t, d)}
	for i := range 15 {
		racers = append(racers, beside(t, d, i))
	}
	began, ctx := time.Now(), testContext(t)
	sendHits(t, d, 0, events)
	eventually(t, d.Client(), "target", "n", int64(events))
	took := time.Since(began)
	for !contested(racers, events) && ctx.Err() == nil { // one of them was faster than all others
		sendHits(t, d, events, events+50)
		events += 50
		eventually(t, d.Client(), "target", "n", int64(events))
	}
	wantInOrder(t, readLog(t, d.Bus(), "target"), events)
	eventually(t, d.Client(), "target", "sum", int64(events))
	wantHits(t, "the log", events, func(doc string) (settle.Value, error) {
		v, _, err := d.Client().Space("target").Get(testContext(t), doc)
		return v, err
	})
	for _, r := range racers[1:] {
		r.wantAll(t, events)
	}
	report(t, racers, events, took)
}

// sendHits sends the events from one number to the one before another.
func sendHits(t *testing.T, d *deployment, from, to int) {
	t.Helper()
	ctx := testContext(t)
	s := d.Client().Sender()
	for i := from; i < to; i++ {
		if err := s.Send(ctx, settle.Outgoing{Space: "target", Stream: "hit", ID: settle.ID("h" + strconv.Itoa(i))}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func wantInOrder(t *testing.T, list []handled, events int) {
	t.Helper()
	once(t, list)
	if len(list) != events {
		t.Errorf("%d receipts, want %d", len(list), events)
	}
	for i, h := range list {
		if want := "h" + strconv.Itoa(i); h.key.ID != want || h.rc.Result.String() != strconv.Itoa(i+1) {
			t.Fatalf("handled as number %d: %s, result %s; want %s", i+1, h.key.ID, h.rc.Result, want)
		}
	}
}

func ownerOf(t *testing.T, d *deployment) *racer {
	t.Helper()
	r, b := &racer{id: "owner"}, connect(t, d)
	w, err := settle.StartWorker(testContext(t), b, settle.WorkerConfig{
		ID: r.id, Programs: settle.Always(hits(&r.attempts)), Options: worker.Options{Heartbeat: d.cfg.Heartbeat, MemberTTL: d.cfg.MemberTTL, Checkpoint: d.cfg.Checkpoint},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.counts = w.Counts
	t.Cleanup(func() { stop(t, w.Stop); b.Close() })
	return r
}

func beside(t *testing.T, d *deployment, i int) *racer {
	t.Helper()
	r, b := &racer{id: fmt.Sprint("a", i)}, connect(t, d)
	r.attached = attach(t, b, "target", settle.AttachConfig{ID: r.id, Events: true, Program: hits(&r.attempts)})
	r.counts = r.attached.Counts
	t.Cleanup(func() { stop(t, r.attached.Close); b.Close() })
	return r
}

// wantAll waits until the runtime has seen all commits, and checks its documents.
func (r *racer) wantAll(t *testing.T, events int) {
	t.Helper()
	get := func(doc string) (settle.Value, error) { return r.attached.Get(testContext(t), doc) }
	until(t, func() bool {
		v, err := get("n")
		return err != nil || v.String() == strconv.Itoa(events)
	})
	wantHits(t, r.id, events, get)
}

// wantHits checks the documents, as read by get.
func wantHits(t *testing.T, who string, events int, get func(doc string) (settle.Value, error)) {
	t.Helper()
	digits := map[string]int{}
	for digit := range 10 {
		digits[strconv.Itoa(digit)] = events / 10
	}
	for doc, want := range map[string]any{"n": events, "last": fmt.Sprint("h", events-1), "digits": digits} {
		v, err := settle.ValueOf(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := get(doc)
		if err != nil || got.String() != v.String() {
			t.Errorf("%s: %s is %s, want %s (%v)", who, doc, got, v, err)
		}
	}
}

// until polls a condition, up to the test's patience.
func until(t *testing.T, so func() bool) {
	t.Helper()
	ctx := testContext(t)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("it never comes to be")
		}
	}
}

// cost is the cost of the race so far.
type cost struct{ attempts, refused, receipts, commits, winners uint64 }

func costOf(racers []*racer) (all cost) {
	for _, r := range racers {
		c := r.counts()
		all.attempts += uint64(r.attempts.Load())
		all.refused += c.Refused
		all.receipts += c.Receipts
		all.commits += c.Commits
		if c.Receipts > 0 {
			all.winners++
		}
	}
	return all
}

// contested reports whether there was a race: some work was wasted, some appends were refused, and no
// runtime won every time.
func contested(racers []*racer, events int) bool {
	c := costOf(racers)
	return c.attempts > uint64(events) && c.refused > 0 && c.winners > 1
}

// report logs the cost of the race, and fails the test if there was none.
func report(t *testing.T, racers []*racer, events int, took time.Duration) {
	t.Helper()
	c := costOf(racers)
	t.Logf("%d events took effect once each, the first in %v: %d attempts, %d of them wasted; %d commits, %d appends refused; %d of %d runtimes have won some",
		c.receipts, took, c.attempts, c.attempts-uint64(events), c.commits, c.refused, c.winners, len(racers))
	if c.receipts != uint64(events) {
		t.Errorf("the runtimes count %d effects, want %d", c.receipts, events)
	}
	if !contested(racers, events) {
		t.Error("that was no race: nothing was wasted, nothing refused, or one has won it all")
	}
}
