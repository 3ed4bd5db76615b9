package settle_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a worldtest.World with clients and workers as users start them.
type world struct{ *worldtest.World }

func newWorld(t *testing.T) *world { return newWorldOf(t, membus.Config{Partitions: 2}) }

func newWorldOf(t *testing.T, cfg membus.Config) *world { return &world{worldtest.New(t, cfg)} }

// client connects a client. wrap, which may be nil, stands between it and its bus.
func (w *world) client(id string, wrap func(*membus.Bus) port.Bus) (*settle.Client, *membus.Bus) {
	w.Helper()
	b := w.Server.Connect(id)
	w.Cleanup(b.Close)
	var over port.Bus = b
	if wrap != nil {
		over = wrap(b)
	}
	c, err := settle.NewClient(over, settle.ClientConfig{ID: id})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(c.Close)
	return c, b
}

// worker starts a worker that runs counter everywhere, and returns how to end it.
func (w *world) worker(id string) (crash func()) {
	w.Helper()
	return w.start(id, counter(), nil)
}

// start starts a worker that runs p everywhere. hook, which may be nil, decides about its requests.
func (w *world) start(id string, p *settle.Program, hook membus.Hook) (crash func()) {
	w.Helper()
	b := w.Connect(id)
	b.Inject(hook)
	started, err := settle.StartWorker(w.Context(), b, settle.WorkerConfig{ID: id, Programs: settle.Always(p)})
	if err != nil {
		w.Fatal(err)
	}
	crash = func() { started.Kill(); b.Kill() }
	w.Cleanup(crash)
	return crash
}

func counter() *settle.Program {
	return settle.NewProgram("counter").
		Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			n, _ := tx.Get("n").AsInt()
			tx.Set("n", n+1)
			return tx.Get("n"), nil
		}).
		Handle("fail", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.Value{}, errors.New("as it should")
		}).
		Compute("double", func(v *settle.View) (settle.Value, error) {
			n, _ := v.Get("n").AsInt()
			return settle.ValueOf(2 * n)
		}).
		Compute("mood", func(v *settle.View) (settle.Value, error) {
			if n, _ := v.Get("n").AsInt(); n == 2 {
				return settle.Value{}, errors.New("two is too many")
			}
			return settle.ValueOf("fine")
		})
}

func add(space, id string) settle.Outgoing {
	return settle.Outgoing{Space: space, Stream: "add", ID: settle.ID(id)}
}

func TestQ20_Call_ReturnsTheReceiptOfItsEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		for i := range 3 {
			rc, err := c.Call(t.Context(), add("s", fmt.Sprint("e", i)))
			if err != nil || rc.Outcome != model.Handled || rc.Result.String() != fmt.Sprint(i+1) {
				t.Errorf("receipt %+v, %v", rc, err)
			}
		}
		rc, err := c.Call(t.Context(), settle.Outgoing{Space: "s", Stream: "fail", ID: settle.ID("f")})
		if err != nil || rc.Outcome != model.Failed || rc.Error != "as it should" {
			t.Errorf("a handler that failed: %+v, %v; how the event ended is not an error of the call", rc, err)
		}
		rc, err = c.Call(t.Context(), settle.Outgoing{Space: "s", Stream: "nosuch", ID: settle.ID("f")})
		if err != nil || rc.Outcome != model.Refused {
			t.Errorf("a stream without handler: %+v, %v", rc, err)
		}
	})
}

func TestQ11_Call_OfAnIDThatWasUsedReturnsTheFirstReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crash := w.worker("w1")
		c, _ := w.client("c", nil)
		call := func(who string, c *settle.Client) {
			t.Helper()
			rc, err := c.Call(t.Context(), add("s", "once"))
			if err != nil || rc.Result.String() != "1" {
				t.Errorf("%s: %+v, %v", who, rc, err)
			}
		}
		call("the first time", c)
		call("again", c)
		other, _ := w.client("other", nil)
		call("another client", other)
		for i := range 600 { // so that the receipt lies pages back
			if _, err := c.Call(t.Context(), add("s", fmt.Sprint("e", i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		call("long after", c)
		crash()
		call("without a worker", c)
		w.worker("w2")
		late, _ := w.client("late", nil)
		call("a new client, a new owner", late)
		if n, _, err := late.Space("s").Get(t.Context(), "n"); err != nil || n.String() != "601" {
			t.Errorf("n is %v, %v", n, err)
		}
	})
}

func TestCall_ManyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		d, _ := w.client("d", nil)
		const n = 60
		var mu sync.Mutex
		results := map[string]map[string]bool{} // event: results
		var all sync.WaitGroup
		for i := range 3 * n {
			all.Go(func() {
				id := fmt.Sprint("e", i%n) // each three times, from two clients
				client := []*settle.Client{c, d}[i%2]
				rc, err := client.Call(t.Context(), add([]string{"s", "t"}[i%n%2], id))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if results[id] == nil {
					results[id] = map[string]bool{}
				}
				results[id][rc.Result.String()] = true
			})
		}
		all.Wait()
		for id, got := range results {
			if len(got) != 1 {
				t.Errorf("event %s has the results %v", id, got)
			}
		}
		if len(results) != n {
			t.Errorf("%d of %d events have a receipt", len(results), n)
		}
	})
}

func TestCall_WhenItsContextEndsItSaysWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, b := w.client("c", nil) // without a worker
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Call(ctx, add("s", "e1"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is stored, and will be handled when a worker runs its space") {
			t.Errorf("no worker handles it: %v", err)
		}
		b.Inject(worldtest.Only("send", membus.Delay))
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Call(ctx, add("s", "e2"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may or may not have been stored") {
			t.Errorf("the send has no answer: %v", err)
		}
		b.Inject(func(membus.Op) membus.Fate { return membus.Delay })
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = c.Call(ctx, add("t", "e3")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing has an answer: %v", err)
		}
	})
}

// A client follows the log of a space that it calls for a while, and then no more,
// whether its calls were answered, or given up, or made at the same time.
func TestCall_WhatItFollowsEndsWhenNobodyWaitsAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crash := w.worker("w1")
		c, _ := w.client("c", nil)
		call := func(space, id string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = c.Call(ctx, add(space, id))
		}
		call("s", "e1")
		time.Sleep(9 * time.Second)
		call("s", "e2")
		time.Sleep(9 * time.Second)
		if n := c.Followers(); n != 1 {
			t.Errorf("%d spaces are followed, want the one that was called a moment ago", n)
		}
		time.Sleep(2 * time.Second)
		if n := c.Followers(); n != 0 {
			t.Errorf("%d spaces are followed, want none", n)
		}
		crash() // from here on calls are given up
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() { call(fmt.Sprint("s", i%20), fmt.Sprint("x", i)) })
		}
		all.Wait()
		if n := c.Followers(); n != 20 {
			t.Errorf("%d spaces are followed, want 20", n)
		}
		time.Sleep(11 * time.Second)
		if n := c.Followers(); n != 0 {
			t.Errorf("%d spaces are followed, want none: calls that were given up are still waited for", n)
		}
	})
}

func TestClose_EndsTheCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		done := make(chan error, 1)
		go func() { // ends with the client
			_, err := c.Call(t.Context(), add("s", "e1"))
			done <- err
		}()
		time.Sleep(time.Second)
		c.Close()
		synctest.Wait()
		select {
		case err := <-done:
			if !errors.Is(err, model.ErrStopped) || !strings.Contains(err.Error(), "is stored") {
				t.Errorf("the call ended with %v", err)
			}
		default:
			t.Error("the call still waits")
		}
		c.Close()
	})
}

func TestClose_NoCallIsMadeAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		c.Close()
		for _, space := range []string{"s", "t"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := c.Call(ctx, add(space, "e2")); !errors.Is(err, model.ErrStopped) {
				t.Errorf("a call after the end: %v", err)
			}
		}
		if n := c.Followers(); n != 0 {
			t.Errorf("%d spaces are followed", n)
		}
	})
}

// counting counts the spaces that were followed.
type counting struct {
	*membus.Bus
	follows atomic.Int64
}

func (b *counting) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	b.follows.Add(1)
	return b.Bus.FollowSpace(ctx, space, after, deliver)
}

// When Close has returned, nothing of the client is running or will be.
func TestClose_ACallThatIsJustBeginningFollowsNothingAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var bus *counting
		c, b := w.client("c", func(b *membus.Bus) port.Bus { bus = &counting{Bus: b}; return bus })
		b.Inject(worldtest.Only("head", membus.Delay))
		done := make(chan error, 1)
		go func() { // ends with the client
			_, err := c.Call(t.Context(), add("s", "e1"))
			done <- err
		}()
		synctest.Wait()
		c.Close()
		b.Release()
		if err := <-done; !errors.Is(err, model.ErrStopped) {
			t.Errorf("the call ended with %v", err)
		}
		synctest.Wait()
		if n := bus.follows.Load(); n != 0 {
			t.Errorf("%d spaces were followed after the end", n)
		}
	})
}

func TestCall_EndsWhenItsBusIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, b := w.client("c", nil)
		done := make(chan error, 1)
		go func() { // ends with the bus
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := c.Call(ctx, add("s", "e1"))
			done <- err
		}()
		time.Sleep(time.Second)
		b.Close()
		if err := <-done; !errors.Is(err, model.ErrStopped) {
			t.Errorf("the call ended with %v", err)
		}
	})
}

