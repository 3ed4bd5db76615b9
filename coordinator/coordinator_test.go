package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

func TestRelease_IsInTheOrderOfTheLogAndOnlyOfWhatLeavesTheSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		c, _ := w.coordinator(coordinator.Config{})
		for range 50 {
			w.commit("a", to("b"), to("a"), to("c"), to("b"))
			w.commit("x", to("b"))
			w.commit("quiet")
		}
		w.Eventually("everything is released", w.released)
		w.wantReleased()
		if got := w.Lane("a"); len(got) != 0 {
			t.Errorf("sends of a space to itself were released: %v", got)
		}
		var ofA []string
		for _, id := range w.Lane("b") {
			if strings.HasPrefix(id, "a:") {
				ofA = append(ofA, id)
			}
		}
		if !slices.Equal(ofA, w.sent["b"]["a"]) {
			t.Error("the sends of one space to another are not in the order of the log")
		}
		time.Sleep(2 * time.Second)
		for p := range 3 {
			if head := w.logEnd(p); w.position(p) != head {
				t.Errorf("position %d of partition %d, the log ends at %d", w.position(p), p, head)
			}
		}
		if n, repeated := c.Released(); n != 200 || repeated != 0 {
			t.Errorf("%d released, %d repeated, want 200 and 0", n, repeated)
		}
	})
}

func (w *world) logEnd(partition int) uint64 {
	entries, _ := w.Server.FollowLog(partition, 0, 1<<30)
	if len(entries) == 0 {
		return 0
	}
	return entries[len(entries)-1].Seq
}

// slow is a bus that answers sends when the test asks for it.
type slow struct {
	*membus.Bus
	mu     sync.Mutex
	queued []func()
	most   int
}

func (s *slow) Send(m model.Message, done func(model.SendResult, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued = append(s.queued, func() { s.Bus.Send(m, done) })
	s.most = max(s.most, len(s.queued))
}

// answer answers the i-th waiting send.
func (s *slow) answer(i int) bool {
	s.mu.Lock()
	if len(s.queued) == 0 {
		s.mu.Unlock()
		return false
	}
	i %= len(s.queued)
	send := s.queued[i]
	s.queued = slices.Delete(s.queued, i, i+1)
	s.mu.Unlock()
	send()
	return true
}

func (s *slow) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queued)
}

func TestWindow_BoundsReleasesInFlightAndThePositionStaysBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Connect("coordinator")
		s := &slow{Bus: b}
		w.CoordinatorOn(s, coordinator.Config{Window: 4})
		for range 10 {
			w.commit("a", to("b"), to("b"))
		}
		time.Sleep(5 * time.Second)
		if s.waiting() != 4 {
			t.Errorf("%d sends are in flight, want 4", s.waiting())
		}
		if w.position(0) != 0 {
			t.Errorf("position %d before anything was released", w.position(0))
		}
		s.answer(2) // the first send of the second commit
		time.Sleep(5 * time.Second)
		if w.position(0) != 0 {
			t.Errorf("position %d before the first commit was released", w.position(0))
		}
		s.answer(0)
		s.answer(0)
		time.Sleep(5 * time.Second)
		if w.position(0) != 1 {
			t.Errorf("position %d, want 1: one send of the second commit is still in flight", w.position(0))
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for s.answer(rng.IntN(4)) {
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		w.wantReleased()
		if w.position(0) != 10 || s.most > 4 {
			t.Errorf("position %d, at most %d in flight", w.position(0), s.most)
		}
	})
}

func TestRelease_AFullLaneIsRetriedUntilThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.Server.LimitLanes(3)
		w.coordinator(coordinator.Config{Window: 8})
		for range 20 {
			w.commit("a", to("b"), to("c"))
		}
		time.Sleep(30 * time.Second)
		if n := len(w.Lane("b")) + len(w.Lane("c")); n == 0 || n > 6 {
			t.Errorf("%d events in lanes that take 3 each", n)
		}
		w.checkPosition()
		w.Server.LimitLanes(0)
		time.Sleep(5 * time.Second)
		w.wantReleased()
	})
}

// checkPosition checks what the next coordinator relies on: everything up to the saved position is in the
// lanes.
func (w *world) checkPosition() {
	w.Helper()
	stored := map[string]bool{}
	for p := range w.Server.Partitions() {
		events, _ := w.Server.FollowLane(p, 0, 1<<30)
		for _, m := range events {
			stored[m.Space+" "+m.ID] = true
		}
	}
	for p := range w.Server.Partitions() {
		position := w.position(p)
		entries, _ := w.Server.FollowLog(p, 0, 1<<30)
		for _, e := range entries {
			c, err := model.DecodeCommit(e.Data)
			if err != nil || e.Seq > position {
				continue
			}
			for _, s := range c.Txs[0].Sends {
				if s.To != e.Space && !stored[s.To+" "+s.ID] {
					// The lanes were read before the position, which may have moved since.
					if !slices.Contains(w.Lane(s.To), s.ID) {
						w.Errorf("the position of partition %d is %d, and %s to %s of %d is in no lane", p, position, s.ID, s.To, e.Seq)
						return
					}
				}
			}
		}
	}
}

