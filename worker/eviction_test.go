package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// idler starts a worker that evicts its spaces after a second.
func (w *world) idler(id string) *process {
	w.Helper()
	return w.process(worker.Config{ID: id, Options: worker.Options{Idle: time.Second}}, nil)
}

// eventuallyEmpty waits until no space is in memory.
func (w *world) eventuallyEmpty(p *process) {
	w.Helper()
	w.Eventually("no space is in memory", func() bool { return p.Awake() == 0 })
	if held := p.Held(); held != (worker.Held{}) {
		w.Errorf("the worker without spaces holds %+v", held)
	}
}

func TestEviction_AnIdleSpaceIsEvictedAndLoadedForTheNextEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.idler("w1")
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		w.eventuallyEmpty(w1)
		w.wantSaved("s", map[string]string{"n": "1"})
		w.Pass(2 * time.Second)
		w.WantPosition(0, 1)
		w.Send("s", "add", "e2")
		w.EventuallyEnded("s", 2)
		if n := w1.Awake(); n != 1 {
			t.Errorf("%d spaces are awake after an event, want 1", n)
		}
		w.wantHandled("s", "e1", "e2")
		w.eventuallyEmpty(w1)
		if s := w1.Stats().Partitions[0]; s.Activations != 2 || s.Evictions != 2 || s.Awake != 0 || s.Dormant != 0 {
			t.Errorf("%+v, want two activations and two evictions", s)
		}
	})
}

func TestEviction_ABusySpaceStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.idler("w1")
		for i := range 20 {
			w.Send("s", "add", "e"+strconv.Itoa(i+1))
			w.Pass(900 * time.Millisecond)
		}
		w.wantHandled("s", worldtest.Numbered(20)...)
		if n := len(w.Takeovers("s")); n != 1 {
			t.Errorf("the space was loaded %d times", n)
		}
		w.eventuallyEmpty(w1)
	})
}

func TestEviction_IsOffWithoutAnIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: -1}}, nil)
		w.Send("s", "add", "e1")
		w.Pass(time.Hour)
		if n := w1.Awake(); n != 1 {
			t.Errorf("%d spaces are awake, want 1", n)
		}
	})
}

func TestEviction_AnObservedSpaceStaysUntilItsLastObserverLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.idler("w1")
		seen := w.watch("s", "double")
		w.Pass(20 * time.Second)
		if n := w1.Awake(); n != 1 {
			t.Fatalf("%d spaces are awake while one is observed", n)
		}
		w.Send("s", "add", "e1")
		w.Eventually("the change is seen", func() bool { return seen.last() == "2" })
		seen.end()
		w.eventuallyEmpty(w1)
		again := w.watch("s", "double")
		w.Send("s", "add", "e2")
		w.Eventually("the next change is seen", func() bool { return again.last() == "4" })
		if n := len(w.Takeovers("s")); n != 2 {
			t.Errorf("the space was loaded %d times, want 2", n)
		}
	})
}

// A space that reads from another one keeps both in memory: changes wake the reader, and the source is
// observed.
func TestEviction_ASpaceThatReadsFromAnotherStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.idler("w1")
		seen := w.watch("a", "abroad")
		w.Send("a", "look", "e1", `"b"`)
		w.Send("b", "add", "e1")
		w.Eventually("the watcher sees the value of the other space", func() bool { return seen.last() == "2" })
		w.Pass(time.Minute)
		w.Send("b", "add", "e2")
		w.Eventually("the watcher sees its change", func() bool { return seen.last() == "4" })
		for _, s := range []string{"a", "b"} {
			if n := len(w.Takeovers(s)); n != 1 {
				t.Errorf("space %s was loaded %d times", s, n)
			}
		}
		seen.end()
		w.eventuallyEmpty(w1)
	})
}

// An effect behind a gate has not run yet. If the space were evicted, the effect would wait for the next
// event.
func TestEviction_AHeldEffectKeepsTheSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		var mu sync.Mutex
		var ran []int64
		err := p.Add(space.NodeSpec{
			ID: "tell", Kind: space.Effect, Gate: space.GateSpec{Throttle: 30 * time.Second},
			Run: func(tx *space.Tx) (model.Value, error) {
				n, _ := tx.Get("n").AsInt()
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, n)
				return model.Value{}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}, Programs: worldtest.Always(p)}, nil)
		w.Send("s", "add", "e1")
		w.Pass(10 * time.Second)
		w.Send("s", "add", "e2")
		w.Pass(10 * time.Second)
		if n := w1.Awake(); n != 1 {
			t.Errorf("%d spaces are awake while an effect waits, want 1", n)
		}
		w.eventuallyEmpty(w1)
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(ran, []int64{1, 2}) {
			t.Errorf("the effect saw %v, want 1 and 2", ran)
		}
	})
}

