package ordered_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// A mark of another runtime at the sequence at which the server wants to save is as good as its own.
func TestSaver_AMarkOfAnotherRuntimeAtTheSameSequenceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.serve(ordered.Config{Name: "o1", Checkpoint: 10 * time.Second}, nil)
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.EventuallyEnded("alice", 1)
		w.Pass(12 * time.Second)
		w.Send("alice", "pay", "e2", `{"cents":1}`)
		w.EventuallyEnded("alice", 2)
		w.Pass(time.Second)
		w.SaveAsAnother("alice")
		w.Pass(time.Minute)
		w.WantPosition(0, 2)
		w.Send("alice", "pay", "e3", `{"cents":1}`)
		w.Pass(time.Minute)
		w.WantPosition(0, 3)
		w.wantDoc("alice", "balance", "3")
		w.stop(p)
	})
}

// hermit is a bus that hides all other servers.
type hermit struct{ *membus.Bus }

func (h hermit) FollowMembers(ctx context.Context, _ func(model.Member), ready func()) error {
	ready()
	<-ctx.Done()
	return ctx.Err()
}

// serveAlone starts a server that believes itself alone.
func (w *world) serveAlone(name string, hook membus.Hook) *serving {
	w.Helper()
	b := w.Server.Connect(name)
	b.Inject(hook)
	ctx, cancel := context.WithCancel(context.Background())
	p := &serving{name: name, bus: b, cancel: cancel, ended: make(chan error, 1)}
	cfg := ordered.Config{Name: name, Handlers: accounts()}
	go func() { p.ended <- ordered.Serve(ctx, hermit{b}, cfg) }() // ends with ctx
	w.Cleanup(p.crash)
	return p
}

// A server that could not save for a while, and has nothing to append, misses that another server has taken
// the key over, saved it and died. It detects that when its own save is outdated.
func TestSaver_AnIdleServerDetectsThatItIsDeposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var lost atomic.Bool
		lost.Store(true)
		p1 := w.serveAlone("o1", func(op membus.Op) membus.Fate {
			if op.Label == "save" && lost.Load() {
				w.Pass(50 * time.Millisecond)
				return membus.DropRequest
			}
			return membus.Deliver
		})
		w.Send("alice", "pay", "e1", `{"cents":1}`)
		w.EventuallyEnded("alice", 1)
		w.Pass(2 * time.Second)
		p2 := w.serveAlone("o2", nil)
		w.Eventually("o2 has it", func() bool { return len(w.Takeovers("alice")) > 1 })
		w.Pass(3 * time.Second)
		p2.crash()
		lost.Store(false)
		w.Pass(10 * time.Second)
		w.Send("bob", "pay", "e2", `{"cents":1}`) // alice has nothing to do, and must not hold it back
		w.Pass(time.Minute)
		w.WantPosition(0, 2)
		w.WantEnded("alice", "e1")
		w.WantEnded("bob", "e2")
		w.stop(p1)
	})
}
