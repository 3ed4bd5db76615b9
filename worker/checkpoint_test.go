package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

// hermit is a bus that hides all members from each other.
type hermit struct{ *membus.Bus }

func hermits(b *membus.Bus) port.Bus { return hermit{b} }

func (h hermit) FollowMembers(ctx context.Context, _ func(model.Member), ready func()) error {
	ready()
	<-ctx.Done()
	return ctx.Err()
}

func (hermit) Announce(context.Context, model.Member) error { return nil }

// only decides the fate of requests of one kind, while it is switched on.
type only struct {
	label string
	fate  membus.Fate
	on    atomic.Bool
	hits  atomic.Int64
}

func (o *only) hook(op membus.Op) membus.Fate {
	if op.Label == o.label && o.on.Load() {
		o.hits.Add(1)
		return o.fate
	}
	return membus.Deliver
}

// The former owner saves a document just after the new one has loaded the state. Both have the same log, so
// it is the same document; that it is already stored must not keep the new owner from saving its mark.
func TestCheckpoint_ALateSaveOfTheFormerOwnerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		former := w.process(worker.Config{ID: "w1"}, hermits)
		late := &only{label: "save", fate: membus.Delay}
		late.on.Store(true)
		former.Bus.Inject(late.hook)
		w.Send("s", "add", "e1")
		w.Eventually("a checkpoint is in flight", func() bool { return late.hits.Load() > 0 })
		former.Kill()
		later := w.process(worker.Config{ID: "w2"}, hermits)
		w.Eventually("the new owner has taken the space over", func() bool { return len(w.Takeovers("s")) == 2 })
		late.on.Store(false)
		former.Bus.Release()
		time.Sleep(5 * time.Second)
		w.wantSaved("s", map[string]string{"n": "1"})
		w.WantPosition(0, 1)
		later.Shutdown()
	})
}

// A handover is the same race: the former owner saves as its last act, while the new one loads.
func TestCheckpoint_TheLastSaveOfAHandoverAndTheFirstOfTheNewOwnerAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: time.Hour}}, nil)
		w.sendMany("s", "add", 5)
		time.Sleep(time.Second)
		late := &only{label: "save", fate: membus.Delay}
		late.on.Store(true)
		w1.Bus.Inject(late.hook)
		id := memberFor(0, 1, "w1")
		w.worker(id)
		w.Eventually("the former owner saves", func() bool { return late.hits.Load() > 0 })
		w.Send("s", "add", "e6")
		w.EventuallyEnded("s", 6)
		late.on.Store(false)
		w1.Bus.Release()
		time.Sleep(5 * time.Second)
		w.wantHandled("s", worldtest.Numbered(6)...)
		w.wantSaved("s", map[string]string{"n": "6"})
		w.WantPosition(0, 6)
	})
}

func TestStop_SavesEverythingAndLosesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: time.Hour}}, nil)
		spaces := worldtest.SpacesIn(0, 1, 5)
		for _, s := range spaces {
			w.sendMany(s, "add", 10)
		}
		stopping := make(chan struct{})
		go func() { // ends when half of the events are sent
			defer close(stopping)
			for i := range 20 {
				for _, s := range spaces {
					w.Client.Send(model.Message{Space: s, Stream: "add", ID: fmt.Sprintf("e%d", 11+i)}, func(model.SendResult, error) {})
				}
				time.Sleep(time.Millisecond)
			}
		}()
		time.Sleep(5 * time.Millisecond)
		w1.Shutdown()
		for _, s := range spaces {
			n := len(w.Receipts(s))
			w.wantSaved(s, map[string]string{"n": fmt.Sprint(n)})
		}
		<-stopping
		w.worker("w2")
		time.Sleep(5 * time.Second)
		for _, s := range spaces {
			w.wantHandled(s, worldtest.Numbered(30)...)
		}
	})
}

// readOnly is a bus that cannot save state.
type readOnly struct{ *membus.Bus }

var errReadOnly = errors.New("the store is read-only")

func (readOnly) SaveState(context.Context, string, []model.StateDoc, *model.StateDoc) error {
	return errReadOnly
}

// When Stop returns without an error, the bucket has everything that the log has.
func TestStop_ReportsWhatCouldNotBeSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1"}, func(b *membus.Bus) port.Bus { return readOnly{b} })
		w.Send("s", "add", "e1")
		w.Send("t", "add", "e1")
		time.Sleep(3 * time.Second)
		err := w1.Stop(t.Context())
		if !errors.Is(err, errReadOnly) || !strings.Contains(err.Error(), "space s") || !strings.Contains(err.Error(), "space t") {
			t.Errorf("stop: %v", err)
		}
		w.WantPosition(0, 0)
	})
}

// A checkpoint writes documents one by one and then the mark; the process may end between any two writes.
func TestCheckpoint_ACrashBetweenAnyTwoWritesLosesNothing(t *testing.T) {
	for crashAt := int64(1); crashAt <= 4; crashAt++ { // the documents from, double and n, and the mark
		t.Run(fmt.Sprint(crashAt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w1 := w.worker("w1")
				var saves atomic.Int64
				w1.Bus.Inject(func(op membus.Op) membus.Fate {
					if op.Label == "save" && saves.Add(1) == crashAt {
						w1.Crash()
						return membus.DropRequest
					}
					return membus.Deliver
				})
				w.Send("s", "add", "e1")
				w.Send("s", "get", "e2")
				w.Send("s", "look", "e3", `"nowhere"`)
				w.Eventually("it crashed", func() bool { return saves.Load() >= crashAt })
				w.Send("s", "add", "e4")
				w.worker("w2")
				time.Sleep(5 * time.Second)
				w.wantHandled("s", worldtest.Numbered(4)...)
				if got := w.Receipts("s")[1].Result.String(); got != "2" {
					t.Errorf("get returned %s, want 2", got)
				}
				w.wantSaved("s", map[string]string{"n": "2", "double": "2", "from": `"nowhere"`})
				w.WantPosition(0, 4)
			})
		})
	}
}
