package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/raced"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker"
)

// hasStored counts what a worker stores of spaces: commits and saved items.
func hasStored(b *membus.Bus) (writes *counter) {
	writes = &counter{}
	b.Inject(func(op membus.Op) membus.Fate {
		if op.Label == "append" || op.Label == "save" {
			writes.next()
		}
		return membus.Deliver
	})
	return writes
}

// Three thousand reads and a thousand watches of spaces that do not exist are answered, and store nothing.
func TestUnborn_ReadsAndWatchesStoreNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		b := w.Connect("w1")
		writes := hasStored(b)
		p := w.start(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second, Checkpoint: 50 * time.Millisecond}}, b, nil)
		for i := range raced.Fewer(3000, 15) {
			if a := p.query(fmt.Sprint("r", i), "double"); a.Value.String() != "0" || a.Revision != 0 || a.Stale != "" {
				t.Fatalf("read %d: %s at revision %d, stale %q; want 0, computed from nothing", i, a.Value, a.Revision, a.Stale)
			}
		}
		var all []*watched
		for i := range raced.Fewer(1000, 5) {
			all = append(all, w.watch(fmt.Sprint("w", i), "double"))
		}
		w.Pass(time.Minute)
		for _, v := range all {
			v.end()
		}
		w.Pass(time.Minute)
		if n := writes.next() - 1; n != 0 {
			t.Errorf("%d commits and items are stored", n)
		}
		if n := p.Stats().Awake; n != 0 {
			t.Errorf("%d spaces stay in memory", n)
		}
	})
}

// A watch of a space that does not exist sees its first event, and the space is like any other from then on.
func TestUnborn_TheFirstEventCreatesTheSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		v := w.watch("s", "double")
		w.Eventually("it is in memory", func() bool { return p.Stats().Awake == 1 })
		state, err := p.Read(t.Context(), model.ReadRequest{Documents: []model.DocumentRef{{Space: "s", Document: "double"}}})
		if err != nil || state[0].Stale == "" || state[0].Passing {
			t.Errorf("the status of the watch is %+v, %v; want that the space does not exist", state, err)
		}
		w.Send("s", "add", "e1")
		w.Eventually("it sees the first event", func() bool { return v.last() == "2" })
		w.wantHandled("s", "e1")
		w.Eventually("it is saved", func() bool { return w.Server.LoadState("s").Mark.Seq == w.Server.Head("s") })
		w.Send("s", "add", "e2")
		w.Eventually("it sees the second", func() bool { return v.last() == "4" })
		if a := p.query("s", "double"); a.Value.String() != "4" || a.Revision == 0 {
			t.Errorf("a read gives %s at %d", a.Value, a.Revision)
		}
	})
}

// A commit of another runtime creates the space as well: an attachment, and one that a read finds at the head.
func TestUnborn_ACommitOfAnotherRuntimeCreatesTheSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		for _, name := range []string{"s", "r"} {
			w.watch(name, "double")
		}
		w.Eventually("they are in memory", func() bool { return p.Stats().Awake == 2 })
		w.commit("s", "n", model.Int(3))
		var a model.DocumentState
		w.Eventually("it is read", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var err error
			a, err = p.readCurrent(ctx, "s", "n", time.Second)
			return err == nil && a.Revision > 0
		})
		if a.Value.String() != "3" {
			t.Errorf("it is read as %s", a.Value)
		}
		attached, err := worker.Attach(t.Context(), w.Connect("app"), worker.AttachConfig{ID: "app", Space: "r", Program: book(t)})
		if err != nil {
			t.Fatal(err)
		}
		set := func(tx *space.Tx) error { tx.Set("n", model.Int(4)); return nil }
		if err := attached.Transact(t.Context(), "app", set); err != nil {
			t.Fatal(err)
		}
		w.Eventually("its owner derives from it", func() bool { return w.Doc("r", "double") == "8" })
		if err := attached.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// slowState answers the loading of looked-up spaces after a while.
type slowState struct {
	port.Bus
	order chan string
}

func (b slowState) LoadState(ctx context.Context, name string) (model.SpaceState, error) {
	b.order <- name
	if name[0] == 'w' {
		_ = pause.For(ctx, time.Second)
	}
	return b.Bus.LoadState(ctx, name)
}

