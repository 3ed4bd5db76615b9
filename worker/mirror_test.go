package worker_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// abroad is a world in which "here" computes from a computed document of "there", in another partition.
type abroad struct {
	*world
	here, there, third string
}

func newAbroad(t *testing.T) *abroad {
	a := &abroad{world: newWorld(t, 2)}
	a.here, a.there, a.third = worldtest.SpacesIn(0, 2, 1)[0], worldtest.SpacesIn(1, 2, 2)[0], worldtest.SpacesIn(1, 2, 2)[1]
	a.Send(a.here, "look", "look1", fmt.Sprintf("%q", a.there))
	return a
}

func TestMirror_FollowsTheOtherSpaceWhileObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAbroad(t)
		w1 := a.worker("w1")
		a.Send(a.there, "add", "e1")
		synctest.Wait()
		if n := runsOf(w1, a.there, "double"); n != 0 {
			t.Errorf("computed %d times without an observer", n)
		}
		v := a.watch(a.here, "abroad")
		time.Sleep(time.Second)
		if v.last() != "2" {
			t.Errorf("the watcher sees %s, want 2", v.last())
		}
		for i := range 5 {
			a.Send(a.there, "add", fmt.Sprintf("e%d", i+2))
			time.Sleep(10 * time.Millisecond)
			if want := fmt.Sprint(2 * (i + 2)); v.last() != want {
				t.Errorf("the watcher sees %s, want %s", v.last(), want)
			}
		}
		if held := w1.Held(); held.Leases != 2 || w1.Mirrors() != 1 {
			t.Errorf("while watched: %+v", held)
		}
		v.end()
		time.Sleep(100 * time.Millisecond)
		a.wantFollows(w1, a.there, 1, false)
		if held := w1.Held(); held.Leases != 0 || w1.Mirrors() != 0 {
			t.Errorf("after the last watcher has left: %+v", held)
		}
	})
}

func TestMirror_FollowsAChangedLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAbroad(t)
		w1 := a.worker("w1")
		v := a.watch(a.here, "abroad")
		a.Send(a.there, "add", "e1")
		time.Sleep(time.Second)
		a.Send(a.third, "add", "e1")
		a.Send(a.third, "add", "e2")
		a.Send(a.here, "look", "look2", fmt.Sprintf("%q", a.third))
		time.Sleep(time.Second)
		if v.last() != "4" {
			t.Errorf("the watcher sees %s, want 4", v.last())
		}
		a.wantFollows(w1, a.there, 1, false)
		a.wantFollows(w1, a.third, 2, true)
		if n := w1.Mirrors(); n != 1 {
			t.Errorf("%d mirrors", n)
		}
	})
}

// A link changes away and back at once. The withdrawal of the first demand must not come last and end the
// second.
func TestMirror_DemandSurvivesAShortWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAbroad(t)
		w1 := a.worker("w1")
		v := a.watch(a.here, "abroad")
		time.Sleep(1100 * time.Millisecond) // the next renewal is far away
		for i := range 20 {
			to := a.third
			if i%2 == 1 {
				to = a.there
			}
			a.Send(a.here, "look", fmt.Sprintf("flip%d", i), fmt.Sprintf("%q", to))
		}
		time.Sleep(10 * time.Millisecond)
		a.wantFollows(w1, a.there, 1, true)
		if held := w1.Held(); held.Leases != 2 || w1.Mirrors() != 1 {
			t.Errorf("held: %+v", held)
		}
		if v.last() != "2" {
			t.Errorf("the watcher sees %s, want 2", v.last())
		}
	})
}

func TestMirror_SurvivesATakeoverOfEitherSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAbroad(t)
		owners := []*process{a.worker("w1"), a.worker("w2")}
		time.Sleep(2 * time.Second)
		v := a.watch(a.here, "abroad")
		for i := range 8 {
			a.Send(a.there, "add", fmt.Sprintf("e%d", i+1))
			time.Sleep(3 * time.Second)
			if want := fmt.Sprint(2 * (i + 1)); v.last() != want {
				t.Fatalf("round %d: the watcher sees %s, want %s\n%s", i, v.last(), want, a.Log)
			}
			owners[0].Crash() // it serves one side or the other, or both
			owners = append(owners[1:], a.worker(fmt.Sprintf("w%d", i+3)))
		}
		a.Send(a.there, "add", "e9")
		time.Sleep(3 * time.Second)
		if v.last() != "18" {
			t.Errorf("the watcher sees %s, want 18", v.last())
		}
	})
}

// The event of a handler that reads a document of another space waits until the document is here and up to
// date.
func TestMirror_AHandlerWaitsForADocumentOfAnotherSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAbroad(t)
		w1 := a.worker("w1")
		a.Send(a.there, "add", "e1")
		a.Send(a.there, "get", "e2") // has double computed
		time.Sleep(time.Second)
		a.Send(a.here, "read", "r1", fmt.Sprintf("%q", a.there))
		time.Sleep(time.Second)
		if got := a.Doc(a.here, "seen"); got != "2" {
			t.Errorf("the handler saw %s, want 2", got)
		}
		if held := w1.Held(); held.Leases != 0 || w1.Mirrors() != 0 {
			t.Errorf("after it is handled: %+v", held)
		}
	})
}

