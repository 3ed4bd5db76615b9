package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// app is an application with its own attachment and connection.
type app struct {
	*worker.Attachment
	bus *membus.Bus
	w   *world
}

// attach attaches an application to space s, with the program book.
func (w *world) attach(id string, change ...func(*worker.AttachConfig)) *app {
	w.Helper()
	cfg := worker.AttachConfig{ID: id, Space: "s", Program: book(w.T), Logger: w.Logger()}
	for _, f := range change {
		f(&cfg)
	}
	b := w.Server.Connect(id)
	a, err := worker.Attach(w.Context(), b, cfg)
	if err != nil {
		w.Fatal(err)
	}
	one := &app{Attachment: a, bus: b, w: w}
	w.Cleanup(one.close)
	return one
}

func (a *app) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := a.Close(ctx); err != nil {
		a.w.Errorf("close: %v", err)
	}
	a.bus.Close()
}

func withEvents(c *worker.AttachConfig) { c.Events = true }

// add increments n in a transaction of the application.
func (a *app) add() {
	a.w.Helper()
	if err := a.Transact(a.w.Context(), "app", increment); err != nil {
		a.w.Errorf("transact: %v", err)
	}
}

func increment(tx *space.Tx) error {
	n, _ := tx.Get("n").AsInt()
	tx.Set("n", n+1)
	return nil
}

func (a *app) get(doc string) string {
	a.w.Helper()
	v, err := a.Get(a.w.Context(), doc)
	if err != nil {
		a.w.Fatalf("get %s: %v", doc, err)
	}
	return v.String()
}

func TestAttach_ATransactionIsInTheLogWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.attach("app")
		a.add()
		if got := w.Doc("s", "n"); got != "1" {
			t.Errorf("the log has %s", got)
		}
		if got := a.get("n"); got != "1" {
			t.Errorf("the attachment has %s", got)
		}
		err := a.Transact(t.Context(), "app", func(tx *space.Tx) error {
			tx.Set("n", 100)
			return errors.New("sold out")
		})
		if err == nil || !strings.Contains(err.Error(), "sold out") {
			t.Errorf("error %v", err)
		}
		a.add()
		if got := w.Doc("s", "n"); got != "2" {
			t.Errorf("the log has %s", got)
		}
	})
}

// An owner and two applications change one space concurrently. Every change is in the result, and all three
// have the same state.
func TestAttach_AnOwnerAndTwoApplicationsChangeOneSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.worker("w1")
		a, b := w.attach("a"), w.attach("b")
		// The first commit of a is delayed so long that b's certainly precedes it.
		first := true // only one goroutine calls the hook
		a.bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label != "append" || !first {
				return membus.Deliver
			}
			first = false
			time.AfterFunc(20*time.Millisecond, a.bus.Release)
			return membus.Delay
		})
		var all sync.WaitGroup
		for _, one := range []*app{a, b} {
			for range 4 {
				all.Go(func() {
					for range 25 {
						one.add()
					}
				})
			}
		}
		all.Go(func() {
			for i := range 50 {
				w.Send("s", "add", fmt.Sprintf("e%d", i+1))
				time.Sleep(time.Millisecond)
			}
		})
		all.Wait()
		w.EventuallyEnded("s", 50)
		w.wantHandled("s", worldtest.Numbered(50)...)
		if got := w.Doc("s", "n"); got != "250" {
			t.Errorf("n is %s after 250 increments", got)
		}
		for _, one := range []*app{a, b} {
			w.Eventually("the applications see the final value", func() bool { return one.get("n") == "250" })
		}
		if got := w.Takeovers("s"); len(got) != 1 {
			t.Errorf("takeovers by %v", got)
		}
		if a.Counts().Refused+b.Counts().Refused == 0 {
			t.Error("no runtime had a conflict, which the test needs")
		}
	})
}

