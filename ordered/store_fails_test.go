package ordered_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// failing is a bus whose saves fail on demand, without storing anything.
type failing struct {
	*membus.Bus
	on     atomic.Bool
	failed atomic.Int64
}

func (b *failing) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if b.on.Load() {
		b.failed.Add(1)
		return errors.New("the store is out of order")
	}
	return b.Bus.SaveState(ctx, space, docs, mark)
}

// The documents of a checkpoint that could not be saved are part of the next one, although that is about
// other documents.
func TestSaver_AFailedSaveKeepsItsDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &failing{Bus: w.Server.Connect("o1")}
		b.on.Store(true)
		ctx, cancel := context.WithCancel(context.Background())
		p := &serving{name: "o1", bus: b.Bus, cancel: cancel, ended: make(chan error, 1)}
		cfg := ordered.Config{Name: "o1", Handlers: map[string]ordered.Handler{"note": func(tx *ordered.Tx, ev *model.Event) (any, error) {
			tx.Set(ev.ID, 1)
			return nil, nil
		}}}
		go func() { p.ended <- ordered.Serve(ctx, b, cfg) }() // ends with ctx
		w.Cleanup(p.crash)
		w.Send("alice", "note", "e1", `1`)
		w.Eventually("a save has failed", func() bool { return b.failed.Load() > 2 })
		w.Send("alice", "note", "e2", `1`)
		w.EventuallyEnded("alice", 2)
		b.on.Store(false)
		w.Pass(10 * time.Second)
		w.WantPosition(0, 2)
		for _, doc := range []string{"e1", "e2"} {
			if d, _ := w.Server.Saved("alice", doc); string(d.Data) != "1" {
				t.Errorf("%s is saved as %q", doc, d.Data)
			}
		}
		w.stop(p)
	})
}