// If the store does not answer, unsaved changes stay in memory.
func TestEviction_NotBeforeEverythingIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second, Checkpoint: time.Hour}}, nil)
		w1.Bus.Inject(worldtest.Only("save", membus.Delay))
		w.Send("s", "add", "e1")
		w.Pass(10 * time.Second)
		if n := w1.Awake(); n != 1 {
			t.Errorf("%d spaces are awake, want the one that is not saved", n)
		}
		w.Send("s", "add", "e2") // arrives during the save
		w.Pass(time.Second)
		w1.Bus.Inject(nil)
		w1.Bus.Release()
		w.eventuallyEmpty(w1)
		w.wantHandled("s", "e1", "e2")
		w.wantSaved("s", map[string]string{"n": "2"})
		if n := len(w.Takeovers("s")); n != 1 {
			t.Errorf("the space was loaded %d times, want once: it must not have been evicted", n)
		}
	})
}

// Spaces are evicted all the time, and events and observers arrive at every moment of an eviction. Each event
// is handled once, in order. In half of the runs everything takes whole milliseconds, so that much happens at
// the same instant.
func TestEviction_LosesNoEventOrObserver(t *testing.T) {
	for seed := range raced.Fewer(40, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newWorld(t, 2).comeAndGo(uint64(seed)) })
		})
	}
}

// comeAndGo is one run.
func (w *world) comeAndGo(seed uint64) {
	const spaces, events = 4, 40
	r, unit := rand.New(rand.NewPCG(seed, 1)), time.Microsecond
	if seed%2 == 0 {
		unit = time.Millisecond
	}
	some := func(r *rand.Rand, most time.Duration) time.Duration {
		return time.Duration(r.Int64N(int64(most/unit)+1)) * unit
	}
	w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Millisecond + some(r, 3*time.Millisecond), Checkpoint: 10 * time.Millisecond}}, nil)
	if unit == time.Microsecond {
		slow := rand.New(rand.NewPCG(seed, 2))
		w1.Bus.Inject(func(membus.Op) membus.Fate {
			w.Pass(some(slow, 400*time.Microsecond))
			return membus.Deliver
		})
	}
	var users sync.WaitGroup
	for i := range spaces {
		s, r := "s"+strconv.Itoa(i), rand.New(rand.NewPCG(seed, uint64(10+i)))
		users.Go(func() { // ends when all is sent
			for n := range events {
				w.Send(s, "add", "e"+strconv.Itoa(n+1))
				w.Pass(some(r, 8*time.Millisecond))
				if r.IntN(8) == 0 {
					seen := w.watch(s, "double")
					w.Pass(some(r, 3*time.Millisecond))
					w.Eventually("the watcher sees the value", func() bool { return seen.last() == strconv.Itoa(2*(n+1)) })
					seen.end()
				}
			}
		})
	}
	users.Wait()
	w.eventuallyEmpty(w1)
	for i := range spaces {
		w.wantHandled("s"+strconv.Itoa(i), worldtest.Numbered(events)...)
	}
	left := uint64(0)
	for _, p := range w1.Stats().Partitions {
		left += p.Evictions
	}
	if left < 20 {
		w.Errorf("only %d evictions, which are too few", left)
	}
	if n := w1.Counts().Refused; n > 0 {
		w.Errorf("%d appends were refused: two hosts of one space overlapped", n)
	}
	w1.Shutdown()
}

// An event or observer arrives after the space has decided to leave, and before it has left.
func TestEviction_ALateEventOrObserverCancelsIt(t *testing.T) {
	var seen *watched
	var asked chan model.DocumentState
	for what, come := range map[string]func(w *world, w1 *process){ // any order: each on its own
		"an event":    func(w *world, _ *process) { w.Send("s", "add", "e2") },
		"an observer": func(w *world, _ *process) { seen = w.watch("s", "double") },
		"a question": func(w *world, w1 *process) {
			asked = make(chan model.DocumentState, 1)
			go func() { // ends with the answer
				a, err := w1.readCurrent(context.Background(), "s", "double", time.Minute)
				if err != nil {
					w.Error(err)
				}
				asked <- a
			}()
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				cfg := worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}}
				var w1 *process
				times := 0
				cfg.BeforeLeaving(func() {
					if times++; times == 1 {
						come(w, w1)
						w.Pass(time.Millisecond) // all of it arrives
					}
				})
				w1 = w.process(cfg, nil)
				w.Send("s", "add", "e1")
				w.Pass(4 * time.Second)
				if n := len(w.Takeovers("s")); n != 1 || times == 0 {
					t.Errorf("the space was loaded %d times, and about to leave %d times", n, times)
				}
				switch what {
				case "an event":
					w.wantHandled("s", "e1", "e2")
				case "an observer":
					if seen.last() != "2" || w1.Awake() != 1 {
						t.Errorf("the observer sees %s, with %d spaces awake", seen.last(), w1.Awake())
					}
					seen.end()
				case "a question":
					if a := <-asked; a.Value.String() != "2" || a.Stale != "" {
						t.Errorf("the answer is %+v", a)
					}
				}
				w.eventuallyEmpty(w1)
			})
		})
	}
}