// Coordinators die at any time, several run concurrently, and requests are lost and repeated: what is
// committed arrives once.
func TestRelease_WhateverHappensToCoordinators(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				rng, mu := rand.New(rand.NewPCG(seed, 1)), sync.Mutex{}
				draw := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return rng.IntN(n)
				}
				spaces := []string{"a", "b", "c", "d"}
				var last func()
				for round := range 8 {
					b := w.Server.Connect(fmt.Sprint("c", round))
					t.Cleanup(b.Kill)
					fates := []membus.Fate{membus.DropAck, membus.DropRequest, membus.Duplicate, membus.Late}
					b.Inject(func(op membus.Op) membus.Fate {
						if i := draw(12); op.Try < 3 && i < len(fates) {
							return fates[i]
						}
						return membus.Deliver
					})
					c := w.CoordinatorOn(b, coordinator.Config{Window: 1 + draw(10), Save: time.Duration(1+draw(50)) * time.Millisecond})
					for range draw(40) {
						from := spaces[draw(4)]
						var sends []model.Send
						for range draw(4) {
							sends = append(sends, to(spaces[draw(4)]))
						}
						w.commit(from, sends...)
						if draw(5) == 0 {
							w.Pass(time.Duration(draw(20)) * time.Millisecond)
						}
					}
					w.checkPosition()
					if last != nil {
						last()
						w.checkPosition()
					}
					last = func() { b.Kill(); c.Stop(); b.Release() }
					if draw(2) == 0 {
						last()
						last = nil
					}
				}
				w.coordinator(coordinator.Config{})
				w.Eventually("everything is released", w.released)
				w.wantReleased()
				w.checkPosition()
			})
		})
	}
}

func TestRelease_RepeatedByACoordinatorThatHasForgottenChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first, _ := w.coordinator(coordinator.Config{})
		for range 10 {
			w.commit("a", to("b"))
		}
		time.Sleep(2 * time.Second)
		first.Stop()
		b := w.Connect("forgetful")
		second := w.CoordinatorOn(forgetful{b}, coordinator.Config{})
		time.Sleep(2 * time.Second)
		w.wantReleased()
		if n, repeated := second.Released(); n != 10 || repeated != 10 {
			t.Errorf("%d released, %d of them repeated; want 10 and 10", n, repeated)
		}
		second.Stop()
		third, _ := w.coordinator(coordinator.Config{})
		time.Sleep(2 * time.Second)
		if n, _ := third.Released(); n != 0 {
			t.Errorf("a coordinator that knows the position released %d", n)
		}
	})
}

// forgetful is a bus on which no position was ever saved.
type forgetful struct{ *membus.Bus }

func (forgetful) LoadPosition(context.Context, int, string) (uint64, error) { return 0, nil }

// eager is a bus that still delivers a few entries after a subscription has ended.
type eager struct{ *membus.Bus }

func (b eager) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	return b.Bus.FollowReleases(ctx, partition, after, func(e model.LogEntry) {
		deliver(e)
		if ctx.Err() != nil {
			for _, next := range b.behind(partition, e.Seq) {
				deliver(next)
			}
		}
	})
}

func (b eager) behind(partition int, seq uint64) []model.LogEntry {
	var found []model.LogEntry
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = b.Bus.FollowReleases(ctx, partition, seq, func(e model.LogEntry) {
		if found = append(found, e); len(found) == 3 {
			cancel()
		}
	})
	return found
}

// A commit that this program cannot decode may contain sends. It is reported, and the position stays before
// it, whatever comes after; sends of other spaces are released. When an operator has skipped it, the position
// passes it.
func TestRelease_ACommitThatCannotBeReadHoldsUpItsSpaceOnly(t *testing.T) {
	for name, wrap := range map[string]func(*membus.Bus) port.Bus{
		"":                          func(b *membus.Bus) port.Bus { return b },
		"with entries still coming": func(b *membus.Bus) port.Bus { return eager{b} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				b := w.Connect("coordinator")
				w.commit("a", to("b"))
				bad, err := w.Server.Append(model.Append{Space: "x", Data: []byte(`{"v":99,"txs":[{"n":1,"snd":[{}]}]}`)})
				if err != nil {
					t.Fatal(err)
				}
				w.commit("a")
				w.commit("a")
				w.commit("a")
				w.commit("a", to("b"))
				later := w.commit("x", to("c"))
				w.CoordinatorOn(wrap(b), coordinator.Config{})
				time.Sleep(time.Hour)
				if got := w.position(0); got != bad-1 {
					t.Errorf("position %d, want %d: an undecodable commit must not be passed", got, bad-1)
				}
				if got := w.Lane("b"); len(got) != 2 {
					t.Errorf("released %v, want the send of the other space", got)
				}
				if got := w.Lane("c"); len(got) != 0 {
					t.Errorf("released %v, which follows the undecodable commit", got)
				}
				reported := w.Log.Lines(fmt.Sprintf("sequence %d", bad))
				reported = slices.DeleteFunc(reported, func(line string) bool { return !strings.HasPrefix(line, "ERROR") })
				if n := len(reported); n < 5 || n > 9 {
					t.Errorf("reported %d times in an hour:\n%s", n, w.Log)
				}
				w.decide("x", bad)
				time.Sleep(time.Minute)
				if got := w.position(0); got != later {
					t.Errorf("position %d after the decision, want %d", got, later)
				}
				if got := w.Lane("c"); len(got) != 1 {
					t.Errorf("released %v after the decision, want the send after the commit", got)
				}
			})
		})
	}
}

