package settle_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// asking counts what a client asks of its bus.
type asking struct {
	*membus.Bus
	follows, parts, reads, heads, leases, now atomic.Int64
}

func (b *asking) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	b.follows.Add(1)
	b.now.Add(1)
	defer b.now.Add(-1)
	return b.Bus.FollowSpace(ctx, space, after, deliver)
}

func (b *asking) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	b.parts.Add(1)
	return b.Bus.LoadPart(ctx, space, key)
}

func (b *asking) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	b.reads.Add(1)
	return b.Bus.ReadLog(ctx, space, after, limit)
}

func (b *asking) Head(ctx context.Context, space string) (uint64, error) {
	b.heads.Add(1)
	return b.Bus.Head(ctx, space)
}

func (b *asking) Observe(l model.Lease) error {
	b.leases.Add(1)
	return b.Bus.Observe(l)
}

// looped is a loop that hands on what it receives.
func looped(loop iter.Seq2[settle.Update[settle.Value], error]) <-chan string {
	got := make(chan string, 1000)
	go func() { // ends with the loop
		defer close(got)
		for u, err := range loop {
			if err != nil {
				got <- err.Error()
				return
			}
			got <- u.Value.String()
		}
	}()
	return got
}

func TestWatch_SharesOneSubscriptionWithOtherWatchesAndCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		var b *asking
		c, _ := w.client("c", func(in *membus.Bus) port.Bus { b = &asking{Bus: in}; return b })
		ctx, cancel := context.WithCancel(t.Context())
		s := c.Space("s")
		call := func(i int) {
			if _, err := c.Call(ctx, add("s", fmt.Sprintf("e%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		call(1)
		var loops []<-chan string
		for range 10 {
			loops = append(loops, looped(s.Watch(ctx, "n")))
		}
		synctest.Wait()
		for i := range 9 {
			call(i + 2)
			synctest.Wait()
		}
		for n, got := range loops {
			for i := range 10 {
				if v := <-got; v != fmt.Sprint(i+1) {
					t.Fatalf("loop %d receives %s as value %d", n, v, i+1)
				}
			}
		}
		if n := b.follows.Load(); n != 1 {
			t.Errorf("the client follows the space %d times", n)
		}
		cancel()
		for _, got := range loops {
			for range got {
			}
		}
		time.Sleep(time.Minute) // of the bubble: the follower lingers
		if n := b.now.Load(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

func TestWatch_EndsItsSubscriptionIfNothingElseUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		var b *asking
		c, _ := w.client("c", func(in *membus.Bus) port.Bus { b = &asking{Bus: in}; return b })
		ctx, cancel := context.WithCancel(t.Context())
		got := looped(c.Space("s").Watch(ctx, "n"))
		if v := <-got; v != "absent" {
			t.Errorf("at first it is %q", v)
		}
		cancel()
		<-got
		synctest.Wait()
		if n := b.now.Load(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

func TestWatch_OfADocumentThatWasJustMadeReadsNothingButTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		var b *asking
		c, _ := w.client("c", func(in *membus.Bus) port.Bus { b = &asking{Bus: in}; return b })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 5 {
			if _, err := c.Call(ctx, add("s", fmt.Sprintf("e%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Call(ctx, settle.Outgoing{Space: "s", Stream: "fail", ID: settle.ID("f")}); err != nil { // which changes nothing
			t.Fatal(err)
		}
		parts, reads := b.parts.Load(), b.reads.Load()
		got := looped(c.Space("s").WatchStored(ctx, "n"))
		if v := <-got; v != "5" {
			t.Errorf("it begins with %s", v)
		}
		if n := b.parts.Load() - parts + b.reads.Load() - reads; n != 0 {
			t.Errorf("it reads %d times", n)
		}
		if n := b.leases.Load(); n != 0 {
			t.Errorf("it has sent %d leases", n)
		}
		other, _ := w.client("other", nil)
		if _, err := other.Call(ctx, add("s", "another")); err != nil {
			t.Fatal(err)
		}
		if v := <-got; v != "6" {
			t.Errorf("then it is %s", v)
		}
	})
}

// A watch never begins behind what its caller has seen, though the subscription that it shares may be behind.
func TestWatch_BeginsAtTheHeadThoughItsSubscriptionIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		held := &holding{}
		c, _ := w.client("c", func(in *membus.Bus) port.Bus { held.Bus = in; return held })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := c.Call(ctx, add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		gate := make(chan struct{})
		held.gate.Store(&gate)
		other, _ := w.client("other", nil)
		for i := range 3 {
			if _, err := other.Call(ctx, add("s", fmt.Sprintf("o%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		got := looped(c.Space("s").Watch(ctx, "n"))
		if v := <-got; v != "4" {
			t.Errorf("it begins with %s", v)
		}
		close(gate)
		if _, err := other.Call(ctx, add("s", "o4")); err != nil {
			t.Fatal(err)
		}
		if v := <-got; v != "5" {
			t.Errorf("then it is %s", v)
		}
	})
}

// holding holds entries back until a gate opens, if there is one.
type holding struct {
	*membus.Bus
	gate atomic.Pointer[chan struct{}]
}

func (b *holding) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	return b.Bus.FollowSpace(ctx, space, after, func(e model.LogEntry) {
		if gate := b.gate.Load(); gate != nil {
			select {
			case <-*gate:
			case <-ctx.Done():
				return
			}
		}
		deliver(e)
	})
}

// A loop that is slow holds up neither calls nor other watches, and continues with the newest value, also if that is the first one
// for which there was no room.
func TestWatch_ASlowLoopHoldsUpNothingAndReadsItsDocumentAgain(t *testing.T) {
	for _, calls := range []int{257, 1000} {
		synctest.Test(t, func(t *testing.T) { slowLoop(t, calls) })
	}
}

func slowLoop(t *testing.T, calls int) {
	w := newWorld(t)
	w.worker("w1")
	c, _ := w.client("c", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := c.Call(ctx, add("s", "e0")); err != nil {
		t.Fatal(err)
	}
	goOn, got := make(chan struct{}), make(chan string, 1000)
	go func() { // ends with ctx
		for u, err := range c.Space("s").Watch(ctx, "n") {
			if err != nil {
				return
			}
			got <- u.Value.String()
			<-goOn
		}
	}()
	if v := <-got; v != "1" {
		t.Errorf("it begins with %s", v)
	}
	for i := range calls {
		if _, err := c.Call(ctx, add("s", fmt.Sprintf("f%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	n, last := 0, ""
	for last != fmt.Sprint(calls+1) {
		last = <-got
		n++
	}
	if n > 300 {
		t.Errorf("it was given %d values", n)
	}
}

// The commits of a closed client's calls are followed no more. A watch goes on.
func TestWatch_GoesOnWhenItsClientIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		other, _ := w.client("other", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := looped(c.Space("s").Watch(ctx, "n"))
		<-got
		c.Close()
		if _, err := other.Call(ctx, add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		if v := <-got; v != "1" {
			t.Errorf("then it is %s", v)
		}
	})
}

// A watch that may begin with the last value that the client has received asks the servers for nothing, if the client has just called the
// space; otherwise it reads the document.
func TestWatch_FromLastSeenAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		var b *asking
		c, _ := w.client("c", func(in *membus.Bus) port.Bus { b = &asking{Bus: in}; return b })
		ctx, cancel := context.WithCancel(t.Context())
		s := c.Space("s")
		first := looped(s.WatchStored(ctx, "n", settle.FromLastSeen()))
		if v := <-first; v != "absent" {
			t.Errorf("without a call it begins with %s", v)
		}
		if _, err := c.Call(ctx, add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		if v := <-first; v != "1" {
			t.Errorf("it continues with %s", v)
		}
		asked := func() int64 { return b.heads.Load() + b.parts.Load() + b.reads.Load() }
		before := asked()
		got := looped(s.WatchStored(ctx, "n", settle.FromLastSeen()))
		if v := <-got; v != "1" {
			t.Errorf("after a call the second one begins with %s", v)
		}
		if n := asked() - before; n != 0 {
			t.Errorf("it has asked the servers %d times", n)
		}
		if _, err := c.Call(ctx, add("s", "e2")); err != nil {
			t.Fatal(err)
		}
		if v := <-got; v != "2" {
			t.Errorf("and continues with %s", v)
		}
		cancel()
		<-first
		<-got
	})
}

// A commit of a later version may have changed the document: what was received before it is no value to begin with.
func TestWatch_BeginsWithNothingThatACommitOfALaterVersionMayHaveChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crash := w.worker("w1")
		c, _ := w.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := c.Call(ctx, add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		crash()
		w.Forge("s", `{"v":9,"changes":"n"}`)
		synctest.Wait()
		if v := <-looped(c.Space("s").WatchStored(ctx, "n")); !strings.Contains(v, "upgrade") {
			t.Errorf("it begins with %s", v)
		}
	})
}

// A commit that this version cannot read may be the one that a call waits for: it ends, and not only when the log is searched once more.
func TestCall_ACommitOfALaterVersionEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		ended := make(chan error, 1)
		go func() { // ends with the call
			_, err := c.Call(t.Context(), add("s", "e1"))
			ended <- err
		}()
		synctest.Wait()
		began := time.Now()
		w.Forge("s", `{"v":9}`)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "upgrade") || time.Since(began) >= port.StaleLeader {
			t.Errorf("the call ends with %v, after %s of the bubble", err, time.Since(began))
		}
	})
}