// losing loses the subscription to a space from time to time.
type losing struct {
	*membus.Bus
	lost atomic.Int64
}

func (b *losing) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	ctx, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
	defer cancel()
	_ = b.Bus.FollowSpace(ctx, space, after, deliver)
	b.lost.Add(1)
	return errors.New("the stream is gone")
}

func TestCall_MissesNoReceiptWhenTheLogIsLostForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var bus *losing
		c, _ := w.client("c", func(b *membus.Bus) port.Bus { bus = &losing{Bus: b}; return bus })
		done := make(chan error, 1)
		go func() { // ends when there is a worker
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := c.Call(ctx, add("s", "e1"))
			done <- err
		}()
		time.Sleep(5 * time.Second)
		w.worker("w1")
		if err := <-done; err != nil {
			t.Error(err)
		}
		if bus.lost.Load() == 0 {
			t.Error("the log was never lost: this proves nothing")
		}
	})
}

// lagging reads logs from a replica that is behind.
type lagging struct {
	*membus.Bus
	reads atomic.Int64
}

func (b *lagging) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if b.reads.Add(1) < 5 {
		limit = 1
		if after > 0 {
			return nil, nil
		}
	}
	return b.Bus.ReadLog(ctx, space, after, limit)
}

// The receipt is in the log already, so it will not come again: it must be found.
func TestCall_FindsAReceiptThoughTheReplicaThatAnswersIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		d, _ := w.client("d", func(b *membus.Bus) port.Bus { return &lagging{Bus: b} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if rc, err := d.Call(ctx, add("s", "e1")); err != nil || rc.Result.String() != "1" {
			t.Errorf("%+v, %v", rc, err)
		}
	})
}

// A client that has a receipt reads the effects of the event, from any replica.
func TestGet_ReadsOwnWritesThoughTheReplicaThatAnswersIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", func(b *membus.Bus) port.Bus { return &lagging{Bus: b} })
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		if v, _, err := c.Space("s").Get(t.Context(), "n"); err != nil || v.String() != "1" {
			t.Errorf("n is %v, %v; want 1", v, err)
		}
	})
}

func TestFindReceipt_ThereIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		if rc, err := c.Space("empty").FindReceipt(t.Context(), "add", settle.ID("e1")); rc != nil || err != nil {
			t.Errorf("%v, %v", rc, err)
		}
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		if rc, err := c.Space("s").FindReceipt(t.Context(), "add", settle.ID("e2")); rc != nil || err != nil {
			t.Errorf("%v, %v", rc, err)
		}
		if rc, err := c.Space("s").FindReceipt(t.Context(), "fail", settle.ID("e1")); rc != nil || err != nil {
			t.Errorf("%v, %v", rc, err)
		}
	})
}

// Every request that names what cannot be named is refused with the name and the
// reason, before anything is sent.
func TestClient_NamesThatAreNoneAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, b := w.client("c", nil)
		var asked atomic.Int64
		b.Inject(func(membus.Op) membus.Fate { asked.Add(1); return membus.Deliver })
		long := strings.Repeat("x", 200)
		for _, bad := range []string{"", "a.b", "a b", "*", ">", "a\r\nX: y", "ü", long} {
			requests := map[string]error{}
			_, requests["send, space"] = c.Send(t.Context(), add(bad, "e1"))
			_, requests["send, id"] = c.Send(t.Context(), add("s", bad))
			_, requests["send, stream"] = c.Send(t.Context(), settle.Outgoing{Space: "s", Stream: bad, ID: settle.ID("e1")})
			_, requests["call, space"] = c.Call(t.Context(), add(bad, "e1"))
			_, requests["call, id"] = c.Call(t.Context(), add("s", bad))
			_, _, requests["get, space"] = c.Space(bad).Get(t.Context(), "n")
			_, _, requests["get, document"] = c.Space("s").Get(t.Context(), bad)
			requests["watch, space"] = ended(c.Space(bad).Watch(t.Context(), "n"))
			requests["watch, document"] = ended(c.Space("s").Watch(t.Context(), bad))
			requests["sender"] = c.Sender().Send(t.Context(), add(bad, "e1"), nil)
			for what, err := range requests {
				var name *model.NameError
				if !errors.As(err, &name) || name.Name != bad {
					t.Errorf("%s %.20q: %v", what, bad, err)
				}
			}
			if _, err := settle.NewClient(b, settle.ClientConfig{ID: bad}); err == nil {
				t.Errorf("a client %.20q", bad)
			}
		}
		if _, err := c.Send(t.Context(), add("s", "a:1:2:0")); err == nil {
			t.Error("an id of the kind that Settle mints was accepted from outside")
		}
		if _, err := c.Send(t.Context(), settle.Outgoing{Space: "s", Stream: model.Undelivered, ID: settle.ID("e1")}); err == nil {
			t.Error("a failure notice was accepted from outside")
		}
		if _, err := c.Send(t.Context(), settle.Outgoing{Space: "s", Stream: "add", ID: settle.ID("e"), Payload: make(chan int)}); err == nil {
			t.Error("a payload that has no JSON was accepted")
		}
		if n := asked.Load(); n != 0 {
			t.Errorf("%d requests were made", n)
		}
	})
}