// The space is loaded and its owner follows the log while an application is attached: the owner recomputes
// observed documents when the application writes.
func TestAttach_TheOwnersLiveComputationsSeeWhatAnApplicationWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		w.Pass(3 * time.Second) // the roll call is over
		watched := w.watch("s", "double")
		a := w.attach("app")
		for i := range 5 {
			a.add()
			want := fmt.Sprint(2 * (i + 1))
			w.Eventually("the watch shows "+want, func() bool { return watched.last() == want })
			w.Pass(model.LeaseTTL)
		}
		if n := a.Runs()["double"]; n != 0 {
			t.Errorf("double ran %d times in the application without an observer", n)
		}
		if n := w1.Runs()[worker.RunKey{Space: "s", Node: "double"}]; n < 5 {
			t.Errorf("double ran %d times at the owner", n)
		}
		w.Eventually("the application sees the computed value", func() bool { return a.get("double") == "10" })
	})
}

func TestAttach_WhatAnApplicationObservesIsComputedThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		a := w.attach("app")
		if err := a.Observe(t.Context(), "double"); err != nil {
			t.Fatal(err)
		}
		w.Send("s", "add", "e1")
		w.Eventually("the document is computed", func() bool { return a.get("double") == "2" })
		if n := w1.Runs()[worker.RunKey{Space: "s", Node: "double"}]; n != 0 {
			t.Errorf("double ran %d times at the owner without an observer", n)
		}
		if err := a.Unobserve(t.Context(), "double"); err != nil {
			t.Fatal(err)
		}
		runs := a.Runs()["double"]
		w.Send("s", "add", "e2")
		w.Eventually("the owner's value is known", func() bool { return a.get("n") == "2" })
		if n := a.Runs()["double"]; n != runs {
			t.Errorf("double ran %d times after the last observer had left", n-runs)
		}
		if err := a.Observe(t.Context(), "no good"); err == nil {
			t.Error("an invalid name is accepted")
		}
	})
}

// The owner handles follow-ups that an application sends, once, even if the space was not loaded.
func TestAttach_TheOwnerHandlesWhatAnApplicationSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.worker("w1")
		a := w.attach("app")
		err := a.Transact(t.Context(), "app", func(tx *space.Tx) error { tx.Send("s", "chain", 2); return nil })
		if err != nil {
			t.Fatal(err)
		}
		w.EventuallyEnded("s", 3)
		w.Pass(10 * time.Second)
		if got := len(w.Receipts("s")); got != 3 {
			t.Errorf("%d receipts, want 3", got)
		}
		if c := a.Counts(); c.Receipts != 0 {
			t.Errorf("the application handled %d events", c.Receipts)
		}
	})
}

func TestAttach_WithEventsItRacesTheOwnerAndEachTakesEffectOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		a, b := w.attach("a", withEvents), w.attach("b", withEvents)
		for i := range 200 {
			w.Send("s", "add", fmt.Sprintf("e%d", i+1))
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		w.EventuallyEnded("s", 200)
		w.Pass(3 * time.Second)
		w.wantHandled("s", worldtest.Numbered(200)...)
		if got := w.Doc("s", "n"); got != "200" {
			t.Errorf("n is %s after 200 events", got)
		}
		counts := []uint64{w1.Counts().Receipts, a.Counts().Receipts, b.Counts().Receipts}
		if counts[0]+counts[1]+counts[2] != 200 {
			t.Errorf("receipts per runtime: %d", counts)
		}
		refused := w1.Counts().Refused + a.Counts().Refused + b.Counts().Refused
		if counts[0] == 200 || refused == 0 {
			t.Errorf("receipts per runtime %d, %d refusals: the test needs a race", counts, refused)
		}
	})
}

// No worker is needed at all.
func TestAttach_WithEventsItHandlesThemWithoutAnyOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.sendMany("s", "add", 3)
		a := w.attach("app", withEvents)
		w.EventuallyEnded("s", 3)
		w.Send("s", "chain", "c", "1")
		w.EventuallyEnded("s", 5)
		a.add()
		if got := w.Doc("s", "n"); got != "6" {
			t.Errorf("n is %s", got)
		}
	})
}

