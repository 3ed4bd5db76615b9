package ordered_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
	"github.com/settlehq/settle/replica"
)

// saveAsAnother saves what the log of a key adds up to.
func (w *world) saveAsAnother(key string) {
	w.Helper()
	r, err := replica.Load(key, w.server.LoadState(key))
	if err == nil {
		err = history.Replay(context.Background(), w.client, r)
	}
	if err != nil {
		w.Fatal(err)
	}
	c, err := r.Checkpoint()
	if err != nil {
		w.Fatal(err)
	}
	for _, d := range c.Docs {
		if _, err := w.server.SaveDoc(key, d); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.server.SaveMark(key, c.Mark); err != nil {
		w.Fatal(err)
	}
}

func (w *world) wantPosition(want uint64) {
	w.Helper()
	if got := w.server.LoadPosition(0, "lane"); got != want {
		w.Errorf("the lane position is %d, want %d", got, want)
	}
}

// A mark at the sequence at which the server wants to save is as good as its own.
func TestSaver_AMarkThatAnotherHasSavedAtTheSameSequenceIsAsGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.serve(ordered.Config{Name: "o1", Checkpoint: 10 * time.Second}, nil)
		w.send("alice", "pay", "e1", `{"cents":1}`)
		w.eventuallyEnded("alice", 1)
		w.pass(12 * time.Second)
		w.send("alice", "pay", "e2", `{"cents":1}`)
		w.eventuallyEnded("alice", 2)
		w.pass(time.Second)
		w.saveAsAnother("alice")
		w.pass(time.Minute)
		w.wantPosition(2)
		w.send("alice", "pay", "e3", `{"cents":1}`)
		w.pass(time.Minute)
		w.wantPosition(3)
		w.wantDoc("alice", "balance", "3")
		w.stop(p)
	})
}

// hermit is the bus of a server that hears of no other.
type hermit struct{ *membus.Bus }

func (h hermit) FollowMembers(ctx context.Context, _ func(model.Member), ready func()) error {
	ready()
	<-ctx.Done()
	return ctx.Err()
}

// serveAlone starts a server that believes to be alone.
func (w *world) serveAlone(name string, hook membus.Hook) *serving {
	w.Helper()
	b := w.server.Connect(name)
	b.Inject(hook)
	ctx, cancel := context.WithCancel(context.Background())
	p := &serving{name: name, bus: b, cancel: cancel, ended: make(chan error, 1)}
	cfg := ordered.Config{Name: name, Handlers: accounts()}
	go func() { p.ended <- ordered.Serve(ctx, hermit{b}, cfg) }() // ends with ctx
	w.Cleanup(p.crash)
	return p
}

// A server that could not save for a while, and has nothing to append, does not hear of another
// that has taken the key over, saved it and died. That its own state is outdated tells it.
func TestSaver_AServerWithNothingToAppendLearnsThatItIsDeposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var lost atomic.Bool
		lost.Store(true)
		p1 := w.serveAlone("o1", func(op membus.Op) membus.Fate {
			if op.Label == "save" && lost.Load() {
				w.pass(50 * time.Millisecond)
				return membus.DropRequest
			}
			return membus.Deliver
		})
		w.send("alice", "pay", "e1", `{"cents":1}`)
		w.eventuallyEnded("alice", 1)
		w.pass(2 * time.Second)
		p2 := w.serveAlone("o2", nil)
		w.eventually("o2 has it", func() bool { return len(w.takeovers("alice")) > 1 })
		w.pass(3 * time.Second)
		p2.crash()
		lost.Store(false)
		w.pass(10 * time.Second)
		w.send("bob", "pay", "e2", `{"cents":1}`) // alice has nothing to do, and must not hold it back
		w.pass(time.Minute)
		w.wantPosition(2)
		w.wantOrder("alice", "e1")
		w.wantOrder("bob", "e2")
		w.stop(p1)
	})
}
