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

// query asks a process for a document.
func (p *process) query(space, doc string) model.DocumentState {
	p.w.Helper()
	a, err := p.readCurrent(p.w.Context(), space, doc, time.Minute)
	if err != nil {
		p.w.Fatalf("query %s of %s: %v", doc, space, err)
	}
	return a
}

// readCurrent reads a document by way of a process, brought up to date.
func (p *process) readCurrent(ctx context.Context, space, doc string, wait time.Duration) (model.DocumentState, error) {
	states, err := p.Read(ctx, model.ReadRequest{Documents: []model.DocumentRef{{Space: space, Document: doc}}, Current: true, Wait: wait})
	if err != nil {
		return model.DocumentState{}, err
	}
	return states[0], nil
}

// ran is how often a node has run in a process.
func (p *process) ran(space, node string) uint64 {
	return p.Runs()[worker.RunKey{Space: space, Node: node}]
}

func TestRead_ADerivedDocumentThatNobodyObservesIsComputedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		w.adds("s", 3)
		if n := p.ran("s", "double"); n != 0 {
			t.Fatalf("it ran %d times before anybody asked", n)
		}
		a := p.query("s", "double")
		if a.Value.String() != "6" || a.Stale != "" || a.Revision != w.Server.Head("s") {
			t.Errorf("answer %+v, the head is %d", a, w.Server.Head("s"))
		}
		w.Send("s", "add", "e4")
		w.EventuallyEnded("s", 4)
		time.Sleep(time.Minute)
		if n := p.ran("s", "double"); n != 1 {
			t.Errorf("it ran %d times, and one was asked for", n)
		}
		if a := p.query("s", "double"); a.Value.String() != "8" {
			t.Errorf("then %+v", a)
		}
		before := p.ran("s", "double")
		if a := p.query("s", "double"); a.Value.String() != "8" || p.ran("s", "double") != before {
			t.Errorf("again %+v, and it ran %d times", a, p.ran("s", "double")-before)
		}
	})
}

// An answer is of the log: what is made and not confirmed is waited for, by however many
// ask at a time.
func TestRead_AnswersAreInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
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
			t.Errorf("the workers do not agree: %s, %s", a.Owner(name), b.Owner(name))
		}
		owner.query(name, "double")
		if _, err := other.readCurrent(t.Context(), name, "double", time.Minute); !errors.Is(err, model.ErrElsewhere) {
			t.Errorf("the other one: %v", err)
		}
		owner.Shutdown()
		if _, err := owner.readCurrent(t.Context(), name, "double", time.Minute); !errors.Is(err, model.ErrElsewhere) {
			t.Errorf("after the end: %v", err)
		}
		if at := owner.Owner(name); at != other.ID() {
			t.Errorf("who has stopped says that the owner is %q", at)
		}
	})
}

func TestRead_ASpaceWithoutAProgramSaysSo(t *testing.T) {
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

// What another runtime has put into the log is in the answer, whether or not the owner has
// heard of it.
func TestRead_TheAnswerKnowsWhatOthersHaveCommitted(t *testing.T) {
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
	w.Append(&model.Commit{Space: name, Runtime: "other", Epoch: 1 << 40, Attempt: 1, Txs: []model.Tx{tx}})
}

// slow is a program whose computation is debounced, and one of which nothing comes.
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

func TestRead_WhatIsHeldBackIsAnsweredAsItIsWhenTheTimeIsOver(t *testing.T) {
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

// A document is deleted while nobody asks, and long afterwards, when its marker is purged, the
// space has another owner.
func TestRead_ADeletionThatIsForgottenIsNotPassedOver(t *testing.T) {
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
			t.Errorf("what is computed from a document that was deleted is %+v", a)
		}
		if n := second.ran("s", "copy"); n != 1 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// The loop drops a read that is given up at once, and not with its next input: that would still run what
// the read has observed.
func TestRead_ThatIsGivenUpIsDroppedBeforeTheNextInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1"}, nil)
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		p.Bus.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "append" {
				return membus.Delay
			}
			return membus.Deliver
		})
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
			t.Errorf("it ran %d times for the read, and %d times for nobody", before, n-before)
		}
	})
}

// Nobody waits for the answer any more: what it would have been made of is not computed.
func TestRead_ThatIsGivenUpObservesNothing(t *testing.T) {
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
			t.Errorf("it ran %d times for nobody", n-before)
		}
	})
}

// A worker that is about to take the space over does not answer for it, however long that takes:
// another may be ahead of it.
func TestRead_IsAnsweredByNobodyBeforeTheTakeoverIsInTheLog(t *testing.T) {
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
			t.Error("nothing is appended, and this proves nothing")
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
