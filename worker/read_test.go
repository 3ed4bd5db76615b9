package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// query reads a document through a process, and fails the test on errors.
func (p *process) query(space, doc string) model.DocumentState {
	p.w.Helper()
	a, err := p.readCurrent(p.w.Context(), space, doc, time.Minute)
	if err != nil {
		p.w.Fatalf("query %s of %s: %v", doc, space, err)
	}
	return a
}

// readCurrent reads a document through a process, brought up to date.
func (p *process) readCurrent(ctx context.Context, space, doc string, wait time.Duration) (model.DocumentState, error) {
	states, err := p.Read(ctx, model.ReadRequest{Documents: []model.DocumentRef{{Space: space, Document: doc}}, Current: true, Wait: wait})
	if err != nil {
		return model.DocumentState{}, err
	}
	return states[0], nil
}

// ran returns how often a node has run in a process.
func (p *process) ran(space, node string) uint64 {
	return p.Runs()[worker.RunKey{Space: space, Node: node}]
}

func TestRead_AnUnobservedDocumentIsComputedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		w.adds("s", 3)
		if n := p.ran("s", "double"); n != 0 {
			t.Fatalf("double ran %d times before the query", n)
		}
		a := p.query("s", "double")
		if a.Value.String() != "6" || a.Stale != "" || a.Revision != w.Server.Head("s") {
			t.Errorf("answer %+v, the head is %d", a, w.Server.Head("s"))
		}
		w.Send("s", "add", "e4")
		w.EventuallyEnded("s", 4)
		time.Sleep(time.Minute)
		if n := p.ran("s", "double"); n != 1 {
			t.Errorf("double ran %d times for one query", n)
		}
		if a := p.query("s", "double"); a.Value.String() != "8" {
			t.Errorf("then %+v", a)
		}
		before := p.ran("s", "double")
		if a := p.query("s", "double"); a.Value.String() != "8" || p.ran("s", "double") != before {
			t.Errorf("the second query: %+v; double ran %d times", a, p.ran("s", "double")-before)
		}
	})
}

// An answer reflects the log: it waits for unconfirmed commits, with any number of concurrent queries.
func TestRead_AnswersAreInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		w.adds("s", 1) // a worker that has just started does not serve the space yet
		answers := make(chan model.DocumentState, 500)
		for i := range 500 {
			if i%5 == 0 {
				w.Send("s", "add", "e"+string(rune('a'+i/5%26))+string(rune('a'+i/130)))
			}
			go func() { // ends with the answer
				a, err := p.readCurrent(t.Context(), "s", "double", time.Minute)
				if err != nil {
					t.Error(err)
				}
				if a.Revision > w.Server.Head("s") {
					t.Errorf("the revision %d is not in the log", a.Revision)
				}
				answers <- a
			}()
		}
		for range 500 {
			if a := <-answers; a.Stale != "" {
				t.Errorf("%+v", a)
			}
		}
	})
}

func TestRead_AWorkerAnswersForItsOwnSpacesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		a, b := w.worker("a"), w.worker("b")
		time.Sleep(5 * time.Second)
		name := worldtest.SpacesIn(0, 2, 1)[0]
		owner, other := a, b
		if a.Owner(name) == "b" {
			owner, other = b, a
		}
		if b.Owner(name) != owner.ID() {
			t.Errorf("the workers disagree about the owner: %s, %s", a.Owner(name), b.Owner(name))
		}
		owner.query(name, "double")
		if _, err := other.readCurrent(t.Context(), name, "double", time.Minute); !errors.Is(err, model.ErrElsewhere) {
			t.Errorf("the other worker: %v", err)
		}
		owner.Shutdown()
		if _, err := owner.readCurrent(t.Context(), name, "double", time.Minute); !errors.Is(err, model.ErrElsewhere) {
			t.Errorf("after the end: %v", err)
		}
		if at := owner.Owner(name); at != other.ID() {
			t.Errorf("a stopped worker reports the owner %q", at)
		}
	})
}

func TestRead_ASpaceWithoutAProgramIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: func(string) (*space.Program, error) { return nil, nil }}, nil)
		if _, err := p.readCurrent(t.Context(), "s", "d", time.Minute); !errors.Is(err, model.ErrNoProgram) {
			t.Errorf("%v", err)
		}
		var name *model.NameError
		if _, err := p.readCurrent(t.Context(), "s", "d.e", time.Minute); !errors.As(err, &name) {
			t.Errorf("%v", err)
		}
	})
}

// An answer includes commits of other runtimes, even those that the owner has not received yet.
func TestRead_IncludesCommitsOfOtherRuntimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		w.adds("s", 1)
		w.commit("s", "n", model.Int(20))
		if a := p.query("s", "n"); a.Value.String() != "20" {
			t.Errorf("answer %+v", a)
		}
		if a := p.query("s", "double"); a.Value.String() != "40" {
			t.Errorf("answer %+v", a)
		}
	})
}

