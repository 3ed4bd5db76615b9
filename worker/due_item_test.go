package worker_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// These tests race an attached runtime's saves of the space's wakeup with the owner's.

// between runs a hook after an item was read and before it is saved.
type between struct {
	*membus.Bus
	read  func()
	saves func(due model.StateDoc)
}

func (b *between) LoadItem(ctx context.Context, space, key string) (model.StateDoc, error) {
	d, err := b.Bus.LoadItem(ctx, space, key)
	if then := b.read; then != nil {
		b.read = nil
		then()
	}
	return d, err
}

func (b *between) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if first := b.saves; first != nil && len(docs) == 1 && docs[0].Doc == model.DueKey {
		b.saves = nil
		first(docs[0])
	}
	return b.Bus.SaveState(ctx, space, docs, mark)
}

// setsTimer attaches an application that sets a timer and dies. The next owner, which w.process starts, does
// not sweep the log.
func (w *world) setsTimer(b *between, in time.Duration) {
	w.Helper()
	a, err := worker.Attach(w.Context(), b, worker.AttachConfig{ID: "app", Space: "s"})
	if err != nil {
		w.Fatal(err)
	}
	err = a.Transact(w.Context(), "app", func(tx *space.Tx) error {
		tx.SetTimer("x", "now", tx.Now().Add(in), nil)
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	a.Kill()
	b.Kill()
}

// The application finds an item of a timer that has been handled, and the owner deletes the item before the
// application's commit is in the log.
func TestDue_ATimerOfAnAttachedRuntimeDoesNotRelyOnADeletedItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: 5 * time.Second, Idle: -1}}
		w1 := w.process(cfg, nil)
		w.Send("s", "remind", "e1", `{"in":62000,"on":"now"}`)
		w.Pass(61 * time.Second)
		w.EventuallyEnded("s", 2) // e1 and its timer
		if n := len(w.Server.DueSpaces(0)); n != 1 {
			t.Fatal("the test needs the old item, and the owner has deleted it already")
		}
		w.setsTimer(&between{Bus: w.Server.Connect("app"), read: func() {
			w.Pass(6 * time.Second)
			w1.Crash()
		}}, time.Minute)
		w.Pass(10 * time.Minute)
		cfg.ID, cfg.Checkpoint = "w2", time.Hour
		w.process(cfg, nil)
		w.Pass(time.Minute)
		w.EventuallyEnded("s", 3)
	})
}

// The owner saves an earlier wakeup, of an earlier state, after the application has read the item.
func TestDue_ATimerOfAnAttachedRuntimeKeepsTheOwnersEarlierWakeup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: 5 * time.Second, Idle: -1}}
		w1 := w.process(cfg, nil)
		w.Send("s", "remind", "e1", `{"in":60000,"on":"now"}`)
		w.EventuallyEnded("s", 1)
		if n := len(w.Server.DueSpaces(0)); n != 0 {
			t.Fatal("the test needs an unsaved wakeup, and it is saved already")
		}
		w.setsTimer(&between{Bus: w.Server.Connect("app"), read: func() {
			w.Pass(11 * time.Second)
			w.WantPosition(0, 1)
			w1.Crash()
		}}, time.Hour)
		w.Pass(10 * time.Minute)
		cfg.ID, cfg.Checkpoint = "w2", time.Hour
		w.process(cfg, nil)
		w.Pass(time.Minute)
		w.EventuallyEnded("s", 2)
	})
}

// Another runtime has saved a later wakeup, or none, as of the same sequence or a later one, which does not
// decide whether the commit is appended.
func TestDue_ATimerOfAnAttachedRuntimeIsSavedDespiteConcurrentSaves(t *testing.T) {
	for _, ahead := range []uint64{0, 3} {
		for _, in := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprint(ahead, " ", in), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1)
					cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: time.Second}}
					w1 := w.process(cfg, nil)
					w.Send("s", "now", "e1")
					w.EventuallyEnded("s", 1)
					w.Pass(5 * time.Second)
					w.WantPosition(0, 1)
					w1.Crash()
					w.setsTimer(&between{Bus: w.Server.Connect("app"), saves: func(d model.StateDoc) {
						other := model.StateDoc{Doc: model.DueKey, Seq: d.Seq + ahead}
						if in != 0 {
							other.Data = strconv.AppendInt(nil, time.Now().Add(in).UnixMilli(), 10)
						}
						if _, err := w.Server.SaveDoc("s", other); err != nil {
							t.Fatal(err)
						}
					}}, time.Minute)
					w.Pass(10 * time.Minute)
					cfg.ID, cfg.Checkpoint = "w2", time.Hour
					w.process(cfg, nil)
					w.Pass(time.Minute)
					w.EventuallyEnded("s", 2)
				})
			})
		}
	}
}