// An event is handled while thousands of watches wait for their spaces to be loaded; a space that waits to be looked at
// goes ahead of the others when its event arrives.
func TestUnborn_EventsGoBeforeLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		order := make(chan string, 10_000)
		w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus { return slowState{b, order} })
		for i := range 3000 {
			w.observe(fmt.Sprintf("w%04d", i), "double", "watcher", time.Hour)
		}
		synctest.Wait()
		before := len(order)
		for _, name := range []string{"s", "w2999"} {
			w.Send(name, "add", "e1")
			w.Pass(50 * time.Millisecond) // no lookup has ended
		}
		var loaded []string
		for len(order) > 0 {
			loaded = append(loaded, <-order)
		}
		if want := []string{"s", "w2999"}; !slices.Equal(loaded[before:], want) {
			t.Errorf("beside the %d watches, %v are loaded, want %v", before, loaded[before:], want)
		}
		if before > 16 {
			t.Errorf("%d watches are loaded at a time", before)
		}
		w.Eventually("both events are handled", func() bool { return w.Server.Head("s") > 1 && w.Server.Head("w2999") > 1 })
	})
}

// An event that no rule allows creates no space, nor a receipt or a dead letter, and holds up no other; one that is allowed creates it. In a space that
// exists, it is refused with a receipt.
func TestUnborn_AnEventThatNoRuleAllowsCreatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		book, err := access.Open(t.Context(), w.Client, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer book.Close()
		if _, err := access.Change(t.Context(), w.Client, "alice", func(r *access.Rule) { r.Send = []string{"*/add"} }); err != nil {
			t.Fatal(err)
		}
		var logged strings.Builder
		w1 := w.process(worker.Config{ID: "w1", Access: book, Options: worker.Options{Lookups: 1}, Logger: slog.New(slog.NewTextHandler(&logged, nil))}, nil) // some wait to be loaded
		for i := range 20 {
			w.Send("s", "add", fmt.Sprintf("e%d", i))
			w.Send(fmt.Sprintf("t%d", i), "add", "bob=e1")
			w.Send("s", "other", fmt.Sprintf("alice=e%d", i))
			w.Pass(100 * time.Millisecond)
		}
		none := func(when string) {
			t.Helper()
			for i := range 20 {
				if head := w.Server.Head(fmt.Sprintf("t%d", i)); head != 0 {
					t.Errorf("%s, space t%d has a log up to %d", when, i, head)
				}
			}
			if head := w.Server.Head("s"); head != 0 {
				t.Errorf("%s, space s has a log up to %d", when, head)
			}
		}
		none("at first")
		w.Pass(30 * time.Second)
		none("after a while")
		w.Eventually("nothing holds the lane back", func() bool { return w1.Worker.Held().Backlog == 0 && w1.Worker.Held().Asleep == 0 })
		f := w1.Worker.Figures()
		if f.DisallowedCount != 60 || len(f.Disallowed) != 20 {
			t.Errorf("the worker reports %d such events, in %d entries", f.DisallowedCount, len(f.Disallowed))
		}
		reports := func(f status.Figures, want status.Disallowed) {
			t.Helper()
			at := slices.IndexFunc(f.Disallowed, func(d status.Disallowed) bool {
				return d.Principal == want.Principal && d.Space == want.Space && d.Stream == want.Stream
			})
			if at < 0 {
				t.Errorf("the worker does not report %+v: %+v", want, f.Disallowed)
				return
			}
			got := f.Disallowed[at]
			if got.At.IsZero() || !strings.Contains(got.Reason, "may not send events of stream "+want.Stream+" to space "+want.Space) {
				t.Errorf("the worker reports %+v", got)
			}
			if got.At, got.Reason = want.At, want.Reason; got != want {
				t.Errorf("the worker reports %+v, not %+v", got, want)
			}
		}
		reports(f, status.Disallowed{Space: "s", Stream: "add", Count: 20, Event: "e19"})
		reports(f, status.Disallowed{Principal: "alice", Space: "s", Stream: "other", Count: 20, Event: "alice=e19"})
		reports(f, status.Disallowed{Principal: "bob", Space: "t19", Stream: "add", Count: 1, Event: "bob=e1"})
		if log := logged.String(); !strings.Contains(log, `principal=bob space=t0 stream=add event="bob=e1" reason="principal bob may not send`) {
			t.Errorf("the log does not say it:\n%s", log)
		} else if n := strings.Count(log, "passed over"); n > 2*3 {
			t.Errorf("%d lines say it:\n%s", n, log)
		}

		w1.Worker.Kill()
		w.Send("s", "add", "while-none-serves")
		w2 := w.process(worker.Config{ID: "w2", Access: book}, nil)
		w.Pass(30 * time.Second)
		none("with another worker")
		if f := w2.Worker.Figures(); len(f.Disallowed) == 0 || f.Disallowed[0].Event != "while-none-serves" {
			t.Errorf("the next worker reports %+v", f.Disallowed)
		}

		w.Send("s", "add", "alice=e1")
		w.Eventually("an event that is allowed is handled", func() bool { return w.Server.Head("s") > 0 && outcomeOf(w, "s", "alice=e1") == model.Handled })
		w.Send("s", "add", "late")
		w.Eventually("in a space that exists, an event is refused with a receipt", func() bool { return outcomeOf(w, "s", "late") == model.Refused })
		if got := outcomeOf(w, "t1", "bob=e1"); got != "" {
			t.Errorf("bob's event is %s", got)
		}
	})
}

