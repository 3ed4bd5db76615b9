package settle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// deafBus has a coordinator that never answers.
type deafBus struct{ port.Bus }

func (deafBus) Ask(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A coordinator that hangs does not use up the time of a query: the client reads the logs itself.
func TestATreeIsReadThoughACoordinatorHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := membus.NewServer(membus.Config{Partitions: 1}).Connect("c")
		defer b.Close()
		c, err := settle.NewClient(deafBus{b}, settle.ClientConfig{ID: "c"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Send(t.Context(), settle.Outgoing{Space: "s", Stream: "x", ID: settle.ID("e")}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Tree(ctx, history.TreeQuery{Event: "e"}); err != nil {
			t.Error(err)
		}
		if _, err := c.Tree(t.Context(), history.TreeQuery{Event: "e"}); err != nil {
			t.Errorf("without a deadline: %v", err)
		}
	})
}

// slowBus takes long to find an event.
type slowBus struct {
	port.Bus
	takes time.Duration
}

func (b slowBus) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	select {
	case <-time.After(b.takes):
		return b.Bus.FindEvent(ctx, space, stream, id)
	case <-ctx.Done():
		return model.Message{}, false, ctx.Err()
	}
}

// What the caller has time for, the tree that is read when the wait is over has, too.
func TestWaitTree_ReadsTheTreeForAsLongAsTheCallerHasTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", relay(), nil)
		c, _ := w.client("c", func(b *membus.Bus) port.Bus { return slowBus{b, time.Minute} })
		if _, err := c.Send(t.Context(), settle.Outgoing{Space: "a", Stream: "mend", ID: settle.ID("e")}); err != nil {
			t.Fatal(err)
		}
		if tree, err := c.Space("a").WaitTree(t.Context(), "mend", settle.ID("e")); err != nil || tree.States["handled"] != 1 {
			t.Errorf("with no end: %+v, %v", tree, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if tree, err := c.Space("a").WaitTree(ctx, "mend", settle.ID("e")); err != nil || tree.States["handled"] != 1 {
			t.Errorf("with ten minutes: %+v, %v", tree, err)
		}
	})
}

// A coordinator that hangs does not use up the time for a last look either, and neither that nor
// a slow log makes it longer than it may be.
func TestWaitTree_ALastLookHasAnEndAndTimeForTheLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("w1", relay(), nil)
		c, _ := w.client("c", func(b *membus.Bus) port.Bus { return deafBus{slowBus{b, 2 * time.Second}} })
		if _, err := c.Send(t.Context(), settle.Outgoing{Space: "a", Stream: "mend", ID: settle.ID("e")}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if tree, err := c.Space("a").WaitTree(ctx, "mend", settle.ID("e")); err != nil || tree.States["handled"] != 1 {
			t.Errorf("behind a coordinator that hangs: %+v, %v", tree, err)
		}

		slow, _ := w.client("slow", func(b *membus.Bus) port.Bus { return deafBus{slowBus{b, time.Hour}} })
		for name, ctx := range map[string]func() (context.Context, context.CancelFunc){
			"deadline": func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Minute) },
			"cancelled": func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Minute, cancel)
				return ctx, cancel
			},
		} {
			ctx, cancel := ctx()
			begun := time.Now()
			_, err := slow.Space("a").WaitTree(ctx, "mend", settle.ID("e"))
			cancel()
			if took := time.Since(begun); err == nil || took > 75*time.Second {
				t.Errorf("%s: it took %v: %v", name, took, err)
			}
		}
	})
}