// A worker dies, the next one takes the space over, applications join and leave: attached runtimes are never
// deposed, and every acknowledged transaction is in the log.
func TestAttach_OwnersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.worker("w1")
		a := w.attach("a")
		added := 0
		add := func(n int) {
			for range n {
				a.add()
				added++
			}
		}
		add(5)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		w1.Crash()
		add(5)
		w2 := w.worker("w2")
		w.attach("b", withEvents).close()
		w.Send("s", "add", "e2")
		w.EventuallyEnded("s", 2)
		add(5)
		w.Eventually("the next worker owns the space", func() bool { return len(w.Takeovers("s")) == 2 })
		w2.Shutdown()
		w.worker("w3")
		w.Send("s", "add", "e3")
		w.EventuallyEnded("s", 3)
		add(5)
		w.wantHandled("s", "e1", "e2", "e3")
		if got, want := w.Doc("s", "n"), fmt.Sprint(added+3); got != want {
			t.Errorf("n is %s, want %s", got, want)
		}
		if got := len(w.Takeovers("s")); got != 3 {
			t.Errorf("%d takeovers, want 3", got)
		}
	})
}

// Another runtime always commits first. After the conflict window, the transaction is given up with an error
// that is also reported. It leaves nothing in the log, and counts as an attempt at nothing.
func TestAttach_ATransactionWithLastingConflictsEndsInAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reported atomic.Int64
		a := w.attach("a", func(c *worker.AttachConfig) {
			c.ConflictWindow = 5 * time.Second
			c.OnError = func(i space.ErrorInfo) {
				var never *space.ConvergenceError
				if errors.As(i.Err, &never) {
					reported.Add(1)
				}
			}
		})
		b := w.attach("b")
		a.add()
		tries := 0
		a.bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "append" {
				tries++
				b.add() // just before
			}
			return membus.Deliver
		})
		began := time.Now()
		err := a.Transact(t.Context(), "hopeful", func(tx *space.Tx) error { tx.Set("mine", 1); return nil })
		took := time.Since(began)
		a.bus.Inject(nil)
		var never *space.ConvergenceError
		if !errors.As(err, &never) || never.By != "hopeful" || never.Conflicts != tries {
			t.Errorf("after %d tries: %v", tries, err)
		}
		if took < 5*time.Second || took > 7*time.Second || tries < 8 || tries > 20 {
			t.Errorf("gave up after %s and %d attempts", took, tries)
		}
		if reported.Load() != 1 {
			t.Errorf("reported %d times", reported.Load())
		}
		w.Pass(10 * time.Second)
		if got := w.Doc("s", "mine"); got != "absent" {
			t.Errorf("the transaction is in the log: %s", got)
		}
		a.add() // the attachment still works
	})
}

// A transaction whose caller has gone is not retried.
func TestAttach_ATransactionWithoutACallerIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a, b := w.attach("a"), w.attach("b")
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		a.bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "append" {
				cancel()
				time.Sleep(time.Second)
				b.add()
			}
			return membus.Deliver
		})
		err := a.Transact(ctx, "impatient", func(tx *space.Tx) error {
			calls.Add(1)
			tx.Set("mine", 1)
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		w.Pass(10 * time.Second)
		if got := w.Doc("s", "mine"); got != "absent" || calls.Load() != 1 {
			t.Errorf("mine is %s after %d runs", got, calls.Load())
		}
		a.bus.Inject(nil)
		a.add() // the attachment still works
	})
}

// More concurrent transactions than fit into one commit: the rest goes into the next.
func TestAttach_TransactionsWithoutRoomGoIntoTheNextCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.attach("app", func(c *worker.AttachConfig) { c.MaxCommitBytes = 40 << 10 })
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				err := a.Transact(t.Context(), "app", func(tx *space.Tx) error {
					tx.Set(fmt.Sprintf("d%d", i), strings.Repeat("x", 10<<10))
					return increment(tx)
				})
				if err != nil {
					t.Errorf("transaction %d: %v", i, err)
				}
			})
		}
		all.Wait()
		if got := w.Doc("s", "n"); got != "20" {
			t.Errorf("n is %s", got)
		}
	})
}

