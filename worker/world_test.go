package worker_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a worldtest.World whose workers run the program book, unless a test specifies another.
type world struct{ *worldtest.World }

func newWorld(t *testing.T, partitions int) *world {
	return newWorldOf(t, membus.Config{Partitions: partitions})
}

func newWorldOf(t *testing.T, cfg membus.Config) *world { return &world{worldtest.New(t, cfg)} }

// process is a worldtest.Process with methods for reads.
type process struct {
	*worldtest.Process
	w *world
}

// process starts a worker. wrap, if not nil, wraps its bus.
func (w *world) process(cfg worker.Config, wrap func(*membus.Bus) port.Bus) *process {
	w.Helper()
	return w.start(cfg, w.Connect(cfg.ID), wrap)
}

// start is process for a worker with a given connection.
func (w *world) start(cfg worker.Config, b *membus.Bus, wrap func(*membus.Bus) port.Bus) *process {
	w.Helper()
	var over port.Bus = b
	if wrap != nil {
		over = wrap(b)
	}
	if cfg.Programs == nil {
		cfg.Programs = worldtest.Always(book(w.T))
	}
	return &process{w.WorkerOn(b, over, cfg), w}
}

// worker starts a worker of the program book under an id.
func (w *world) worker(id string) *process {
	w.Helper()
	return w.process(worker.Config{ID: id}, nil)
}

// sendMany stores n events e1, e2, ... in order.
func (w *world) sendMany(space, stream string, n int) {
	w.Helper()
	for i := range n {
		w.Send(space, stream, "e"+strconv.Itoa(i+1))
	}
}

// adds stores n events e1, e2, ... and waits until they are handled.
func (w *world) adds(space string, n int) {
	w.Helper()
	w.sendMany(space, "add", n)
	w.EventuallyEnded(space, n)
}

// wantHandled checks that exactly these events have been handled, once and in this order.
func (w *world) wantHandled(space string, ids ...string) {
	w.Helper()
	for _, rc := range w.Receipts(space) {
		if rc.Outcome != model.Handled {
			w.Errorf("event %s of %s: %s (%s)", rc.Event, space, rc.Outcome, rc.Error)
		}
	}
	w.WantEnded(space, ids...)
}

// wantSaved checks that the STATE bucket has caught up with the log: every document, and the mark.
func (w *world) wantSaved(space string, docs map[string]string) {
	w.Helper()
	st := w.Server.LoadState(space)
	if head := w.Server.Head(space); st.Mark.Seq != head {
		w.Errorf("space %s: the mark reflects %d, the log ends at %d", space, st.Mark.Seq, head)
	}
	got := map[string]string{}
	for _, d := range st.Docs {
		got[d.Doc] = string(d.Data)
	}
	for doc, want := range docs { // any order: each on its own
		if got[doc] != want {
			w.Errorf("space %s: the bucket has %s for %s, want %s", space, got[doc], doc, want)
		}
	}
}

// watch observes a document until the end of the test, and collects its values.
func (w *world) watch(space, doc string) *watched {
	v := &watched{}
	ctx, cancel := context.WithCancel(context.Background())
	v.end = cancel
	watch := history.Watch{Bus: w.Client, Space: space, Doc: doc, Watcher: "t" + strconv.FormatInt(watchers.next(), 10)}
	var running sync.WaitGroup
	running.Go(func() { // ends with the watch
		err := watch.Changes(ctx, func(c history.Change) { v.add(c.Value, c.Revision) })
		if !errors.Is(err, context.Canceled) && !errors.Is(err, model.ErrStopped) {
			w.Errorf("watch %s of %s: %v", doc, space, err)
		}
	})
	w.Cleanup(func() { cancel(); running.Wait() })
	return v
}

var watchers counter

type counter struct {
	mu sync.Mutex
	n  int64
}

func (c *counter) next() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

// watched is what a watch has delivered.
type watched struct {
	mu        sync.Mutex
	values    []string
	revisions []uint64
	end       func()
}

func (v *watched) add(val model.Value, rev uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.values, v.revisions = append(v.values, val.String()), append(v.revisions, rev)
}

func (v *watched) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.values) == 0 {
		return ""
	}
	return v.values[len(v.values)-1]
}

// seen returns everything that the watch has delivered, with the revisions.
func (v *watched) seen() (values []string, revisions []uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.values), slices.Clone(v.revisions)
}

// book is a program that counts:
//
//	add      adds one to n
//	forward  adds one to n and sends an add to the space in the payload
//	chain    adds one to n and sends itself on, as often as the payload says
//	fail     fails
//	get      returns the value of double, which is computed from n
//	read     copies double of the space in the payload into seen
//
// It has the computations double (twice n) and abroad (double of the space that the document from names).
func book(t *testing.T) *space.Program {
	t.Helper()
	p := space.NewProgram("book")
	count := func(tx *space.Tx) int64 {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return n + 1
	}
	handle := func(stream string, h func(tx *space.Tx, ev *model.Event) (model.Value, error)) {
		t.Helper()
		if err := p.Handle(stream, h); err != nil {
			t.Fatal(err)
		}
	}
	handle("add", func(tx *space.Tx, _ *model.Event) (model.Value, error) { return model.Int(count(tx)), nil })
	handle("forward", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		to, _ := ev.Payload.AsString()
		tx.Send(to, "add", nil)
		return model.Int(count(tx)), nil
	})
	handle("chain", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		if left, _ := ev.Payload.AsInt(); left > 0 {
			tx.Send(tx.Space(), "chain", left-1)
		}
		return model.Int(count(tx)), nil
	})
	handle("fail", func(*space.Tx, *model.Event) (model.Value, error) { return model.Value{}, errors.New("as it should") })
	handle("get", func(tx *space.Tx, _ *model.Event) (model.Value, error) { return tx.Get("double"), nil })
	handle("look", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		tx.Set("from", ev.Payload)
		return model.Value{}, nil
	})
	handle("read", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		from, _ := ev.Payload.AsString()
		v := tx.GetFrom(from, "double")
		tx.Set("seen", v)
		return v, nil
	})
	compute := func(doc string, run func(tx *space.Tx) (model.Value, error)) {
		t.Helper()
		if err := p.Add(space.NodeSpec{ID: doc, Kind: space.Computation, Output: doc, Run: run}); err != nil {
			t.Fatal(err)
		}
	}
	compute("double", func(tx *space.Tx) (model.Value, error) {
		n, _ := tx.Get("n").AsInt()
		return model.Int(2 * n), nil
	})
	compute("abroad", func(tx *space.Tx) (model.Value, error) {
		from, ok := tx.Get("from").AsString()
		if !ok {
			return model.Value{}, nil
		}
		return tx.GetFrom(from, "double"), nil
	})
	return p
}
