package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// rewinding is a bus whose store goes back: from then on it has another world's store, of epoch 1 (see
// inEpochOne).
type rewinding struct {
	port.Bus // before the rewind
	mu       sync.Mutex
	after    port.Bus // nil before the rewind
	cut      chan struct{}
	why      error         // the error with which a subscription ends
	late     time.Duration // how long the subscription continues
}

func (b *rewinding) now() port.Bus {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.after != nil {
		return b.after
	}
	return b.Bus
}

func (b *rewinding) goBack(to port.Bus) {
	b.mu.Lock()
	b.after = to
	b.mu.Unlock()
	close(b.cut)
}

func (b *rewinding) Epoch() uint64 { return b.now().Epoch() }

// inEpochOne sets a world's epoch to 1: requests bound to the epoch of another world, which is 0, are refused
// there.
func inEpochOne(w *world) *world {
	w.Server.GoBack(w.Server.Snapshot())
	return w
}

func (b *rewinding) FollowReleases(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error {
	if b.Epoch() > 0 {
		return b.now().FollowReleases(ctx, partition, after, deliver)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-b.cut:
			_ = pause.For(ctx, b.late)
			cancel()
		case <-ctx.Done():
		}
	}()
	err := b.now().FollowReleases(ctx, partition, after, deliver)
	if b.Epoch() > 0 {
		return b.why
	}
	return err
}

func (b *rewinding) LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error) {
	return b.now().LogState(ctx, partition, age)
}

func (b *rewinding) LoadPosition(ctx context.Context, partition int, name string) (uint64, error) {
	return b.now().LoadPosition(ctx, partition, name)
}

func (b *rewinding) SavePosition(ctx context.Context, partition int, name string, seq uint64) error {
	return b.now().SavePosition(ctx, partition, name, seq)
}

func (b *rewinding) Send(m model.Message, done func(model.SendResult, error)) {
	b.now().Send(m, done)
}

// When the store has gone back, the coordinator discards its memory of it and continues from the stored
// position, whether the subscription reports the rewind or ends for another reason.
func TestRewind_TheLogIsReleasedFromTheStoredPosition(t *testing.T) {
	for name, c := range map[string]struct { // any order: the cases are independent
		why error
		n   int // the number of commits after the rewind
	}{
		"told": {model.ErrRewound, 1}, "cut off": {errors.New("connection lost"), 1},
		"with ErrRewound, of a longer log": {model.ErrRewound, 7}, "cut off, of a longer log": {errors.New("connection lost"), 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, after := newWorld(t, 1), inEpochOne(newWorld(t, 1))
				first, second := before.Connect("coordinator"), after.Connect("coordinator")
				b := &rewinding{Bus: first, cut: make(chan struct{}), why: c.why}
				before.CoordinatorOn(b, coordinator.Config{})
				for range 5 {
					before.commit("a", to("b"))
				}
				before.Eventually("the position is saved", func() bool { return before.position(0) == 5 })
				for range c.n {
					after.commit("a", to("b"))
				}
				b.goBack(second)
				after.Pass(5 * time.Second)
				last := after.commit("a", to("b"))
				after.Eventually("every existing send is released", after.released)
				after.Eventually("the position is saved although it is lower", func() bool { return after.position(0) == last })
			})
		})
	}
}

// A release or a letter in flight when the store goes back belongs to a commit that no longer exists. After
// the rewind another event may have its id, and would be taken for a duplicate.
func TestRewind_ReleasesInFlightDoNotArriveAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		_, b := w.coordinator(coordinator.Config{})
		b.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "send" || op.Label == "bury" {
				return membus.Delay
			}
			return membus.Deliver
		})
		before := w.Server.Snapshot()
		lost := to("b")
		lost.Payload = model.Int(1)
		w.commit("a", lost)
		w.Send("c", "add", "e1")
		w.end("c", &model.Receipt{Event: "e1", Lane: 1, Outcome: model.Failed, Error: "no"})
		w.Pass(time.Second)
		w.Server.GoBack(before)
		b.Inject(nil)
		b.Release()
		w.sent = map[string]map[string][]string{}
		there := to("b")
		there.Payload = model.Int(2)
		w.commit("a", there)
		w.Eventually("every existing send is released", w.released)
		w.Pass(time.Second)
		if m := w.Server.ReadLane("b", 0, 2); len(m) != 1 || string(m[0].Payload) != "2" {
			t.Errorf("the lane has %+v", m)
		}
		if letters := w.Server.ReadDead("", 0, 1); len(letters) > 0 {
			t.Errorf("a letter is about an event that was never sent: %+v", letters)
		}
	})
}

