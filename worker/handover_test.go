package worker_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// lan is a network on which every message takes between half a millisecond and two.
type lan struct{}

func (lan) Request(op membus.Op) membus.Trip {
	return membus.Trip{There: latency(op, 1), Back: latency(op, 2), Patience: time.Second}
}
func (lan) Delivery(d membus.Delivery) time.Duration { return latency(d.Op, d.Seq) }
func (lan) Waking(membus.Op) time.Duration           { return 0 }
func (lan) Step(membus.Step)                         {}

func latency(op membus.Op, salt uint64) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, op, salt)
	return 500*time.Microsecond + time.Duration(h.Sum64()%1_500_000)
}

// remote starts a worker that is connected through a network.
func (w *world) remote(cfg worker.Config) *process {
	w.Helper()
	return w.start(cfg, w.Server.Dial(cfg.ID, lan{}), nil)
}

// load sends events to spaces, one per space every few milliseconds without waiting for the last, and records
// when each is handled.
type load struct {
	w      *world
	spaces []string
	mu     sync.Mutex
	at     map[string][]time.Time // of the commits, per space
	sent   int
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func (w *world) load(spaces []string, every time.Duration) *load { return w.loadOf(spaces, every) }

// loadOf is load for events with a payload.
func (w *world) loadOf(spaces []string, every time.Duration, payload ...string) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{w: w, spaces: spaces, at: map[string][]time.Time{}, stop: cancel}
	for _, s := range spaces {
		l.done.Go(func() {
			_ = w.Client.FollowSpace(ctx, s, 0, func(e model.LogEntry) {
				c, err := model.DecodeCommit(e.Data)
				if err != nil || c.Takeover {
					return
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				l.at[s] = append(l.at[s], time.Now())
			})
		})
	}
	l.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			l.sent++
			for _, s := range spaces {
				w.Send(s, "add", fmt.Sprintf("e%d", l.sent), payload...)
			}
		}
	})
	return l
}

// end ends the load, waits until all events are handled, and returns the longest time in which a space had
// work to do and committed nothing.
func (l *load) end(after time.Time) (longest time.Duration) {
	l.w.Helper()
	l.w.Pass(3 * time.Second) // events in flight are handled
	l.stop()
	l.done.Wait()
	l.w.Pass(time.Second)
	for _, s := range l.spaces {
		l.w.wantHandled(s, worldtest.Numbered(l.sent)...)
		last := after
		for _, at := range l.at[s] {
			if at.After(after) {
				longest = max(longest, at.Sub(last))
				last = at
			}
		}
	}
	return longest
}

// Three workers are restarted one after the other under load. No append is refused, and no space stands still
// for longer than the stated bound.
func TestHandover_ARollingRestartRefusesNoAppendAndDelaysNoSpaceForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions = 8
		w := newWorld(t, partitions)
		fleet := map[string]*process{}
		for _, id := range []string{"w1", "w2", "w3"} {
			fleet[id] = w.remote(worker.Config{ID: id})
		}
		time.Sleep(2 * time.Second)
		var spaces []string
		for p := range partitions {
			spaces = append(spaces, worldtest.SpacesIn(p, partitions, 2)...)
		}
		l := w.load(spaces, time.Duration(8*raced.Step(3))*time.Millisecond)
		time.Sleep(2 * time.Second)
		began := time.Now()
		var refused, receipts uint64
		for _, id := range []string{"w1", "w2", "w3"} {
			fleet[id].Shutdown()
			c := fleet[id].Counts()
			refused, receipts = refused+c.Refused, receipts+c.Receipts
			time.Sleep(300 * time.Millisecond)
			fleet[id] = w.remote(worker.Config{ID: id})
			time.Sleep(2 * time.Second)
		}
		longest := l.end(began)
		for _, p := range fleet { // any order: sums
			c := p.Counts()
			refused, receipts = refused+c.Refused, receipts+c.Receipts
		}
		if refused != 0 {
			t.Errorf("%d appends were refused", refused)
		}
		if want := uint64(l.sent * len(spaces)); receipts != want {
			t.Errorf("%d receipts, want %d", receipts, want)
		}
		takeovers := 0
		for _, s := range spaces {
			takeovers += len(w.Takeovers(s))
		}
		if takeovers < 2*len(spaces) {
			t.Errorf("%d takeovers of %d spaces: no space has moved", takeovers, len(spaces))
		}
		const bound = 100 * time.Millisecond
		if longest > bound {
			t.Errorf("a space stood still for %v, more than %v", longest, bound)
		}
		t.Logf("%d events, %d takeovers, the longest gap is %v", receipts, takeovers, longest)
	})
}

