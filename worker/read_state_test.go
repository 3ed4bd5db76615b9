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

// readStates returns the states of documents, through a process.
func (p *process) readStates(ctx context.Context, refs []model.DocumentRef) []model.DocumentState {
	p.w.Helper()
	states, err := p.Read(ctx, model.ReadRequest{Documents: refs})
	if err != nil {
		p.w.Error(err)
	}
	return states
}

// states returns the states of documents of space s, through a process.
func (p *process) states(docs ...string) []model.DocumentState {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	places := make([]model.DocumentRef, len(docs))
	for i, doc := range docs {
		places[i] = model.DocumentRef{Space: "s", Document: doc}
	}
	return p.readStates(ctx, places)
}

func (p *process) wantState(doc string, want model.DocumentState) {
	p.w.Helper()
	if got := p.states(doc)[0]; got.Revision != want.Revision || got.Stale != want.Stale || got.Passing != want.Passing {
		p.w.Errorf("%s: %+v, want %+v", doc, got, want)
	}
}

func TestRead_ReportsTheStateOfObservedDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(gatedBook(t))}, nil)
		w.adds("s", 1)
		for _, doc := range []string{"n", "double", "late", "broken"} {
			w.observe("s", doc, "x", time.Hour)
		}
		w.Send("s", "add", "e2")
		w.EventuallyEnded("s", 2)
		w.Eventually("double is computed", func() bool { return w.Doc("s", "double") == "4" })
		p.wantState("double", model.DocumentState{Revision: w.Read("s", "double").Seq})
		p.wantState("broken", model.DocumentState{Stale: "broken could not be computed: as it should"})
		if g := p.states("n", "late", "spare"); g[0].Stale != "" || g[0].Revision == 0 ||
			g[1].Stale != "late is held back (throttle)" || !g[1].Passing || g[2].Stale != "it is not observed" || !g[2].Passing {
			t.Errorf("%+v", g)
		}
	})
}

// A change that is not yet in the log is invisible to readers.
func TestRead_UncommittedChangesAreInvisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		w.adds("s", 1)
		w.observe("s", "double", "x", time.Hour)
		w.Eventually("double is computed", func() bool { return w.Doc("s", "double") == "2" })
		before := p.states("double")[0]
		p.Bus.Inject(worldtest.Only("append", membus.Delay))
		w.Send("s", "add", "e2")
		synctest.Wait()
		if g := p.states("double")[0]; !g.Passing || g.Stale == "" {
			t.Errorf("%+v", g)
		}
		p.Bus.Inject(nil)
		p.Bus.Release()
		if g := p.states("double")[0]; g.Stale != "" || g.Revision <= before.Revision {
			t.Errorf("then %+v, before that %+v", g, before)
		}
	})
}

func TestRead_OfASpaceThatIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: func(string) (*space.Program, error) { return nil, nil }}, nil)
		p.wantState("d", model.DocumentState{Stale: model.ErrNoProgram.Error()})
		p.Shutdown()
		if g := p.states("d")[0]; !g.Passing || g.Stale == "" {
			t.Errorf("after the end: %+v", g)
		}
	})
}

// A failure to get the program of a space differs from a space without one.
func TestRead_OfASpaceWhoseProgramIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.process(worker.Config{ID: "w1", Programs: func(string) (*space.Program, error) { return nil, errors.New("the disk is full") }}, nil)
		p.wantState("d", model.DocumentState{Stale: "the program of the space could not be had: the disk is full", Passing: true})
	})
}

// A watch loads a space; a status query does not.
func TestRead_AStatusQueryLoadsNoSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.worker("w1")
		w.adds("r", 1)
		if g := p.states("n")[0]; !g.Passing || g.Stale == "" || p.Held().Hosts > 1 {
			t.Errorf("state %+v; the worker holds %+v", g, p.Held())
		}
		w.observe("s", "n", "x", time.Hour)
		w.Pass(time.Second)
		if g := p.states("n")[0]; g.Stale != "" {
			t.Errorf("%+v", g)
		}
	})
}

// A busy space does not keep others from answering.
func TestRead_ABusySpaceDelaysNoOtherAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		done := make(chan struct{})
		p := book(t)
		if err := p.Handle("stick", func(*space.Tx, *model.Event) (model.Value, error) { <-done; return model.Value{}, nil }); err != nil {
			t.Fatal(err)
		}
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(p)}, nil)
		w.adds("s", 1)
		w.adds("r", 1)
		w.observe("s", "double", "x", time.Hour)
		w.observe("r", "double", "x", time.Hour)
		w.Send("s", "stick", "e2")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g := w1.readStates(ctx, []model.DocumentRef{{Space: "s", Document: "double"}, {Space: "r", Document: "double"}, {Space: "s", Document: "n"}})
		if !g[0].Passing || g[1].Stale != "" || !g[2].Passing {
			t.Errorf("%+v", g)
		}
		for range 20 { // keeps nothing of requests that have ended
			w1.states("double")
		}
		if held := w1.Held(); held.Calls+held.Reads > 5 {
			t.Errorf("it holds %+v", held)
		}
		close(done)
		w1.wantState("double", model.DocumentState{Revision: w1.query("s", "double").Revision})
	})
}

// A read waits for commits in flight. If one is refused because another runtime has done the work already,
// the read starts again.
func TestRead_RestartsWhenACommitItRestsOnIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1, bus := w.slowWorker()
		w.observe("s", "n", "x", time.Hour)
		bus.overtake(w)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		g := w1.readStates(ctx, []model.DocumentRef{{Space: "s", Document: "n"}})[0]
		if g.Stale != "" || ctx.Err() != nil {
			t.Errorf("%+v, %v", g, ctx.Err())
		}
		w.Eventually("the append is refused", func() bool { return w1.Counts().Refused > 0 })
	})
}
