package settle_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// laggard is a bus whose reads of the log are answered by a replica without the entries after a sequence, for a time from the first append on.
type laggard struct {
	port.Bus
	upTo  uint64
	lasts time.Duration
	shows atomic.Uint64 // 0 for all
	begin sync.Once
}

func (b *laggard) Append(a model.Append, done func(uint64, error)) {
	b.begin.Do(func() {
		b.shows.Store(b.upTo)
		time.AfterFunc(b.lasts, func() { b.shows.Store(0) })
	})
	b.Bus.Append(a, done)
}

func (b *laggard) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	list, err := b.Bus.ReadLog(ctx, space, after, limit)
	if upTo := b.shows.Load(); upTo > 0 {
		for i := range list {
			if list[i].Seq > upTo {
				return list[:i], err
			}
		}
	}
	return list, err
}

// An event that waits for its time ends when it is cancelled, although the replicas of the log that are asked for it lag when it is marked.
func TestCancel_FindsAWaitingEventAlthoughReplicasLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", counter(), nil)
		sender, bus := w.client("sender", nil)
		if _, err := sender.Call(t.Context(), settle.Outgoing{Space: "s", Stream: "add", ID: settle.ID("e0")}); err != nil {
			t.Fatal(err)
		}
		before := w.Server.Head("s")
		if _, err := sender.Send(t.Context(), settle.Outgoing{Space: "s", Stream: "add", ID: settle.ID("e1"), NotBefore: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		w.Eventually("the event waits", func() bool {
			waiting, err := history.FindWaiting(t.Context(), bus, "s", "add", "e1")
			return err == nil && waiting != nil
		})
		c, _ := w.client("c", func(b *membus.Bus) port.Bus { return &laggard{Bus: b, upTo: before, lasts: 5 * time.Second} })
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		rc, err := c.Cancel(ctx, history.EventRef{Space: "s", Stream: "add", Event: "e1"}, "no")
		if err != nil || rc.Outcome != model.Cancelled {
			t.Errorf("%+v, %v", rc, err)
		}
	})
}