// Workers join and leave concurrently, in any order: each partition is handed over from one owner to the
// next.
func TestHandover_ConcurrentJoinsAndLeavesRefuseNoAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions = 12
		w := newWorld(t, partitions)
		fleet := []*process{w.remote(worker.Config{ID: "w0"})}
		var spaces []string
		for p := range partitions {
			spaces = append(spaces, worldtest.SpacesIn(p, partitions, 1)...)
		}
		l := w.load(spaces, time.Duration(5*raced.Step(3))*time.Millisecond)
		time.Sleep(time.Second)
		began := time.Now()
		var starting sync.WaitGroup
		var mu sync.Mutex
		var all []*process
		for i := range 5 {
			starting.Go(func() {
				time.Sleep(time.Duration(i) * 3 * time.Millisecond)
				p := w.remote(worker.Config{ID: fmt.Sprintf("w%d", i+1)})
				mu.Lock()
				fleet = append(fleet, p)
				mu.Unlock()
			})
		}
		starting.Wait()
		time.Sleep(time.Second)
		all = slices.Clone(fleet)
		for _, p := range fleet[:3] {
			starting.Go(p.Shutdown)
		}
		time.Sleep(2 * time.Millisecond)
		starting.Go(func() { p := w.remote(worker.Config{ID: "w9"}); mu.Lock(); all = append(all, p); mu.Unlock() })
		starting.Wait()
		longest := l.end(began)
		refused := uint64(0)
		for _, p := range all {
			refused += p.Counts().Refused
		}
		if refused != 0 {
			t.Errorf("%d appends were refused", refused)
		}
		t.Logf("%d events per space, the longest gap is %v", l.sent, longest)
	})
}

// A partition whose spaces cannot be drained is cut off after the limit, and the next owner waits no longer
// than that.
func TestHandover_DrainingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		stuck := make(chan struct{})
		p := book(t)
		if err := p.Handle("stick", func(*space.Tx, *model.Event) (model.Value, error) {
			<-stuck
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		defer close(stuck)
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.Send("bad", "stick", "e1")
		time.Sleep(time.Second)
		id := memberFor(0, 1, "w1")
		began := time.Now()
		next := w.process(worker.Config{ID: id}, nil)
		w.Eventually("the next owner serves it", func() bool { return len(next.Partitions()) == 1 })
		if took := time.Since(began); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("the handover took %v, want about the limit of five seconds", took)
		}
		w.Send("good", "add", "e1")
		w.EventuallyEnded("good", 1)
		_ = w1
	})
}

// The process is killed at any moment between two heartbeats; its spaces are taken over within two
// heartbeats.
func TestTakeover_WithinTwoHeartbeatsOfACrash(t *testing.T) {
	const heartbeat = 500 * time.Millisecond
	slowest := time.Duration(0)
	for i := range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 4)
			w1 := w.remote(worker.Config{ID: "w1"})
			w2, w3 := w.remote(worker.Config{ID: "w2"}), w.remote(worker.Config{ID: "w3"})
			time.Sleep(2*time.Second + time.Duration(i)*heartbeat/20)
			var spaces []string
			for _, p := range w1.Partitions() {
				spaces = append(spaces, worldtest.SpacesIn(p, 4, 5)...)
			}
			for _, s := range spaces {
				w.Send(s, "add", "e1")
			}
			time.Sleep(heartbeat / 2)
			began := time.Now()
			w1.Crash()
			for _, s := range spaces {
				w.Send(s, "add", "e2")
			}
			w.Eventually("all spaces are taken over", func() bool {
				return !slices.ContainsFunc(spaces, func(s string) bool { return len(w.Takeovers(s)) < 2 })
			})
			slowest = max(slowest, time.Since(began))
			time.Sleep(time.Second)
			for _, s := range spaces {
				w.wantHandled(s, "e1", "e2")
			}
			if n := w2.Counts().Refused + w3.Counts().Refused; n > 0 {
				t.Errorf("%d appends were refused", n)
			}
		})
	}
	if slowest > 2*heartbeat {
		t.Errorf("the takeover took %v, more than two heartbeats of %v", slowest, heartbeat)
	}
	t.Logf("the slowest takeover took %v", slowest)
}

