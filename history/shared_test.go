package history_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// requestsBus counts the requests of a reader.
type requestsBus struct {
	port.Client
	events, heads, logs atomic.Int64
}

func (b *requestsBus) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	b.events.Add(1)
	return b.Client.FindEvent(ctx, space, stream, id)
}

func (b *requestsBus) Head(ctx context.Context, space string) (uint64, error) {
	b.heads.Add(1)
	return b.Client.Head(ctx, space)
}

func (b *requestsBus) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	b.logs.Add(1)
	return b.Client.ReadLog(ctx, space, after, limit)
}

// To read the tree of an event, each of its events is looked up once, the head of each log is read once, and a commit is not read once for each
// event in it.
func TestTree_IsReadWithFewRequests(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		const events, spaces = 200, 10
		wide := script()
		for i := range events {
			wide.Send = append(wide.Send, to(fmt.Sprint("s", i%spaces), nil), to("a", nil))
		}
		w.send("a", "wide", wide)
		w.rest()
		b := &requestsBus{Client: w.Client}
		tree, err := history.ReadTree(t.Context(), b, history.TreeQuery{Event: "wide"})
		if err != nil || tree.States["handled"] != 2*events+1 || !tree.Settled {
			t.Fatalf("%+v, %v", tree, err)
		}
		commits := 0
		for i := range spaces + 1 {
			name := strings.Replace(fmt.Sprint("s", i), fmt.Sprint("s", spaces), "a", 1)
			page, err := history.ReadEntries(t.Context(), w.Client, name, history.LogQuery{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			commits += len(page.Entries)
		}
		t.Logf("%d commits: %d look-ups, %d heads, %d readings of logs", commits, b.events.Load(), b.heads.Load(), b.logs.Load())
		if n := b.events.Load(); n > events+1 { // those of the space itself are in no lane
			t.Errorf("%d events were looked up for %d", n, events+1)
		}
		if n := b.heads.Load(); n > spaces+1 {
			t.Errorf("the heads of %d logs were read %d times", spaces+1, n)
		}
		if n := b.logs.Load(); n > int64(commits) {
			t.Errorf("logs of %d commits were read %d times", commits, n)
		}
	})
}

// laterBus lets time pass before a space is read from its checkpoint.
type laterBus struct {
	port.Client
	pass func()
}

func (b *laterBus) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	if pass := b.pass; pass != nil {
		b.pass = nil
		pass()
	}
	return b.Client.LoadState(ctx, space)
}

// A timer that is due while its tree is read was handled, and not cancelled, though the head of the log was read before that.
func TestTree_ATimerThatIsDueMeanwhileIsNotCancelled(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.Send("a", "alarm", "e1")
		w.rest()
		b := &laterBus{w.Client, func() { w.Pass(2 * time.Hour) }}
		tree, err := history.ReadTree(t.Context(), b, history.TreeQuery{Event: "e1"})
		if err != nil || shape(tree.Root) != "a:handled(a:handled)" {
			t.Errorf("%s, %v", shape(tree.Root), err)
		}
	})
}