// A letter that was refused before the rewind is not retried either.
func TestRewind_AnEarlierLetterIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &reluctant{Bus: w.Connect("coordinator")}
		b.refuse.Store(3)
		w.CoordinatorOn(b, coordinator.Config{})
		before := w.Server.Snapshot()
		w.Send("c", "add", "e1")
		w.end("c", &model.Receipt{Event: "e1", Lane: 1, Outcome: model.Failed, Error: "no"})
		w.Pass(300 * time.Millisecond)
		w.Server.GoBack(before)
		w.Pass(time.Minute)
		if letters := w.Server.ReadDead("", 0, 1); len(letters) > 0 {
			t.Errorf("a letter is about an event that was never sent: %+v", letters)
		}
	})
}

// A position that was released but not saved before the store went back is not saved afterwards, whether or
// not anything is sent after it.
func TestRewind_AnEarlierPositionIsNotSaved(t *testing.T) {
	for _, sends := range [][]model.Send{{to("b")}, nil} {
		positionOfBefore(t, sends)
	}
}

func positionOfBefore(t *testing.T, sends []model.Send) {
	synctest.Test(t, func(t *testing.T) {
		before, after := newWorld(t, 1), inEpochOne(newWorld(t, 1))
		first, second := before.Connect("coordinator"), after.Connect("coordinator")
		b := &rewinding{Bus: first, cut: make(chan struct{}), why: model.ErrRewound, late: time.Minute}
		before.CoordinatorOn(b, coordinator.Config{Save: 10 * time.Second})
		for range 5 {
			before.commit("a", slices.Clone(sends)...)
		}
		before.Pass(5 * time.Second)
		before.wantReleased()
		after.commit("a", to("b"))
		b.goBack(second)
		after.Eventually("every existing send is released", after.released)
		after.Eventually("the position is that of the present log", func() bool { return after.position(0) == 1 })
	})
}

// A log that is empty after a saved position was lost: the coordinator logs that, and releases new sends from
// then on.
func TestRelease_AnEmptyLogAfterAPositionIsReleasedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		if err := w.Client.SavePosition(t.Context(), 0, coordinator.Position, 5); err != nil {
			t.Fatal(err)
		}
		w.coordinator(coordinator.Config{})
		time.Sleep(time.Second)
		if w.Log.Count("the log ends before the released position") == 0 {
			t.Errorf("nothing was logged:\n%s", w.Log)
		}
		last := w.commit("a", to("b"))
		w.Eventually("the send is released, and the position is saved", func() bool { return w.position(0) == last && w.released() })
	})
}

// late is a bus whose leader does not know the newest commits for a few reads.
type late struct {
	*membus.Bus
	asked atomic.Int64
}

func (b *late) StaleWindow() time.Duration { return port.StaleLeader }

func (b *late) LogState(ctx context.Context, partition int, age time.Duration) (model.LogState, error) {
	st, err := b.Bus.LogState(ctx, partition, age)
	if b.asked.Add(1) < 4 {
		st.Last--
	}
	return st, err
}

// A deposed leader reports an end of the log before the released position, although nothing is lost.
func TestRelease_ADeposedLeaderDoesNotMakeALogShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first, _ := w.coordinator(coordinator.Config{})
		for range 3 {
			w.commit("a", to("b"))
		}
		w.Eventually("the position is saved", func() bool { return w.position(0) == 3 })
		first.Stop()
		b := &late{Bus: w.Connect("coordinator")}
		c := w.CoordinatorOn(b, coordinator.Config{})
		w.commit("a", to("b"))
		w.Eventually("the send is released", w.released)
		if _, repeated := c.Released(); repeated > 0 || w.Log.Count("ends before the released") > 0 {
			t.Errorf("%d were released again; the logger wrote:\n%s", repeated, w.Log)
		}
	})
}

