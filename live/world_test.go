package live_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a worldtest.World with a client of the live service.
type world struct {
	*worldtest.World
	client live.Client

	mu   sync.Mutex
	runs int // of the computation double, in all workers
	sent int
	// stuck blocks the handler of the stream stick.
	stuck chan struct{}
}

func newWorld(t *testing.T) *world {
	w := &world{World: worldtest.New(t, membus.Config{Partitions: 1})}
	w.client.Bus = w.Client
	return w
}

// process is a worker with a live server.
type process struct {
	*worldtest.Process
	*live.Server
	asks asks
}

// asks is the bus of a server. It counts the server's requests.
type asks struct {
	port.Client
	n atomic.Int64
	// refuse makes other workers answer like those of an earlier version, which do not know the status query.
	refuse atomic.Bool
	// reading receives a value for each log entry that arrives: while the test fills it, the server falls
	// behind.
	reading chan struct{}
}

func (b *asks) FollowSpace(ctx context.Context, space string, after uint64, deliver func(model.LogEntry)) error {
	return b.Client.FollowSpace(ctx, space, after, func(e model.LogEntry) {
		b.reading <- struct{}{}
		<-b.reading
		deliver(e)
	})
}

func (b *asks) Ask(ctx context.Context, endpoint string, q []byte) ([]byte, error) {
	b.n.Add(1)
	if b.refuse.Load() {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: "the request does not have the expected JSON"}
	}
	return b.Client.Ask(ctx, endpoint, q)
}

// worker starts a worker with a live server.
func (w *world) worker(id string, cfg live.Config) *process {
	w.Helper()
	p := &process{Process: w.Worker(worker.Config{ID: id, Programs: worldtest.Always(w.program())})}
	p.asks.Client, p.asks.reading = p.Bus, make(chan struct{}, 1)
	p.Server = live.NewServer(&p.asks, p.Worker, cfg)
	p.Beside(p.Run)
	synctest.Wait()
	return p
}

// program counts events in n, some of them as ten, and derives double from n.
func (w *world) program() *space.Program {
	p := space.NewProgram("book")
	must := func(err error) {
		if err != nil {
			w.Error(err)
		}
	}
	must(p.Handle("add", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return model.Value{}, nil
	}))
	must(p.Handle("jump", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+10)
		return model.Value{}, nil
	}))
	must(p.Handle("stick", func(*space.Tx, *model.Event) (model.Value, error) {
		<-w.stuck
		return model.Value{}, nil
	}))
	must(p.Handle("drop", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		tx.Delete("n")
		return model.Value{}, nil
	}))
	must(p.Add(space.NodeSpec{ID: "double", Kind: space.Computation, Output: "double", Run: func(tx *space.Tx) (model.Value, error) {
		w.mu.Lock()
		w.runs++
		w.mu.Unlock()
		n, _ := tx.Get("n").AsInt()
		return model.Int(2 * n), nil
	}}))
	must(p.Add(space.NodeSpec{ID: "rare", Kind: space.Computation, Output: "rare", Gate: space.GateSpec{Throttle: time.Hour}, Run: func(tx *space.Tx) (model.Value, error) {
		return tx.Get("n"), nil
	}}))
	must(p.Add(space.NodeSpec{ID: "calm", Kind: space.Computation, Output: "calm", Gate: space.GateSpec{Throttle: 2 * time.Second}, Run: func(tx *space.Tx) (model.Value, error) {
		return tx.Get("n"), nil
	}}))
	must(p.Add(space.NodeSpec{ID: "mood", Kind: space.Computation, Output: "mood", Run: func(tx *space.Tx) (model.Value, error) {
		if n, _ := tx.Get("n").AsInt(); n == 2 {
			return model.Value{}, errors.New("two is too many")
		}
		return model.String("fine"), nil
	}}))
	must(p.Add(space.NodeSpec{ID: "sign", Kind: space.Computation, Output: "sign", Run: func(tx *space.Tx) (model.Value, error) {
		return tx.Get("mood"), nil
	}}))
	return p
}

// ran returns how often double has run.
func (w *world) ran() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs
}

// send stores n more events of a stream.
func (w *world) send(stream string, n int) {
	w.Helper()
	for range n {
		w.sent++
		w.Send("s", stream, "e"+strconv.Itoa(w.sent))
	}
}

// get reads a document through the service.
func (w *world) get(doc string) live.Answer {
	w.Helper()
	a, err := w.client.Get(w.Context(), live.Get{Space: "s", Document: doc})
	if err != nil {
		w.Fatalf("get %s: %v", doc, err)
	}
	return a
}

// logged returns the value and revision of a document in the log.
func (w *world) logged(doc string) (string, uint64) {
	w.Helper()
	d := w.Read("s", doc)
	return d.Value.String(), d.Seq
}

// settled waits until the log has n events in the document n.
func (w *world) settled(n int) {
	w.Helper()
	w.Eventually("n is "+strconv.Itoa(n), func() bool { return w.Doc("s", "n") == strconv.Itoa(n) })
}

// seen collects the events of a watch.
type seen struct {
	w      *world
	mu     sync.Mutex
	events []live.Event
	err    error
	cancel func()
	done   chan struct{}
}

func (s *seen) add(e live.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == live.Value || e.Kind == live.Deleted {
		for _, b := range s.events {
			if (b.Kind == live.Value || b.Kind == live.Deleted) && b.Revision >= e.Revision {
				s.w.Errorf("revision %d delivered after %d", e.Revision, b.Revision)
			}
		}
	}
	s.events = append(s.events, e)
	return nil
}

// of returns the events of the given kinds.
func (s *seen) of(kinds ...live.Kind) []live.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []live.Event
	for _, e := range s.events {
		for _, k := range kinds {
			if e.Kind == k {
				out = append(out, e)
			}
		}
	}
	return out
}

func (s *seen) last() string {
	list := s.of(live.Value, live.Deleted)
	if len(list) == 0 {
		return ""
	}
	return string(list[len(list)-1].Data)
}

// statuses lists the statuses that were delivered.
func (s *seen) statuses() (out []string) {
	for _, e := range s.of(live.Stale, live.Current) {
		out = append(out, cmp.Or(e.Stale, string(e.Kind)))
	}
	return out
}

func (s *seen) stop() error {
	s.cancel()
	<-s.done
	return s.err
}

// follow watches a document through the service.
func (w *world) follow(doc string, from uint64) *seen {
	return w.watching(func(ctx context.Context, s *seen) error {
		return w.client.Watch(ctx, live.Watch{Space: "s", Document: doc, From: live.At(from)}, func(e live.Event) { _ = s.add(e) })
	})
}

// watching runs a watch until the end of the test.
func (w *world) watching(f func(context.Context, *seen) error) *seen {
	ctx, cancel := context.WithCancel(context.Background())
	s := &seen{w: w, cancel: cancel, done: make(chan struct{})}
	go func() { // ends with the watch
		defer close(s.done)
		s.err = f(ctx, s)
	}()
	w.Cleanup(func() { _ = s.stop() })
	return s
}

// question encodes a request.
func question(v any) []byte {
	data, _ := json.Marshal(v)
	return data
}