// broken is a bus that loses the log subscription, and fails to resume it a few times.
type broken struct {
	*membus.Bus
	after int
	tries atomic.Int64
}

func (b *broken) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if b.tries.Add(1)%2 == 0 {
		return errors.New("no such stream")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0
	err := b.Bus.FollowReleases(ctx, partition, after, func(e model.LogEntry) {
		deliver(e)
		if n++; n == b.after {
			cancel()
		}
	})
	if n == b.after {
		return errors.New("the consumer is gone")
	}
	return err
}

func TestRelease_ContinuesWhereTheLogBrokeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Connect("coordinator")
		c := w.CoordinatorOn(&broken{Bus: b, after: 7}, coordinator.Config{Window: 3})
		for range 100 {
			w.commit("a", to("b"))
		}
		w.Eventually("everything is released", w.released)
		w.wantReleased()
		time.Sleep(2 * time.Second)
		if w.position(0) != 100 {
			t.Errorf("position %d", w.position(0))
		}
		if n, repeated := c.Released(); n > 110 || repeated != n-100 {
			t.Errorf("%d released, %d of them repeated", n, repeated)
		}
	})
}

func TestStop_IsPromptWhateverTheBusDoes(t *testing.T) {
	for name, hang := range map[string]func(op membus.Op) bool{
		"the window is full":         func(op membus.Op) bool { return op.Label == "send" },
		"positions cannot be loaded": func(op membus.Op) bool { return op.Label == "load-position" },
		"positions cannot be saved":  func(op membus.Op) bool { return op.Label == "save-position" },
		"nothing is answered":        func(membus.Op) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				b := w.Connect("coordinator")
				b.Inject(func(op membus.Op) membus.Fate {
					if hang(op) {
						return membus.Delay
					}
					return membus.Deliver
				})
				c := w.CoordinatorOn(b, coordinator.Config{Window: 2})
				for range 10 {
					w.commit("a", to("b"))
				}
				time.Sleep(5 * time.Second)
				began := time.Now()
				c.Stop()
				if took := time.Since(began); took > 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// forbidding is a bus whose user may not publish to lanes at first.
type forbidding struct {
	*membus.Bus
	may atomic.Bool
}

func (b *forbidding) Send(m model.Message, done func(model.SendResult, error)) {
	if b.may.Load() {
		b.Bus.Send(m, done)
		return
	}
	go done(model.SendResult{}, fmt.Errorf("send: %w", model.ErrForbidden)) // ends at once
}

// A coordinator with insufficient permissions delays releases and loses none.
func TestRelease_WaitsForPermissionToPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &forbidding{Bus: w.Connect("c")}
		w.CoordinatorOn(b, coordinator.Config{})
		w.commit("a", to("b"), to("b"))
		time.Sleep(time.Minute)
		if n := len(w.Lane("b")); n != 0 || w.position(0) != 0 {
			t.Errorf("%d events, and position %d", n, w.position(0))
		}
		b.may.Store(true)
		time.Sleep(11 * time.Second) // it retries every ten seconds
		w.wantReleased()
		for _, m := range w.Server.ReadLane("b", 0, 10) {
			if m.Invalid != "" {
				t.Errorf("event %s has become a tombstone: %s", m.ID, m.Invalid)
			}
		}
	})
}

// A coordinator that has stopped does nothing more, even if its bus still works.
func TestStop_NothingIsReleasedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Server.LimitLanes(1)
		c, b := w.coordinator(coordinator.Config{})
		w.commit("a", to("b"), to("b"), to("b"))
		time.Sleep(time.Second + 50*time.Millisecond) // between two tries
		c.Stop()
		var sends atomic.Int64
		b.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "send" {
				sends.Add(1)
			}
			return membus.Deliver
		})
		w.Server.LimitLanes(0)
		time.Sleep(time.Second)
		if n := sends.Load(); n != 0 {
			t.Errorf("%d sends after the stop", n)
		}
		w.checkPosition()
	})
}

func TestSave_AFailingStoreIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Connect("coordinator")
		w.CoordinatorOn(unsavable{b}, coordinator.Config{})
		w.commit("a", to("b"))
		time.Sleep(10 * time.Second)
		if w.Log.Count("save position") == 0 {
			t.Errorf("nothing was logged:\n%s", w.Log)
		}
	})
}

// unsavable is a bus on which no position can be saved.
type unsavable struct{ *membus.Bus }

func (unsavable) SavePosition(context.Context, int, string, uint64) error {
	return errors.New("not today")
}