// A lane loses its end, and with it sends that its spaces have not handled. A coordinator that starts
// afterwards does not remember them, and the positions of the logs have passed them: they are released again,
// even if the lane has grown to its former length since.
func TestLostEnd_LostSendsAreReleasedAgain(t *testing.T) {
	for _, since := range []int{0, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			lane := model.PartitionOf("b", 2)
			first, _ := w.coordinator(coordinator.Config{})
			for range 3 {
				w.commit("a", to("b"))
				w.commit("d", to("b"))
			}
			w.Eventually("the positions are saved", func() bool { return w.position(0) == 3 && w.position(1) == 3 })
			first.Stop()
			w.Pass(time.Second)
			w.Server.LoseLane(lane, 2)
			for i := range since {
				w.Send("b", "other", fmt.Sprint("n", i))
			}
			w.coordinator(coordinator.Config{})
			w.Eventually("all sends are in the lane again", w.released)
			last := w.commit("a", to("b"))
			w.Eventually("the position is saved", func() bool { return w.position(model.PartitionOf("a", 2)) == last })
			if n := len(w.Lane("b")); n != 7+since {
				t.Errorf("the lane has %d events, want 7 and %d of other clients", n, since)
			}
			if n := w.Log.Count("have lost their ends"); n != 1 {
				t.Errorf("the lost end was logged %d times", n)
			}
		})
	}
}

// Nothing is released again into a lane that has lost nothing.
func TestLostEnd_NothingIsReleasedAgainIntoAWholeLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		first, _ := w.coordinator(coordinator.Config{})
		for range 5 {
			w.commit("a", to("b"), to("c"))
		}
		p := model.PartitionOf("a", 2)
		w.Eventually("the position is saved", func() bool { return w.position(p) == 5 })
		first.Stop()
		w.Send("b", "add", "n1")
		second, _ := w.coordinator(coordinator.Config{})
		w.commit("a", to("b"))
		w.Eventually("the position is saved", func() bool { return w.position(p) == 6 })
		if _, repeated := second.Released(); repeated > 0 {
			t.Errorf("%d sends were released that were in the lane", repeated)
		}
	})
}

// A log loses its end and grows to its former length before a coordinator starts: sends up to the saved
// position are new, and are released.
func TestLostEnd_ALogOfItsFormerLengthIsReleasedAgain(t *testing.T) {
	for _, since := range []int{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			first, _ := w.coordinator(coordinator.Config{})
			for range 3 {
				w.commit("a", to("b"))
			}
			lost := w.commit("c", model.Send{To: "c", Stream: "add"}) // not released
			w.commit("c", model.Send{To: "c", Stream: "add"})
			w.Eventually("the position is saved", func() bool { return w.position(0) == lost+1 })
			first.Stop()
			w.Pass(time.Second)
			w.Server.LoseLog(0, lost-1)
			for range since {
				w.commit("a", to("b"))
			}
			w.coordinator(coordinator.Config{})
			w.Eventually("all sends are in the lanes", w.released)
			w.wantReleased()
		})
	}
}

// A send that is older than what lanes remember, because no coordinator ran, was still not released: a
// position is never moved forward.
func TestLostEnd_OldUnreleasedSendsAreReleased(t *testing.T) {
	for name, lose := range map[string]func(w *world){ // any order: the cases are independent
		"a lane": func(w *world) { w.Server.LoseLane(0, 1) },
		"a log": func(w *world) {
			w.Server.LoseLog(0, 3)
			w.sent["b"]["a"] = w.sent["b"]["a"][:3]
			for range 4 {
				w.commit("a", to("b"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				first, _ := w.coordinator(coordinator.Config{})
				for range 3 {
					w.commit("a", to("b"))
				}
				w.commit("a")
				w.Eventually("the position is saved", func() bool { return w.position(0) == 4 })
				first.Stop()
				w.Pass(time.Second)
				w.commit("a", to("b"))
				w.commit("a", to("b"))
				lose(w)
				w.Pass(3 * w.Server.Horizon())
				w.coordinator(coordinator.Config{})
				w.Eventually("all sends are in the lanes", w.released)
				w.wantReleased()
			})
		})
	}
}