// outcomeOf returns the outcome of an event as the log has it, "" if it has none.
func outcomeOf(w *world, space, event string) model.Outcome {
	for _, r := range w.Receipts(space) {
		if r.Event == event {
			return r.Outcome
		}
	}
	return ""
}

// So many spaces per second are loaded for reads and watches alone, and their turn comes without another request. Events
// do not count.
func TestUnborn_LookupsHaveAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		order := make(chan string, 10_000)
		opts := worker.Options{Lookups: 50, Idle: -1}
		w.process(worker.Config{ID: "w1", Options: opts}, func(b *membus.Bus) port.Bus { return slowState{b, order} })
		synctest.Wait() // it serves its partition
		began := time.Now()
		for i := range 300 {
			w.observe(fmt.Sprintf("x%04d", i), "double", "watcher", time.Hour)
			w.Send(fmt.Sprintf("e%04d", i), "add", "e1")
		}
		looked := func() (n int) {
			for range len(order) {
				name := <-order
				if order <- name; name[0] == 'x' {
					n++
				}
			}
			return n
		}
		for range 8 {
			w.Pass(500 * time.Millisecond)
			if n, most := looked(), 16+int(50*time.Since(began).Seconds()); n > most || n < most-2 {
				t.Errorf("%d spaces are loaded to be watched %v after the first, not %d", n, time.Since(began), most)
			}
		}
		w.Eventually("all are loaded", func() bool { return looked() == 300 })
		w.Eventually("the events are handled", func() bool { return w.Server.Head("e0299") > 1 })
	})
}

// A program may say that reads create its spaces.
func TestUnborn_AProgramMayHaveReadsCreateItsSpaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		p.MadeByReads = []string{"*"}
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		v := w.watch("s", "double")
		w.Eventually("its document is derived", func() bool { return v.last() == "0" && w.Server.Head("s") > 0 })
	})
}

// A program names the spaces that reads create, one by one or by a pattern. Others, such as a misspelt one, are not stored.
func TestUnborn_AProgramNamesTheSpacesThatReadsCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		p.MadeByReads = []string{"hall", "shelf-*"}
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p), Options: worker.Options{Idle: time.Second}}, nil)
		var wrong []*watched
		for _, name := range []string{"hal", "halls", "shelf", "Hall"} {
			wrong = append(wrong, w.watch(name, "double"))
		}
		for _, name := range []string{"hall", "shelf-1"} {
			v := w.watch(name, "double")
			w.Eventually(name+" is derived", func() bool { return v.last() == "0" && w.Server.Head(name) > 0 })
		}
		w.Pass(time.Minute)
		for _, name := range []string{"hal", "halls", "shelf", "Hall"} {
			state, err := w1.Read(t.Context(), model.ReadRequest{Documents: []model.DocumentRef{{Space: name, Document: "double"}}})
			if err != nil || w.Server.Head(name) != 0 || !strings.Contains(state[0].Stale, "made_by_reads") {
				t.Errorf("space %s has %d commits, and its document is %+v (%v)", name, w.Server.Head(name), state, err)
			}
		}
		for _, v := range wrong {
			v.end()
		}
		w.Eventually("they leave memory", func() bool { return w1.Stats().Awake == 2 })
	})
}

// A space that does not exist and is watched begins to exist as soon as its program says that reads create it.
func TestUnborn_ANewVersionMayHaveReadsCreateWhatIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var d registry
		d.set(book(t), nil)
		p := w.process(worker.Config{ID: "w1", Programs: d.of}, nil)
		v, other := w.watch("hall", "double"), w.watch("hal", "double")
		w.Eventually("they are in memory", func() bool { return p.Stats().Awake == 2 })
		w.Pass(time.Second)
		next := book(t)
		next.MadeByReads = []string{"hall"}
		d.deploy(next, p)
		w.Eventually("it is derived", func() bool { return v.last() == "0" && w.Server.Head("hall") > 0 })
		if w.Server.Head("hal") != 0 || other.last() == "0" {
			t.Errorf("the other one has %d commits", w.Server.Head("hal"))
		}
	})
}