// The acknowledgement of a commit is lost, or the commit itself, or the commit arrives twice.
func TestAttach_ACommitInDoubtCountsOnce(t *testing.T) {
	for _, fate := range []membus.Fate{membus.DropAck, membus.DropRequest, membus.Duplicate} {
		t.Run(fate.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				a, b := w.attach("a"), w.attach("b")
				a.bus.Inject(func(op membus.Op) membus.Fate {
					if op.Label == "append" && op.Try == 1 {
						return fate
					}
					return membus.Deliver
				})
				var all sync.WaitGroup
				for _, one := range []*app{a, b, a} {
					all.Go(func() {
						for range 10 {
							one.add()
						}
					})
				}
				all.Wait()
				if got := w.Doc("s", "n"); got != "30" {
					t.Errorf("n is %s after 30 increments", got)
				}
			})
		})
	}
}

func TestAttach_CloseFinishesTransactionsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.attach("app")
		a.bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "append" {
				time.Sleep(time.Second)
			}
			return membus.Deliver
		})
		first := make(chan error, 1)
		go func() { first <- a.Transact(context.Background(), "app", increment) }() // ends with the test
		w.Pass(100 * time.Millisecond)
		a.close()
		if err := <-first; err != nil {
			t.Errorf("the transaction in flight: %v", err)
		}
		if err := a.Transact(t.Context(), "app", increment); !errors.Is(err, model.ErrStopped) {
			t.Errorf("transact after the end: %v", err)
		}
		if _, err := a.Get(t.Context(), "n"); !errors.Is(err, model.ErrStopped) {
			t.Errorf("get after the end: %v", err)
		}
		if got := w.Doc("s", "n"); got != "1" {
			t.Errorf("n is %s", got)
		}
	})
}

func TestAttach_RefusesInvalidConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		for _, cfg := range []worker.AttachConfig{
			{ID: "app", Space: "no good"},
			{ID: "no good", Space: "s"},
			{ID: "app", Space: "s", Limits: ledger.Limits{MaxGroup: -1}},
			{ID: "app", Space: "s", Events: true}, // without a program
		} {
			if a, err := worker.Attach(t.Context(), w.Client, cfg); err == nil {
				t.Errorf("%+v was accepted", cfg)
				a.Kill()
			}
		}
	})
}

// quarrel is a program whose effect writes its name into the document ball whenever another name is there.
func quarrel(t *testing.T, name string) *space.Program {
	t.Helper()
	p := space.NewProgram("quarrel")
	err := p.Add(space.NodeSpec{
		ID: "mine", Kind: space.Effect, Writes: []space.Address{{Doc: "ball"}},
		Run: func(tx *space.Tx) (model.Value, error) {
			if by, _ := tx.Get("ball").AsString(); by != name {
				tx.Set("ball", name)
			}
			return model.Value{}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Two runtimes whose effects answer each other would write as fast as the log accepts, forever. The echo
// breaker slows both down, more with each answer (docs/adr/0068), and each reports that once.
func TestAttach_RuntimesThatAnswerEachOtherAreSlowedDownAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		told := map[string]int{}
		var apps []*app
		for _, id := range []string{"a", "b"} {
			apps = append(apps, w.attach(id, func(c *worker.AttachConfig) {
				c.Program = quarrel(t, id)
				c.OnError = func(i space.ErrorInfo) {
					var echo *space.EchoError
					if !errors.As(i.Err, &echo) || echo.Node != "mine" || echo.Doc != "ball" {
						t.Errorf("%s reported %v", id, i.Err)
					}
					mu.Lock()
					defer mu.Unlock()
					told[id]++
				}
			}))
		}
		w.Pass(10 * time.Second)
		mu.Lock()
		if told["a"] == 0 || told["b"] == 0 || told["a"]+told["b"] > 2 {
			t.Errorf("reports in the first seconds: %v, want one each", told)
		}
		mu.Unlock()
		before := len(w.Commits("s"))
		if before < 12 {
			t.Errorf("%d commits: the runtimes did not answer each other", before)
		}
		w.Pass(time.Minute)
		n := len(w.Commits("s")) - before
		if n < 2 || n > 20 {
			t.Errorf("%d commits in a minute, want a few: the pauses double up to 30 s", n)
		}
		mu.Lock()
		if told["a"]+told["b"] != 2 {
			t.Errorf("reports after a minute: %v, want one each", told)
		}
		mu.Unlock()
		apps[1].close()
		before = len(w.Commits("s"))
		w.Pass(time.Minute)
		if n := len(w.Commits("s")) - before; n > 1 {
			t.Errorf("one runtime has left, and the other still makes %d commits", n)
		}
		apps[0].add() // the remaining effect runs for it
	})
}

// A commit is refused while other transactions wait for room: they are committed, and so is the refused one.
func TestAttach_TransactionsBesideARefusedCommitAreCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.worker("w1")
		a := w.attach("app", func(c *worker.AttachConfig) { c.MaxCommitBytes = 40 << 10 })
		held := make(chan struct{})
		first := true // only one goroutine calls the hook
		a.bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label != "append" || !first {
				return membus.Deliver
			}
			first = false
			close(held)
			return membus.Delay
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				err := a.Transact(ctx, "app", func(tx *space.Tx) error {
					tx.Set(fmt.Sprintf("d%d", i), strings.Repeat("x", 10<<10))
					return increment(tx)
				})
				if err != nil {
					t.Errorf("transaction %d: %v", i, err)
				}
			})
		}
		<-held
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		a.bus.Release()
		all.Wait()
		if got := w.Doc("s", "n"); got != "21" {
			t.Errorf("n is %s", got)
		}
		if a.Counts().Refused == 0 {
			t.Error("no commit was refused, which the test needs")
		}
	})
}

