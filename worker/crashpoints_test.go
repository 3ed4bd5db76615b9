package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// These tests kill a worker at each of its requests in turn, before the server receives it and after the
// server has executed it, while events, a watcher and an attached runtime continue and the log is purged to
// what a restart needs. A successor is killed in the same way while it loads, and a third worker must end
// with the right state.

// crashAt is the request of a process at which the process is killed.
type crashAt struct {
	n     int64 // of its counted requests, from 1
	after bool  // the server has executed it
}

// dying counts the requests of a process, and kills it at one of them. Requests that only the clock triggers
// do not count: they are not part of loading, saving or purging.
type dying struct {
	at     crashAt
	p      atomic.Pointer[process]
	n      atomic.Int64
	mu     sync.Mutex
	labels []string
	killed chan struct{}
}

func newDying(at crashAt) *dying { return &dying{at: at, killed: make(chan struct{})} }

func (d *dying) hook(op membus.Op) membus.Fate {
	if slices.Contains([]string{"announce", "ping", "observe", "call-roll"}, op.Label) {
		return membus.Deliver
	}
	d.mu.Lock()
	d.labels = append(d.labels, op.Label)
	d.mu.Unlock()
	if d.n.Add(1) != d.at.n {
		return membus.Deliver
	}
	close(d.killed)
	if p := d.p.Load(); p != nil {
		p.Crash()
	}
	if d.at.after {
		return membus.DropAck
	}
	return membus.DropRequest
}

// start starts a worker that is to be killed, possibly while it starts.
func (d *dying) start(w *world, cfg worker.Config) {
	cfg.Programs = worldtest.Always(book(w.T))
	d.startOn(w, cfg, hermits)
}

// startOn is start with given programs, and a wrapper around the worker's bus.
func (d *dying) startOn(w *world, cfg worker.Config, wrap func(*membus.Bus) port.Bus) {
	b := w.Connect(cfg.ID)
	b.Inject(d.hook)
	p := &process{w.NewWorker(b, wrap(b), cfg), w}
	d.p.Store(p)
	if err := p.Start(w.Context()); err != nil {
		select {
		case <-d.killed:
		default:
			w.Fatal(err)
		}
	}
	select {
	case <-d.killed:
		p.Crash() // killed before p was assigned
	default:
	}
}

// crashRun is one run of the world: two workers that are killed, and one that is not.
func crashRun(t *testing.T, first, second crashAt) (labels [2][]string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		d1, d2 := newDying(first), newDying(second)
		cfg := frugal("w1")
		cfg.Checkpoint = 160 * time.Millisecond
		cfg.Idle = 700 * time.Millisecond
		d1.start(w, cfg)
		v := w.watch("s", "double")
		var attached attachedRuns
		ctx, cancel := context.WithCancel(t.Context())
		attached.running.Go(func() { attached.run(ctx, w) })
		sent := 0
		work := func(n int) {
			for range n {
				sent++
				w.Send("s", "add", fmt.Sprint("e", sent))
				w.Send("s", "chain", fmt.Sprint("c", sent), "1")
				w.Pass(90 * time.Millisecond)
			}
		}
		work(4)
		w.Pass(1200 * time.Millisecond) // the space may be evicted
		work(2)
		w.Pass(300 * time.Millisecond)
		d1.die()
		cfg.ID = "w2"
		d2.start(w, cfg)
		work(2)
		w.Pass(300 * time.Millisecond)
		d2.die()
		cfg.ID, cfg.Idle = "w3", -1
		last := w.process(cfg, hermits)
		work(1)
		cancel()
		attached.running.Wait()
		w.EventuallyEnded("s", 3*sent)
		w.Pass(3 * time.Second)
		w.Send("s", "add", "last")
		w.EventuallyEnded("s", 3*sent+1)
		w.Eventually("the watcher has the final value", func() bool { return v.last() == w.Doc("s", "double") })
		v.end()
		w.Pass(time.Second)
		w.wantAddedUp("s", 3*sent+1, &attached, v)
		last.Shutdown()
		labels = [2][]string{d1.labels, d2.labels}
	})
	return labels
}

// die kills the process if it has not reached its crash point.
func (d *dying) die() {
	if p := d.p.Load(); p != nil {
		p.Crash()
	}
}

// attachedRuns are transactions of an application that attaches again whenever a purge has left it behind.
type attachedRuns struct {
	running sync.WaitGroup
	done    []string // the transactions that were acknowledged
	doubt   []string // those whose outcome is unknown
}

func (a *attachedRuns) run(ctx context.Context, w *world) {
	b := w.Server.Connect("app")
	defer b.Close()
	for n := 0; ctx.Err() == nil; {
		one, err := worker.Attach(ctx, b, worker.AttachConfig{ID: "app", Space: "s", Program: book(w.T)})
		if err != nil {
			w.Pass(50 * time.Millisecond)
			continue
		}
		for err == nil && ctx.Err() == nil {
			n++
			doc := fmt.Sprint("app", n)
			err = one.Transact(ctx, "app", func(tx *space.Tx) error {
				times, _ := tx.Get(doc).AsInt()
				tx.Set(doc, times+1)
				return increment(tx)
			})
			if err == nil {
				a.done = append(a.done, doc)
			} else {
				a.doubt = append(a.doubt, doc)
			}
			w.Pass(130 * time.Millisecond)
		}
		if err != nil && !errors.Is(err, model.ErrPurged) && ctx.Err() == nil {
			w.Errorf("transaction: %v", err)
		}
		within, cancel := context.WithTimeout(context.Background(), time.Minute)
		_ = one.Close(within)
		cancel()
	}
}