// A worker does not start under the id of a live worker, even after a silence.
func TestTwin_AWorkerWhoseIDIsTakenDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1 := w.process(worker.Config{ID: "w1", Host: "here"}, nil)
		time.Sleep(time.Second)
		err := w.tryStart("w1")
		if taken := (*worker.TakenError)(nil); !errors.As(err, &taken) || taken.Other.Host != "here" {
			t.Fatalf("start: %v, want a TakenError that names host here", err)
		}
		time.Sleep(5 * time.Second)
		if n := len(w1.Partitions()); n != 2 {
			t.Errorf("the first worker serves %d partitions, want both", n)
		}
		w1.Crash()
		w2 := w.worker("w1") // a crash releases the id
		if n := len(w2.Partitions()); n != 2 {
			t.Errorf("the restarted worker serves %d partitions, want both", n)
		}
	})
}

// tryStart starts a worker and returns the result.
func (w *world) tryStart(id string) error {
	w.Helper()
	b := w.Server.Dial(id+"-too", lan{})
	p, err := worker.New(b, worker.Config{ID: id, Programs: worldtest.Always(book(w.T))})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { p.Kill(); b.Kill() })
	return p.Start(w.Context())
}

func TestTwin_OneOfTwoConcurrentStartsSucceeds(t *testing.T) {
	for i := range 10 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			errs := make(chan error, 2)
			for n := range 2 {
				go func() { // ends with the start
					time.Sleep(time.Duration(n*i) * 300 * time.Microsecond)
					errs <- w.tryStart("w1")
				}()
			}
			if first, second := <-errs, <-errs; first != nil && second != nil {
				t.Errorf("neither starts: %v; %v", first, second)
			}
			time.Sleep(5 * time.Second)
			w.Send("s", "add", "e1")
			time.Sleep(time.Second)
			w.Send("s", "add", "e2")
			time.Sleep(5 * time.Second)
			w.wantHandled("s", "e1", "e2")
			if owners := w.Takeovers("s"); len(owners) != 1 {
				t.Errorf("the space was taken over %d times", len(owners))
			}
			if alive, _ := w.Client.Ping(t.Context(), "w1"); !alive {
				t.Error("both workers have stopped")
			}
		})
	}
}

// deafToPings is a bus on which pings get no answer, like those to a process that hangs.
type deafToPings struct{ *membus.Bus }

func (deafToPings) Ping(ctx context.Context, _ string) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// A worker that hung for so long that another one replaced it under its id detects that when it continues.
func TestTwin_AHungWorkerThatWasReplacedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		old := w.remote(worker.Config{ID: "w1"})
		w.Send("s", "add", "e1")
		time.Sleep(2 * time.Second)
		old.Bus.Pause()
		time.Sleep(20 * time.Second)
		next := w.start(worker.Config{ID: "w1"}, w.Server.Dial("next", lan{}), func(b *membus.Bus) port.Bus { return deafToPings{b} })
		w.Send("s", "add", "e2")
		time.Sleep(5 * time.Second)
		old.Bus.Wake()
		time.Sleep(10 * time.Second)
		w.Send("s", "add", "e3")
		time.Sleep(5 * time.Second)
		w.wantHandled("s", "e1", "e2", "e3")
		if a, b := len(old.Partitions()), len(next.Partitions()); a != 0 || b != 1 {
			t.Errorf("the old one serves %d partitions and the new one %d", a, b)
		}
	})
}

// The id of a live worker that does not answer pings is still taken: its announcements show that it is alive.
func TestTwin_AWorkerWhoseIDIsAnnouncedDoesNotStart(t *testing.T) {
	for name, wrap := range map[string]func(*membus.Bus) port.Bus{
		"by a worker that answers pings":   func(b *membus.Bus) port.Bus { return b },
		"by a worker that hangs sometimes": func(b *membus.Bus) port.Bus { return deafToPings{b} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w.pretend("w1", true) // without a host
				w.Pass(time.Second)
				b := w.Server.Connect("w1-too")
				p, err := worker.New(wrap(b), worker.Config{ID: "w1", Programs: worldtest.Always(book(t))})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { p.Kill(); b.Kill() })
				if err := p.Start(t.Context()); !errors.As(err, new(*worker.TakenError)) {
					t.Errorf("start: %v, want a TakenError", err)
				}
			})
		})
	}
}
