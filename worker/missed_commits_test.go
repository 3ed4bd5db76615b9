package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// times derives the document "times" as factor times the count.
func times(t *testing.T, version string, factor int64) *space.Program {
	p := book(t)
	p.Version = version
	err := p.Add(space.NodeSpec{
		ID: "times", Kind: space.Computation, Output: "times", Version: version,
		Run: func(tx *space.Tx) (model.Value, error) {
			n, _ := tx.Get("n").AsInt()
			return model.Int(factor * n), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A worker of another version takes a space over by mistake and dies, leaving its values behind. The owner
// has nothing to append or save and receives no query. It finds the values nevertheless, since the log has
// grown.
func TestMissedCommits_AreFoundByAnIdleOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(times(t, "v1", 2))}, hermits)
		seen := w.watch("s", "times")
		w.Send("s", "add", "e1")
		w.Send("idle", "add", "e1")
		w.Eventually("w1 derives", func() bool { return seen.last() == "2" })
		w.Pass(2 * time.Minute) // until all is saved
		w2 := w.process(worker.Config{ID: "w2", Programs: worldtest.Always(times(t, "v2", 3))}, hermits)
		w.Eventually("w2 derives", func() bool { return seen.last() == "3" })
		w2.Crash()
		w.Pass(3 * time.Minute)
		if seen.last() != "2" {
			t.Errorf("the watcher sees %s, which w2 left behind", seen.last())
		}
		w.wantHandled("s", "e1")
		before := len(w.Commits("s"))
		w.Pass(10 * time.Minute)
		if n := len(w.Commits("s")); n != before {
			t.Errorf("%d empty commits since", n-before)
		}
		w1.Shutdown()
	})
}

// Progress of the owner's other spaces does not hide the missed commits.
func TestMissedCommits_AreFoundDespiteProgressOfOtherSpaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(times(t, "v1", 2))}, hermits)
		seen := w.watch("s", "times")
		w.watch("busy", "times")
		w.Send("s", "add", "e1")
		w.Send("busy", "add", "e1")
		w.Eventually("w1 derives", func() bool { return seen.last() == "2" })
		w.Pass(2 * time.Minute) // until all is saved
		w2 := w.process(worker.Config{ID: "w2", Programs: worldtest.Always(times(t, "v2", 3))}, hermits)
		w.Eventually("w2 derives", func() bool { return seen.last() == "3" })
		w2.Crash()
		w.Send("busy", "add", "e2")
		w.EventuallyEnded("busy", 2)
		w.Pass(3 * time.Minute)
		if seen.last() != "2" {
			t.Errorf("the watcher sees %s, which w2 left behind", seen.last())
		}
		w1.Shutdown()
	})
}

// unreadable is a bus on which a number of log reads fail.
type unreadable struct {
	port.Bus
	times atomic.Int64
}

func (b *unreadable) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if b.times.Add(-1) >= 0 {
		return nil, errors.New("as it should")
	}
	return b.Bus.ReadLog(ctx, space, after, limit)
}

// A failed read is retried at the next check.
func TestMissedCommits_AFailedReadIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b unreadable
		w := newWorld(t, 1)
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(times(t, "v1", 2))}, func(m *membus.Bus) port.Bus {
			b.Bus = hermits(m)
			return &b
		})
		seen := w.watch("s", "times")
		w.Send("s", "add", "e1")
		w.Eventually("w1 derives", func() bool { return seen.last() == "2" })
		w.Pass(2 * time.Minute)
		w2 := w.process(worker.Config{ID: "w2", Programs: worldtest.Always(times(t, "v2", 3))}, hermits)
		w.Eventually("w2 derives", func() bool { return seen.last() == "3" })
		w2.Crash()
		b.times.Store(2)
		w.Pass(5 * time.Minute)
		if seen.last() != "2" || b.times.Load() >= 0 {
			t.Errorf("the watcher sees %s; %d reads did not fail", seen.last(), b.times.Load())
		}
	})
}