func TestWatch_DeliversTheValueAndThenEveryChangeAcrossTakeovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		v := w.watch(c, "s", "double")
		synctest.Wait()
		crash := w.worker("w1")
		for i := range 12 {
			if i%4 == 3 {
				crash()
				crash = w.worker(fmt.Sprint("w", i))
			}
			if _, err := c.Call(t.Context(), add("s", fmt.Sprint("e", i))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		v.check(t, "24")
		if v.first() != "absent" {
			t.Errorf("the first value was %s: a document that is not there is absent", v.first())
		}
		if got, rev, err := c.Space("s").Get(t.Context(), "double"); err != nil || got.String() != "24" || rev == 0 {
			t.Errorf("get: %v at %d, %v", got, rev, err)
		}
		before := len(v.values)
		v.end()
		if _, err := c.Call(t.Context(), add("s", "last")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(v.values) != before {
			t.Error("delivered after the end")
		}
	})
}

// One client may watch one document twice; when one of the two ends, the other is
// still demand.
func TestWatch_TwiceTheSameDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		time.Sleep(10 * time.Second)
		one, two := w.watch(c, "s", "double"), w.watch(c, "s", "double")
		time.Sleep(100 * time.Millisecond)
		one.end()
		time.Sleep(100 * time.Millisecond)
		if _, err := c.Call(t.Context(), add("s", "e1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		two.check(t, "2")
	})
}

// watched is what a watch has delivered.
type watched struct {
	mu        sync.Mutex
	values    []string
	revisions []uint64
	end       func()
}

// ended returns the error of a watch that ends at once.
func ended(watch iter.Seq2[settle.Update[settle.Value], error]) (err error) {
	for _, failed := range watch {
		err = failed
	}
	return err
}

// watch watches a document until the end of the test, or until end is called.
func (w *world) watch(c *settle.Client, space, doc string) *watched {
	v := &watched{}
	v.end = w.follow(func(ctx context.Context) error {
		for u, err := range c.Space(space).Watch(ctx, doc) {
			if err != nil {
				return err
			}
			v.mu.Lock()
			v.values, v.revisions = append(v.values, u.Value.String()), append(v.revisions, u.Revision)
			v.mu.Unlock()
		}
		return ctx.Err()
	})
	return v
}

// follow runs a watch until the end of the test, or until end is called.
func (w *world) follow(watch func(ctx context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { // ends with ctx
		if err := watch(ctx); !errors.Is(err, context.Canceled) {
			w.Errorf("watch: %v", err)
		}
	})
	end = func() { cancel(); running.Wait() }
	w.Cleanup(end)
	return end
}

func (v *watched) first() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.values[0]
}

// check looks at the last value, and whether revisions only grew.
func (v *watched) check(t *testing.T, last string) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if got := v.values[len(v.values)-1]; got != last {
		t.Errorf("the watcher saw %v, want %s in the end", v.values, last)
	}
	for i := 1; i < len(v.revisions); i++ {
		if v.revisions[i] <= v.revisions[i-1] {
			t.Errorf("revisions %v do not grow", v.revisions)
		}
	}
}

// What does not exist is an error, unless the name has a value in its place.
func TestFetch_OfWhatDoesNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("w1")
		c, _ := w.client("c", nil)
		s := c.Space("s")
		if n, err := settle.NewCell[int]("nothing").Fetch(t.Context(), s); !errors.Is(err, settle.ErrNotFound) || n != 0 {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := settle.NewCell[int]("nothing").Or(7).Fetch(t.Context(), s); err != nil || n != 7 {
			t.Errorf("with Or: %d, %v", n, err)
		}
		if all, err := settle.NewRows[int]("nothing").Fetch(t.Context(), s); err != nil || len(all) != 0 {
			t.Errorf("rows: %v, %v", all, err)
		}
		if _, err := settle.NewRows[int]("nothing").At("key").Fetch(t.Context(), s); !errors.Is(err, settle.ErrNotFound) {
			t.Errorf("a row: %v", err)
		}
	})
}