// While a handler runs, a document of another space may change a thousand times. Only the last value is kept.
func TestMirror_ABusySpaceKeepsOnlyTheLastValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAbroad(t)
		p := book(t)
		computes := make(chan struct{})
		if err := p.Handle("slow", func(*space.Tx, *model.Event) (model.Value, error) {
			<-computes
			return model.Value{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		w1 := a.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		v := a.watch(a.here, "abroad")
		time.Sleep(time.Second)
		a.Send(a.here, "slow", "slow1")
		for i := range 1000 {
			a.Send(a.there, "add", fmt.Sprintf("e%d", i+1))
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if n := w1.Held().Calls; n > 10 {
			t.Errorf("%d calls wait for the loop", n)
		}
		close(computes)
		time.Sleep(time.Second)
		if v.last() != "2000" {
			t.Errorf("the watcher sees %s, want 2000", v.last())
		}
	})
}

// brokenFollow ends every space subscription after a while, and reads the log from lagging servers, such as a
// deposed leader.
type brokenFollow struct {
	*membus.Bus
	read atomic.Int64
	stop chan struct{}
}

func (b *brokenFollow) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-b.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	if b.read.Load() > 0 { // what it has read counts for a while
		_ = pause.For(ctx, time.Second)
	}
	return b.Bus.FollowSpace(ctx, space, after, deliver)
}

func (b *brokenFollow) Head(ctx context.Context, space string) (uint64, error) {
	head, err := b.Bus.Head(ctx, space)
	if n := b.read.Load(); n > 0 {
		head = min(head, uint64(n))
	}
	return head, err
}

func (b *brokenFollow) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	entries, err := b.Bus.ReadLog(ctx, space, after, limit)
	if n := b.read.Load(); n > 0 {
		entries = slices.DeleteFunc(entries, func(e model.LogEntry) bool { return e.Seq > uint64(n) })
	}
	return entries, err
}

// A mirror that has lost its source starts again, and may then read an older value than it has seen. The core
// must not receive that value.
func TestMirror_DoesNotGoBackWhenItRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAbroad(t)
		var bus *brokenFollow
		a.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: time.Hour}}, func(b *membus.Bus) port.Bus {
			bus = &brokenFollow{Bus: b, stop: make(chan struct{}, 1)}
			return bus
		})
		v := a.watch(a.here, "abroad")
		time.Sleep(100 * time.Millisecond)
		for i := range 5 {
			a.Send(a.there, "add", fmt.Sprintf("e%d", i+1))
			time.Sleep(100 * time.Millisecond)
		}
		bus.read.Store(3)
		bus.stop <- struct{}{}
		time.Sleep(5 * time.Second)
		values, _ := v.seen()
		if !slices.IsSortedFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(a)%6, len(b)%6), cmp.Compare(a, b)) }) {
			t.Errorf("the watcher saw %v", values) // absent, 0, 2, ... 10
		}
		if v.last() != "10" {
			t.Errorf("the watcher sees %s, want 10", v.last())
		}
	})
}

// severed loses the subscription to space s when it is cut, and reads nothing of s until it is healed.
type severed struct {
	*membus.Bus
	cut, mended chan struct{}
}

func (b *severed) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-b.cut:
		case <-ctx.Done():
		}
		select {
		case <-b.mended:
		default:
			if space == "s" {
				cancel()
			}
		}
	}()
	return b.Bus.FollowSpace(ctx, space, after, deliver)
}

func (b *severed) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	select {
	case <-b.cut:
		select {
		case <-b.mended:
		case <-ctx.Done():
			return model.SpaceState{}, ctx.Err()
		}
	default:
	}
	return b.Bus.LoadPart(ctx, space, key)
}

// While the mirror was cut off, the document was deleted, and the deletion was forgotten since: the absent
// document has no revision, but is still newer than the mirrored value.
func TestMirror_SeesADeletionThatIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		err := p.Add(space.NodeSpec{ID: "copy", Kind: space.Computation, Output: "copy", Run: func(tx *space.Tx) (model.Value, error) {
			return tx.GetFrom("s", "d"), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.process(frugal("w1"), nil)
		bus := &severed{cut: make(chan struct{}), mended: make(chan struct{})}
		b := w.Server.Connect("reader")
		bus.Bus = b
		a, err := worker.Attach(t.Context(), bus, worker.AttachConfig{ID: "reader", Space: "t", Program: p, Logger: w.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		one := &app{Attachment: a, bus: b, w: w}
		t.Cleanup(one.close)
		w.makeDocument()
		if err := a.Observe(t.Context(), "copy"); err != nil {
			t.Fatal(err)
		}
		w.Eventually("the document is mirrored", func() bool { return w.Doc("t", "copy") == "1" })
		close(bus.cut)
		w.deleteDocument()
		close(bus.mended)
		w.Eventually("the mirrored document is gone", func() bool { return w.Doc("t", "copy") == "absent" })
	})
}