// goesBack is a bus whose store goes back when the test asks for it.
type goesBack struct {
	*membus.Bus
	epoch atomic.Uint64
}

func (b *goesBack) Epoch() uint64 { return b.epoch.Load() }

// An attachment that appends nothing must detect by itself that the store has gone back.
func TestAttach_AReaderDetectsThatTheStoreHasGoneBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Server.Connect("app")
		bus := &goesBack{Bus: b}
		a, err := worker.Attach(t.Context(), bus, worker.AttachConfig{ID: "app", Space: "s", Program: book(t), Logger: w.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		one := &app{Attachment: a, bus: b, w: w}
		t.Cleanup(one.close)
		w.Pass(time.Minute)
		bus.epoch.Add(1)
		w.Pass(model.LeaseTTL)
		select {
		case <-a.Done():
		default:
			t.Error("the attachment continues with data that is lost")
		}
	})
}

// laggingHead is a store with a replica that is one commit behind until its head was read a few times.
type laggingHead struct {
	*membus.Bus
	left atomic.Int64
}

func (b *laggingHead) Head(ctx context.Context, space string) (uint64, error) {
	head, err := b.Bus.Head(ctx, space)
	if b.left.Add(-1) >= 0 {
		head--
	}
	return head, err
}

func (b *laggingHead) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if b.left.Load() > 0 {
		return nil, nil
	}
	return b.Bus.ReadLog(ctx, space, after, limit)
}

// A replica that is behind reports a log end before what the saved state reflects. That is not a loss: the
// attachment asks again.
func TestAttach_ALaggingReplicaIsNotALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Append(&model.Commit{Space: "s", Runtime: "other", Takeover: true})
		seq := w.Append(&model.Commit{Space: "s", Runtime: "other", Epoch: 1, Txs: []model.Tx{{
			N: 1, By: "test", Writes: []model.Write{{Doc: "n", Value: model.Int(10)}},
		}}})
		if err := w.Client.SaveState(t.Context(), "s", []model.StateDoc{{Doc: "n", Seq: seq, Data: []byte("10")}}, nil); err != nil {
			t.Fatal(err)
		}
		b := &laggingHead{Bus: w.Server.Connect("app")}
		b.left.Store(3)
		a, err := worker.Attach(t.Context(), b, worker.AttachConfig{ID: "app", Space: "s", Program: book(t), Logger: w.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		one := &app{Attachment: a, bus: b.Bus, w: w}
		t.Cleanup(one.close)
		if b.left.Load() > 0 {
			t.Errorf("the head was read %d times, want at least 3", 3-b.left.Load())
		}
		w.Pass(time.Second)
		if got := w.Doc("s", "n"); got != "10" {
			t.Errorf("n is %s, want 10", got)
		}
	})
}