// There are many more spaces than room for them: each gets its turn, and memory is always bounded. A space
// with work to do is not in their way.
func TestEviction_BoundsTheSpacesInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		const limit, spaces = 20, 500
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{MaxAwake: limit}}, nil)
		var most atomic.Int64
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			most.Store(max(most.Load(), int64(w1.Awake()))) // one at a time
			return membus.Deliver
		})
		for round := range 2 {
			for i := range spaces {
				w.Send("s"+strconv.Itoa(i), "add", "e"+strconv.Itoa(round+1))
			}
		}
		for i := range spaces {
			w.EventuallyEnded("s"+strconv.Itoa(i), 2)
			w.wantHandled("s"+strconv.Itoa(i), "e1", "e2")
		}
		if n := most.Load(); n > limit {
			t.Errorf("%d spaces were awake at a time, want at most %d", n, limit)
		}
		w.eventuallyEmpty(w1)
	})
}

// The limit applies to idle spaces. Any number of spaces with work to do are served.
func TestEviction_SpacesWithWorkMayExceedTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{MaxAwake: 3}}, nil)
		var seen []*watched
		for i := range 10 {
			seen = append(seen, w.watch("s"+strconv.Itoa(i), "double"))
		}
		w.Send("other", "add", "e1")
		for i := range seen {
			w.Send("s"+strconv.Itoa(i), "add", "e1")
		}
		for i, s := range seen {
			w.Eventually(fmt.Sprint("the change of space number", i, " is seen"), func() bool { return s.last() == "2" })
		}
		w.EventuallyEnded("other", 1)
		w.Eventually("only what is observed is in memory", func() bool { return w1.Awake() == 10 })
	})
}

// Slow loads do not slow down a space that is in memory.
func TestEviction_SlowLoadsDelayNoOtherSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.Send("awake", "add", "e1")
		w.EventuallyEnded("awake", 1)
		var loads atomic.Int32
		w1.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "load" {
				loads.Add(1)
				return membus.Delay
			}
			return membus.Deliver
		})
		for i := range 300 {
			w.Send("s"+strconv.Itoa(i), "add", "e1")
		}
		began := time.Now()
		w.Send("awake", "add", "e2")
		w.EventuallyEnded("awake", 2)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("a space that is awake waited for %v", took)
		}
		synctest.Wait() // for the load requests in flight
		if n := loads.Load(); n != 64 {
			t.Errorf("%d spaces are loaded at a time, want 64", n)
		}
		if s := w1.Stats(); s.Waiting != 300-64 || s.Partitions[0].Dormant != 300-64 {
			t.Errorf("%+v, want %d that wait", s, 300-64)
		}
		w1.Bus.Inject(nil)
		w1.Bus.Release()
		for i := range 300 {
			w.EventuallyEnded("s"+strconv.Itoa(i), 1)
		}
	})
}

// Nothing in the worker's memory grows with the number of spaces that it has served.
func TestEviction_LeavesNothingInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: 10 * time.Millisecond, MaxAwake: 50}}, nil)
		const spaces = 2000
		for i := range spaces {
			s := "s" + strconv.Itoa(i)
			w.Send(s, "add", "e1")
			w.Send(s, "get", "e2") // runs a computation
		}
		for i := range spaces {
			w.EventuallyEnded("s"+strconv.Itoa(i), 2)
		}
		w.eventuallyEmpty(w1)
		runs := w1.Runs()
		sum := uint64(0)
		for _, n := range runs { // any order: a sum
			sum += n
		}
		if len(runs) > 1025 || sum != spaces {
			t.Errorf("%d counts of runs, %d in all, want %d in at most 1025", len(runs), sum, spaces)
		}
		w.Pass(3 * time.Second)
		for p := range 4 {
			if got, want := w.Server.LoadPosition(p, "lane"), w.laneEnd(p); got != want {
				t.Errorf("the lane position of partition %d is %d, want %d", p, got, want)
			}
		}
	})
}

func (w *world) laneEnd(partition int) uint64 {
	end, err := w.Client.LaneEnd(w.Context(), partition)
	if err != nil {
		w.Fatal(err)
	}
	return end
}

// A space that has an application attached is not evicted in favour of another one, which would wait forever.
func TestEviction_AnAttachedSpaceIsNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(worker.Config{ID: "w1", Options: worker.Options{MaxAwake: 1}}, nil)
		w.attach("app").add()
		w.Pass(time.Second)
		w.Send("other", "add", "e1")
		w.Pass(5 * time.Second)
		w.wantHandled("other", "e1")
	})
}