// wantAddedUp compares everything that was ever in the log with what was loaded, watched and acknowledged.
func (w *world) wantAddedUp(name string, handled int, a *attachedRuns, v *watched) {
	w.Helper()
	whole := replica.New(name)
	times, ns := map[string]int{}, map[uint64]int64{}
	for _, e := range w.Server.History(name) {
		c, err := model.DecodeCommit(e.Data)
		if err == nil {
			_, err = whole.Apply(e.Seq, c)
		}
		if err != nil {
			w.Fatal(err)
		}
		for i := range c.Txs {
			if rc := c.Txs[i].Receipt; rc != nil {
				times[rc.Event]++
			}
		}
		ns[e.Seq], _ = whole.Doc("double").Value.AsInt()
	}
	for id, n := range times { // any order: each on its own
		if n != 1 {
			w.Errorf("%s was handled %d times", id, n)
		}
	}
	if len(times) != handled {
		w.Errorf("%d events were handled, want %d", len(times), handled)
	}
	applied := 0
	for i, doc := range slices.Concat(a.done, a.doubt) {
		n, _ := whole.Doc(doc).Value.AsInt()
		if n > 1 || n == 0 && i < len(a.done) {
			w.Errorf("transaction %s was committed %d times", doc, n)
		}
		applied += int(n)
	}
	if n, _ := whole.Doc("n").Value.AsInt(); n != int64(handled+applied) {
		w.Errorf("n is %d after %d events and %d transactions", n, handled, applied)
	}
	loaded, err := replica.Load(name, w.Server.LoadState(name))
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range w.Server.ReadLog(name, loaded.Seq, 1<<20) {
		if err := e.Follows(loaded.Seq); err != nil {
			w.Fatal(err)
		}
		c, _ := model.DecodeCommit(e.Data)
		if _, err := loaded.Apply(e.Seq, c); err != nil {
			w.Fatal(err)
		}
	}
	if got, want := drawReplica(loaded), drawReplica(whole); got != want {
		w.Errorf("loaded:\n%s\nlogged:\n%s", got, want)
	}
	if n := w.left(name); n != 1 {
		w.Errorf("the log has %d commits at the end, want one", n)
	}
	values, revisions := v.seen()
	for i := range revisions {
		if i > 0 && revisions[i] < revisions[i-1] {
			w.Errorf("the watcher saw revisions %v", revisions)
			return
		}
		if revisions[i] > 0 && values[i] != fmt.Sprint(ns[revisions[i]]) {
			w.Errorf("the watcher saw %s at revision %d, want %d", values[i], revisions[i], ns[revisions[i]])
		}
	}
}

// drawReplica formats a replica's whole state.
func drawReplica(r *replica.Replica) string {
	var b strings.Builder
	for _, id := range r.DocIDs() {
		fmt.Fprintf(&b, "%s=%s@%d ", id, r.Doc(id).Value, r.Doc(id).Seq)
	}
	fmt.Fprintf(&b, "seq %d epoch %d owner %s cursor %v in %v out %v own %v", r.Seq, r.Epoch, r.Owner, r.Cursor, r.Inbound, r.Outbound, r.Own)
	return b.String()
}

func TestCrash_AtEveryRequestOfAWorkerNothingIsLostAndNothingAppliedTwice(t *testing.T) {
	whole := crashRun(t, crashAt{}, crashAt{})
	if n := len(whole[0]); n < 100 || !slices.Contains(whole[0], "purge-log") {
		t.Fatalf("%d requests: %v", n, whole[0])
	}
	for n := 0; n <= len(whole[0]); n += raced.Step(5) {
		for _, after := range []bool{false, true} {
			crashRun(t, crashAt{int64(n + 1), after}, crashAt{})
			if t.Failed() {
				t.Fatalf("killed at request %d (executed: %v)", n+1, after)
			}
		}
	}
}

// A worker is killed at a save or a purge, and its successor at each of its own first requests.
func TestCrash_AtEveryRequestOfTheSuccessorToo(t *testing.T) {
	whole := crashRun(t, crashAt{}, crashAt{})
	runs := 0
	for n, label := range whole[0] {
		if label != "save" && label != "purge-log" || n%3 != 0 {
			continue
		}
		for m := n % raced.Step(5); m < 14; m += raced.Step(5) {
			crashRun(t, crashAt{int64(n + 1), n%2 == 0}, crashAt{int64(m + 1), m%2 == 0})
			if runs++; t.Failed() {
				t.Fatalf("killed at request %d, and the successor at %d", n+1, m+1)
			}
		}
	}
	if runs < raced.Fewer(100, 5) {
		t.Errorf("%d runs are too few", runs)
	}
}