// commit appends a commit of another runtime that writes a document.
func (w *world) commit(name, doc string, v model.Value) {
	w.Helper()
	tx := model.Tx{N: 1, By: "test", Writes: []model.Write{{Doc: doc, Value: v}}}
	w.Append(&model.Commit{Space: name, Runtime: "other", Epoch: w.Server.Head(name), Attempt: 1, Txs: []model.Tx{tx}})
}

// gatedBook is a program with a debounced computation, and one that fails.
func gatedBook(t *testing.T) *space.Program {
	t.Helper()
	p := book(t)
	for _, spec := range []space.NodeSpec{
		{ID: "late", Kind: space.Computation, Output: "late", Gate: space.GateSpec{Throttle: time.Hour}, Run: func(tx *space.Tx) (model.Value, error) {
			return tx.Get("n"), nil
		}},
		{ID: "broken", Kind: space.Computation, Output: "broken", Run: func(tx *space.Tx) (model.Value, error) {
			return tx.Get("n"), errors.New("as it should")
		}},
	} {
		if err := p.Add(spec); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestRead_AHeldBackDocumentIsAnsweredStaleAtTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(gatedBook(t))}, nil)
		w.adds("s", 1)
		if a := p.query("s", "late"); a.Value.String() != "1" || a.Stale != "" {
			t.Errorf("first %+v", a)
		}
		w.Send("s", "add", "e2")
		w.EventuallyEnded("s", 2)
		began := time.Now()
		a, err := p.readCurrent(t.Context(), "s", "late", 3*time.Second)
		if err != nil || a.Value.String() != "1" || a.Stale != "late is held back (throttle)" {
			t.Errorf("then %+v, %v", a, err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		if a := p.query("s", "broken"); a.Stale != "broken could not be computed: as it should" {
			t.Errorf("what fails: %+v", a)
		}
	})
}

// A document is deleted while no query is made. Long afterwards, when its marker is purged, the space has
// another owner.
func TestRead_IncludesAForgottenDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := book(t)
		err := p.Add(space.NodeSpec{ID: "copy", Kind: space.Computation, Output: "copy", Run: func(tx *space.Tx) (model.Value, error) {
			return tx.Get("d"), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		cfg := frugal("w1")
		cfg.Programs = worldtest.Always(p)
		first := w.process(cfg, nil)
		w.makeDocument()
		if a := first.query("s", "copy"); a.Value.String() != "1" {
			t.Fatalf("before: %+v", a)
		}
		w.Pass(time.Second)
		w.deleteDocument()
		first.Shutdown()
		cfg.ID = "w2"
		second := w.process(cfg, nil)
		if a := second.query("s", "copy"); !a.Value.IsAbsent() || a.Stale != "" {
			t.Errorf("computed from a deleted document: %+v", a)
		}
		if n := second.ran("s", "copy"); n != 1 {
			t.Errorf("double ran %d times", n)
		}
	})
}

// The loop drops a read whose caller gives up at once, not with its next input: until then it would run what
// the read had observed.
func TestRead_AnAbandonedReadIsDroppedBeforeTheNextInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1"}, nil)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		p.Bus.Inject(worldtest.Only("append", membus.Delay))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.readCurrent(ctx, "s", "double", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the read ends with %v", err)
		}
		synctest.Wait()
		before := p.ran("s", "double")
		w.Send("s", "add", "e2")
		synctest.Wait()
		p.Bus.Inject(nil)
		p.Bus.Release()
		w.EventuallyEnded("s", 2)
		if n := p.ran("s", "double"); n != before || n == 0 {
			t.Errorf("double ran %d times for the read, and %d times without an observer", before, n-before)
		}
	})
}

// A read whose caller has given up computes nothing any more.
func TestRead_AnAbandonedReadObservesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(gatedBook(t))}, nil)
		w.adds("s", 1)
		p.query("s", "late")
		w.Send("s", "add", "e2")
		w.EventuallyEnded("s", 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.readCurrent(ctx, "s", "late", 24*time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the query ends with %v", err)
		}
		before := p.ran("s", "late")
		w.Pass(2 * time.Hour) // it would not be held back any more
		if n := p.ran("s", "late"); n != before {
			t.Errorf("double ran %d times without an observer", n-before)
		}
	})
}

// A worker that is taking a space over does not answer for it before the takeover is in the log, however long
// that takes: another worker may come first.
func TestRead_IsNotAnsweredBeforeTheTakeoverIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.worker("w1")
		w.adds("s", 1)
		first.Shutdown()
		p := w.worker("w2")
		held := &only{label: "append", fate: membus.Delay}
		held.on.Store(true)
		p.Bus.Inject(held.hook)
		answers := make(chan model.DocumentState, 1)
		go func() { // ends with the answer
			a, err := p.readCurrent(t.Context(), "s", "double", time.Second)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
		w.Pass(5 * time.Second)
		if held.hits.Load() == 0 {
			t.Error("no takeover was appended, which the test needs")
		}
		select {
		case a := <-answers:
			t.Fatalf("answered with %+v", a)
		default:
		}
		held.on.Store(false)
		p.Bus.Release()
		if a := <-answers; a.Value.String() != "2" && a.Stale == "" {
			t.Errorf("answered with %+v", a)
		}
	})
}
