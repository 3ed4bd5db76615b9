package worker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker"
)

// dark is the program book with a computation "light" that fails while "n" is odd, or 4, and one of space "far" that reads it of space "s".
func dark(t *testing.T) *space.Program {
	p := book(t)
	err := errors.Join(
		p.Add(space.NodeSpec{ID: "light", Kind: space.Computation, Output: "light", Run: func(tx *space.Tx) (model.Value, error) {
			n, _ := tx.Get("n").AsInt()
			if n%2 == 1 || n == 4 {
				return model.Value{}, fmt.Errorf("no light at %d: %s", n, strings.Repeat("x", 400))
			}
			return model.Int(n), nil
		}}),
		p.Add(space.NodeSpec{ID: "seen", Kind: space.Computation, Output: "seen", Run: func(tx *space.Tx) (model.Value, error) {
			return tx.GetFrom("s", "light"), nil
		}}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) darkWorker(id string) *process {
	return w.process(worker.Config{ID: id, Programs: worldtest.Always(dark(w.T)), Options: worker.Options{Idle: time.Second}}, nil)
}

// failingAre waits until a worker reports these spaces with computations that fail, as text.
func failingAre(w *world, p *process, want string) {
	w.Helper()
	text := func() (text string) {
		f := p.Figures()
		for i := range f.FailingNodes {
			s := &f.FailingNodes[i]
			text += fmt.Sprintf("%s: %d, read by %v; ", s.Space, s.Count, s.Readers)
		}
		return text + fmt.Sprintf("%d nodes of %d spaces", f.FailingNodeCount, f.FailingSpaceCount)
	}
	w.Eventually(want, func() bool { return text() == want })
}

// A computation that fails is in the figures of its worker while something needs it, with its error and the spaces that read what follows from it.
func TestFailingNodes_WhileSomethingNeedsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.darkWorker("w1")
		const none = "0 nodes of 0 spaces"
		w.Send("s", "add", "e1")
		w.Send("far", "add", "e1")
		w.EventuallyEnded("s", 1)
		failingAre(w, p, none)
		near := w.watch("s", "light")
		failingAre(w, p, "s: 1, read by []; 1 nodes of 1 spaces")
		far := w.watch("far", "seen")
		failingAre(w, p, "s: 1, read by [far]; 1 nodes of 1 spaces")
		since := p.Figures().FailingNodes[0].Since
		w.Send("s", "add", "e2")
		failingAre(w, p, none)
		w.Pass(time.Minute)
		w.Send("s", "add", "e3")
		failingAre(w, p, "s: 1, read by [far]; 1 nodes of 1 spaces")
		f := p.Figures().FailingNodes[0]
		if len(f.Docs) != 1 || f.Docs[0] != "light" {
			t.Errorf("what follows is %v", f.Docs)
		}
		if n := f.Nodes; len(n) != 1 || n[0].Node != "light" || !strings.HasPrefix(n[0].Error, "no light at 3: xxx") || len(n[0].Error) != 300 || !f.Since.After(since) {
			t.Errorf("%+v", f)
		}
		w.Pass(time.Minute)
		w.Send("s", "add", "e4")
		w.Eventually("the error is another one", func() bool {
			g := p.Figures().FailingNodes
			return len(g) == 1 && strings.HasPrefix(g[0].Nodes[0].Error, "no light at 4") && g[0].Since.Equal(f.Since)
		})
		near.end()
		w.Pass(time.Minute)
		failingAre(w, p, "s: 1, read by [far]; 1 nodes of 1 spaces")
		far.end()
		failingAre(w, p, none)
	})
}

// The worker that takes over the space reports what fails there, for as long as it is needed.
func TestFailingNodes_SurviveATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.darkWorker("w1")
		w.Send("s", "add", "e1")
		v := w.watch("s", "light")
		const one = "s: 1, read by []; 1 nodes of 1 spaces"
		failingAre(w, p, one)
		p.Crash()
		next := w.darkWorker("w2")
		failingAre(w, next, one)
		v.end()
		failingAre(w, next, "0 nodes of 0 spaces")
	})
}

// Of many spaces, those that have failed for longest are named; all are counted.
func TestFailingNodes_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.darkWorker("w1")
		for i := range 21 {
			of := fmt.Sprintf("s%02d", i)
			w.Send(of, "add", "e1")
			w.watch(of, "light")
			w.Eventually("it is reported", func() bool { return p.Figures().FailingSpaceCount == i+1 })
			w.Pass(time.Second)
		}
		names := func(list []status.FailingNodes) (text string) {
			for i := range list {
				text += list[i].Space + " "
			}
			return text
		}
		if f := p.Figures(); len(f.FailingNodes) != 20 || f.FailingNodes[19].Space != "s19" || f.FailingNodeCount != 21 {
			t.Errorf("%d nodes, of %s", f.FailingNodeCount, names(f.FailingNodes))
		}
	})
}

// A space that another worker takes from a living one is reported by that alone.
func TestFailingNodes_GoWithTheirPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		p := w.darkWorker("w1")
		for i := range 2 {
			of := worldtest.SpacesIn(i, 2, 1)[0]
			w.Send(of, "add", "e1")
			w.watch(of, "light")
		}
		w.Eventually("the first worker has both", func() bool { return p.Figures().FailingSpaceCount == 2 })
		next := w.darkWorker("w2")
		w.Eventually("each worker has one", func() bool { return p.Figures().FailingSpaceCount == 1 && next.Figures().FailingSpaceCount == 1 })
	})
}