// The end of a lane is saved beside each position that relies on it. Any of them reveals what the lane has
// lost, even one that is not the furthest, when others were saved since.
func TestLostEnd_AnySavedEndRevealsIt(t *testing.T) {
	for what, moved := range map[string]func(end uint64) uint64{ // any order: the cases are independent
		"another event stood before the last one": func(end uint64) uint64 { return end - 1<<20 },
		"it reached further before":               func(end uint64) uint64 { return end + 5<<20 },
	} {
		t.Run(what, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { anySavedEndShowsIt(t, moved) }) })
	}
}

func anySavedEndShowsIt(t *testing.T, moved func(end uint64) uint64) {
	w := newWorld(t, 2)
	lane, from := model.PartitionOf("b", 2), worldtest.SpacesIn(1-model.PartitionOf("b", 2), 2, 1)[0]
	other := model.PartitionOf(from, 2)
	first, _ := w.coordinator(coordinator.Config{})
	for range 3 {
		w.commit(from, to("b"))
	}
	w.Eventually("the position is saved", func() bool { return w.position(other) == 3 })
	first.Stop()
	name := fmt.Sprintf("sent-%d", lane)
	saved, err := w.Client.LoadPosition(t.Context(), other, name)
	if err != nil || saved == 0 {
		t.Fatalf("the end that is saved beside the position is %d, %v", saved, err)
	}
	if err := w.Client.MovePosition(t.Context(), other, name, moved(saved)); err != nil {
		t.Fatal(err)
	}
	second, _ := w.coordinator(coordinator.Config{})
	w.Eventually("the loss is logged", func() bool { return w.Log.Count("have lost their ends") > 0 })
	w.Pass(5 * time.Second)
	second.Stop()
	w.coordinator(coordinator.Config{})
	w.Pass(5 * time.Second)
	if n := w.Log.Count("have lost their ends"); n != 1 {
		t.Errorf("the loss was logged %d times", n)
	}
}

// The whole store goes back under a running coordinator. It saves the ends that lanes have afterwards, and
// none that it remembers.
func TestRewind_EarlierEndsOfLanesAreNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		from := worldtest.SpacesIn(1-model.PartitionOf("b", 2), 2, 1)[0]
		p := model.PartitionOf(from, 2)
		first, _ := w.coordinator(coordinator.Config{})
		last := w.commit(from, to("b"))
		w.Eventually("the position is saved", func() bool { return w.position(p) == last })
		before := w.Server.Snapshot()
		for range 4 {
			last = w.commit(from, to("b"))
		}
		w.Eventually("the position is saved", func() bool { return w.position(p) == last })
		w.Server.GoBack(before)
		next := w.commit(from, to(from)) // without a send to the lane of b
		w.Eventually("the position is saved", func() bool { return w.position(p) == next })
		w.Pass(5 * time.Second)
		name := fmt.Sprintf("sent-%d", model.PartitionOf("b", 2))
		saved, err := w.Client.LoadPosition(t.Context(), p, name)
		if err != nil {
			t.Fatal(err)
		}
		next = w.commit(from, to("b"))
		w.Eventually("the position is saved", func() bool { return w.position(p) == next })
		if now, err := w.Client.LoadPosition(t.Context(), p, name); err != nil || now <= saved {
			t.Errorf("the end that is saved beside the position is %d, want %d from before the send (%v)", now, saved, err)
		}
		first.Stop()
		w.coordinator(coordinator.Config{})
		w.Pass(5 * time.Second)
		if w.Log.Count("have lost their ends") > 0 {
			t.Errorf("a lane is reported as having lost what it never had:\n%s", w.Log)
		}
	})
}