// A space that was evicted at rest is woken on time, not a heartbeat after its eviction.
func TestDue_ASpaceEvictedShortlyBeforeItsTimeIsWokenOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		cfg := worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second, Heartbeat: 10 * time.Second, MemberTTL: 40 * time.Second}, Programs: worldtest.Always(reminders(t))}
		w1 := w.process(cfg, nil)
		w.Send("s", "now", "e0")
		w.EventuallyEnded("s", 1)
		at := time.Now().Add(5 * time.Second)
		w.sendLater("s", "e1", at)
		w.Pass(time.Until(at) - time.Millisecond)
		if n := w1.Stats().Awake; n != 0 {
			t.Fatalf("the test needs an evicted space, and %d are in memory", n)
		}
		w.Pass(time.Second)
		w.wantHandled("s", "e0", "e1")
		if late := w.handledAt("s", "e1").Sub(at); late < 0 || late > 100*time.Millisecond {
			t.Errorf("the handler was called %s late", late)
		}
	})
}

// An application saves a wakeup for its own timer, as of a commit that never lands. The owner's commit with
// that sequence has an earlier wakeup, which the owner's checkpoint saves.
func TestDue_TheOwnersWakeupReplacesAnItemWithTheSameSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: 5 * time.Second, Idle: -1}}
		w1 := w.process(cfg, nil)
		w.Send("s", "now", "e1")
		w.EventuallyEnded("s", 1)
		w.Pass(11 * time.Second)
		b := w.Server.Connect("app")
		a, err := worker.Attach(w.Context(), b, worker.AttachConfig{ID: "app", Space: "s"})
		if err != nil {
			w.Fatal(err)
		}
		b.Inject(func(op membus.Op) membus.Fate {
			if op.Label == "append" {
				return membus.Delay // it never arrives
			}
			return membus.Deliver
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // ends with ctx
			_ = a.Transact(ctx, "app", func(tx *space.Tx) error {
				tx.SetTimer("x", "now", tx.Now().Add(time.Hour), nil)
				return nil
			})
		}()
		w.Eventually("the application's timer is saved", func() bool { return len(w.Server.DueSpaces(0)) == 1 })
		cancel()
		a.Kill()
		b.Kill()
		w.Send("s", "remind", "e2", `{"in":60000,"on":"now"}`)
		w.EventuallyEnded("s", 2)
		w.Pass(11 * time.Second)
		w.WantPosition(0, 2)
		w1.Crash()
		w.Pass(time.Minute)
		cfg.ID, cfg.Checkpoint = "w2", time.Hour
		w.process(cfg, nil)
		w.Pass(2 * time.Minute)
		if n := len(w.Receipts("s")); n != 3 {
			t.Errorf("%d events were handled; the timer is the third", n)
		}
	})
}

// Another runtime was about to take the space over, and saves that its older state has no wakeup. The owner
// saved the wakeup long ago and it has not changed; the owner's next checkpoint saves it again.
func TestDue_AWakeupSavedFromAnOlderStateIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w1 := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: 5 * time.Second, Idle: -1}}, nil)
		w.Send("s", "remind", "e1", `{"in":3600000,"on":"now"}`)
		w.Pass(11 * time.Second)
		if n := len(w.Server.DueSpaces(0)); n != 1 {
			t.Fatal("the test needs a saved wakeup")
		}
		w.Send("s", "now", "e2")
		w.EventuallyEnded("s", 2)
		older := w.Server.Head("s")
		w.Send("s", "now", "e3")
		w.EventuallyEnded("s", 3)
		if _, err := w.Server.SaveDoc("s", model.StateDoc{Doc: model.DueKey, Seq: older}); err != nil {
			t.Fatal(err)
		}
		w.Pass(11 * time.Second)
		if n := len(w.Server.DueSpaces(0)); n != 1 {
			t.Error("the space has no wakeup for its timer")
		}
		w1.Crash()
	})
}

// tooEarly is a bus whose saves fail on demand. It records whether anything is appended in that time.
type tooEarly struct {
	failing
	appended atomic.Bool
}

func (b *tooEarly) Append(a model.Append, done func(uint64, error)) {
	if b.saves.Load() {
		b.appended.Store(true)
	}
	b.Bus.Append(a, done)
}

// However often saving the wakeup fails, the commit that needs it is not sent before it is saved.
func TestDue_ATimerOfAnAttachedRuntimeIsNotInTheLogBeforeItsTimeIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := w.Server.Connect("app")
		bus := &tooEarly{failing: failing{Bus: b}}
		a, err := worker.Attach(t.Context(), bus, worker.AttachConfig{ID: "app", Space: "s"})
		if err != nil {
			t.Fatal(err)
		}
		one := &app{Attachment: a, bus: b, w: w}
		t.Cleanup(one.close)
		bus.saves.Store(true)
		done := make(chan error, 1)
		go func() { // ends with the transaction
			done <- a.Transact(t.Context(), "app", func(tx *space.Tx) error {
				tx.SetTimer("x", "now", tx.Now().Add(time.Minute), nil)
				return nil
			})
		}()
		w.Eventually("saves have failed", func() bool { return bus.failed.Load() > 5 })
		bus.saves.Store(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if bus.appended.Load() {
			t.Error("the commit was sent before the wakeup was saved")
		}
	})
}
