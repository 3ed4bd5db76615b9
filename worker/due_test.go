package worker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// reminders is a program whose stream "remind" sets the timer that the payload names to the payload's time,
// and whose other streams record when they were called.
func reminders(t *testing.T) *space.Program {
	p := space.NewProgram("reminders")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	now := func(tx *space.Tx, _ *model.Event) (model.Value, error) {
		return model.Of(tx.Now().UnixMilli())
	}
	must(p.Handle("now", now))
	must(p.Handle("chain", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		tx.Send(tx.Space(), "now", nil)
		return now(tx, ev)
	}))
	must(p.Handle("longer", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		tx.Send(tx.Space(), "chain", nil)
		return now(tx, ev)
	}))
	must(p.Handle("remind", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		ms, _ := ev.Payload.Get("in").AsInt()
		stream, _ := ev.Payload.Get("on").AsString()
		tx.SetTimer("t", stream, tx.Now().Add(time.Duration(ms)*time.Millisecond), nil)
		return now(tx, ev)
	}))
	return p
}

func (w *world) sendLater(name, id string, at time.Time) {
	w.Helper()
	w.SendMessage(model.Message{Space: name, Stream: "now", ID: id, NotBefore: model.NotBefore(at)})
}

// handledAt returns the time at which an event was handled, by its owner's clock.
func (w *world) handledAt(name, id string) time.Time {
	w.Helper()
	for _, rc := range w.Receipts(name) {
		if rc.Event == id {
			ms, _ := rc.Result.AsInt()
			return time.UnixMilli(ms)
		}
	}
	return time.Time{}
}

func TestDue_AnEvictedSpaceIsWokenOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w1 := w.process(worker.Config{ID: "w1", Options: worker.Options{Idle: time.Second}, Programs: worldtest.Always(reminders(t))}, nil)
		at := time.Now().Add(time.Hour)
		for i := range 20 {
			w.sendLater(fmt.Sprint("s", i), "later", at.Add(time.Duration(i)*time.Second))
		}
		w.Eventually("all spaces are evicted", func() bool {
			return w1.Stats().Awake == 0 && len(w.Server.DueSpaces(0))+len(w.Server.DueSpaces(1)) == 20
		})
		w.Pass(time.Until(at) - time.Millisecond)
		for i := range 20 {
			if n := len(w.Receipts(fmt.Sprint("s", i))); n != 0 {
				t.Errorf("s%d handled %d events", i, n)
			}
		}
		w.Pass(time.Minute)
		for i := range 20 {
			late := w.handledAt(fmt.Sprint("s", i), "later").Sub(at.Add(time.Duration(i) * time.Second))
			if late < 0 || late > 100*time.Millisecond {
				t.Errorf("the handler of s%d was called %s late", i, late)
			}
		}
		w.Pass(time.Minute)
		for p := range 2 {
			if due := w.Server.DueSpaces(p); len(due) > 0 {
				t.Errorf("partition %d: still due: %v", p, due)
			}
		}
	})
}

func TestDue_AWorkerIsKilledWhileEventsWaitAndTheNextOneHandlesThem(t *testing.T) {
	for _, saved := range []bool{false, true} {
		t.Run(fmt.Sprint("saved ", saved), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: time.Hour, Idle: -1}}
				if saved {
					cfg.Checkpoint = time.Second
				}
				w1 := w.process(cfg, nil)
				at := time.Now().Add(time.Minute)
				for i := range 5 {
					w.sendLater("s", fmt.Sprint("e", i), at)
				}
				w.Send("s", "now", "now")
				w.EventuallyEnded("s", 1)
				w.Pass(5 * time.Second)
				w1.Crash()
				w.Pass(time.Hour) // no worker runs when they are due
				cfg.ID = "w2"
				w.process(cfg, nil)
				w.Pass(10 * time.Second)
				w.wantHandled("s", "now", "e0", "e1", "e2", "e3", "e4")
				if saved {
					w.WantPosition(0, 6)
				}
			})
		})
	}
}

// The lane was read past long before a timer fires. What the timer's handler sends is released whenever the
// worker dies.
func TestDue_TheNextOwnerFindsWhatATimerSends(t *testing.T) {
	for die := range 12 {
		t.Run(fmt.Sprint(die), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				var requests atomic.Int64
				var w1 *process
				cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: 20 * time.Millisecond, Idle: -1}}
				// A group of one, so that the follow-up is in another commit.
				cfg.MaxGroup = 1
				w1 = w.process(cfg, nil)
				w.Send("s", "remind", "e1", `{"in":60000,"on":"chain"}`)
				w.Send("other", "now", "e2")
				w.Pass(59 * time.Second)
				w.WantPosition(0, 2)
				w1.Bus.Inject(func(op membus.Op) membus.Fate {
					if op.Label == "ping" || op.Label == "announce" || op.Label == "observe" {
						return membus.Deliver
					}
					if int(requests.Add(1)) > die {
						return membus.Delay // it never arrives
					}
					return membus.Deliver
				})
				w.Pass(2 * time.Second)
				w1.Crash()
				cfg.ID = "w2"
				w.process(cfg, nil)
				w.Pass(time.Minute)
				if got := w.Receipts("s"); len(got) != 3 {
					t.Errorf("%d events were handled, want e1, the timer and its follow-up", len(got))
				}
			})
		})
	}
}

// clock is a wall clock that can be set.
type clock struct{ off atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

func (c *clock) jump(d time.Duration) { c.off.Add(int64(d)) }

func TestDue_AClockJumpFiresWhatIsDueAndLosesNothing(t *testing.T) {
	for _, idle := range []time.Duration{-1, time.Second} {
		t.Run(fmt.Sprint("idle ", idle), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				var c clock
				w.process(worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Idle: idle}, Now: c.now}, nil)
				start := time.Now()
				w.sendLater("s", "e1", start.Add(time.Hour))
				w.sendLater("s", "e2", start.Add(2*time.Hour))
				w.sendLater("s", "e3", start.Add(3*time.Hour))
				w.Pass(20 * time.Second)
				c.jump(time.Hour)
				w.Pass(11 * time.Second)
				w.wantHandled("s", "e1")
				c.jump(-time.Hour)
				w.Pass(59 * time.Minute)
				w.wantHandled("s", "e1")
				c.jump(5 * time.Hour)
				w.Pass(11 * time.Second)
				w.wantHandled("s", "e1", "e2", "e3")
				c.jump(-5 * time.Hour)
				w.Pass(4 * time.Hour)
				w.wantHandled("s", "e1", "e2", "e3")
			})
		})
	}
}

func TestDue_TheClocksOfTwoOwnersAreAnHourApart(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t))}
				w1 := w.process(cfg, nil)
				start := time.Now()
				w.sendLater("s", "e1", start.Add(10*time.Minute))
				w.sendLater("s", "e2", start.Add(30*time.Minute))
				w.Pass(11 * time.Minute)
				w.wantHandled("s", "e1")
				w1.Crash()
				var c clock
				c.jump(off)
				cfg.ID, cfg.Now = "w2", c.now
				w.process(cfg, nil)
				w.Pass(15 * time.Second)
				if off > 0 {
					w.wantHandled("s", "e1", "e2")
				}
				w.Pass(2 * time.Hour)
				w.wantHandled("s", "e1", "e2")
				if at := w.handledAt("s", "e2"); at.Before(start.Add(30 * time.Minute)) {
					t.Errorf("e2 was handled at %s by its owner's clock", at.Sub(start))
				}
			})
		})
	}
}

// The next owner of the space knows a timer that an application has set, whichever processes have died.
func TestDue_ATimerOfAnAttachedRuntimeFiresThoughItAndTheOwnerDieAtOnce(t *testing.T) {
	for _, follow := range []bool{false, true} {
		t.Run(fmt.Sprint("follow-up ", follow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: time.Hour}}
				w.Send("s", "now", "e1")
				w1 := w.process(worker.Config{ID: "w1", Programs: cfg.Programs}, nil)
				w.EventuallyEnded("s", 1)
				w.Pass(5 * time.Second)
				w.WantPosition(0, 1)
				b := w.Server.Connect("app")
				a, err := worker.Attach(t.Context(), b, worker.AttachConfig{ID: "app", Space: "s"})
				if err != nil {
					t.Fatal(err)
				}
				w1.Crash()
				err = a.Transact(t.Context(), "app", func(tx *space.Tx) error {
					if follow {
						tx.Send("s", "now", nil)
					} else {
						tx.SetTimer("t", "now", tx.Now().Add(time.Minute), nil)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				a.Kill()
				b.Kill()
				w.Pass(10 * time.Minute)
				cfg.ID = "w2"
				w.process(cfg, nil)
				w.Pass(15 * time.Second)
				if n := len(w.Receipts("s")); n != 2 {
					t.Errorf("%d events were handled, want e1 and those of the application", n)
				}
			})
		})
	}
}

// 100,000 events wait in one space: each is an item of its own, and commits contain changes only.
func TestLater_ManyEventsWaitInOneSpaceAsSeparateItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5000
		w := newWorld(t, 1)
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Idle: -1}}
		w1 := w.process(cfg, nil)
		at := time.Now().Add(time.Hour)
		for i := range n {
			w.sendLater("s", fmt.Sprint("e", i), at)
		}
		w.Eventually("all items are saved", func() bool { return len(w.Server.LoadState("s").Later) == n })
		if m := w.Server.LoadState("s").Mark; len(m.Data) > 1000 {
			t.Errorf("the mark has %d bytes", len(m.Data))
		}
		w.sendLater("s", "one-more", at)
		w.Pass(5 * time.Second)
		last := w.Server.ReadLog("s", w.Server.Head("s")-1, 1)
		if len(last[0].Data) > 1000 {
			t.Errorf("a commit about one event has %d bytes", len(last[0].Data))
		}
		w1.Shutdown()
		cfg.ID = "w2"
		w.process(cfg, nil)
		w.Pass(2 * time.Hour)
		want := make([]string, 0, n+1)
		for i := range n {
			want = append(want, fmt.Sprint("e", i))
		}
		w.wantHandled("s", append(want, "one-more")...)
		waiting := slices.DeleteFunc(w.Server.LoadState("s").Later, func(d model.StateDoc) bool { return d.Data == nil })
		if len(waiting) > 0 {
			t.Errorf("%d handled events are saved as waiting", len(waiting))
		}
	})
}

func TestDue_AnInvalidTimeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t))}, nil)
		w.SendMessage(model.Message{Space: "s", Stream: "now", ID: "e1", NotBefore: -1})
		w.EventuallyEnded("s", 1)
		if rc := w.Receipts("s")[0]; rc.Outcome != model.Refused || !strings.Contains(rc.Error, "milliseconds") {
			t.Errorf("%+v", rc)
		}
	})
}

func TestFindReceipt_OfDelayedEventsInReusedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t))}, nil)
		at := time.Now().Add(time.Minute)
		w.sendLater("s", "e1", at)
		w.Send("s", "remind", "e2", `{"in":90000,"on":"now"}`)
		w.EventuallyEnded("s", 1)
		find := func(stream, id string) string {
			h, err := history.FindReceipt(t.Context(), w.Client, "s", stream, id)
			if err != nil {
				return err.Error()
			}
			if h == nil {
				return "none"
			}
			return string(h.Tx.Receipt.Outcome)
		}
		var timer string
		for _, c := range w.Commits("s") {
			for i := range c.Txs {
				for _, m := range c.Txs[i].Sends {
					timer = m.ID
				}
			}
		}
		for range 3 { // before and after it is saved
			if a, b := find("now", "e1"), find("now", timer); a != "none" || b != "none" {
				t.Errorf("while they wait: %s, %s", a, b)
			}
			w.Pass(5 * time.Second)
		}
		waiting, err := history.FindWaiting(t.Context(), w.Client, "s", "now", "e1")
		if err != nil || waiting == nil || waiting.NotBefore != model.NotBefore(at) {
			t.Errorf("it waits: %+v, %v", waiting, err)
		}
		w.Pass(2 * time.Minute)
		for i := range 3 { // with empty slots, and with slots that are used again
			if a, b := find("now", "e1"), find("now", timer); a != "handled" || b != "handled" {
				t.Errorf("when they are handled: %s, %s", a, b)
			}
			w.sendLater("s", fmt.Sprint("again", i), time.Now().Add(time.Hour))
			w.sendLater("s", fmt.Sprint("more", i), time.Now().Add(time.Hour))
			w.Pass(5 * time.Second)
		}
	})
}

// A log that is purged past an event that still waits does not make the event count as forgotten.
func TestFindReceipt_OfAnEventThatWaitedPastTheStartOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.process(worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: time.Second}}, nil)
		w.sendLater("s", "e1", time.Now().Add(time.Minute))
		w.Pass(3 * time.Second)
		began := w.Server.Head("s")
		w.Send("s", "now", "e2")
		w.EventuallyEnded("s", 1)
		w.Pass(3 * time.Second)
		w.Server.PurgeLog("s", began+1)
		if h, err := history.FindReceipt(t.Context(), w.Client, "s", "now", "e1"); h != nil || err != nil {
			t.Errorf("while it waits: %+v, %v", h, err)
		}
		w.Pass(time.Minute)
		h, err := history.FindReceipt(t.Context(), w.Client, "s", "now", "e1")
		if err != nil || h == nil || h.Tx.Receipt.Outcome != model.Handled {
			t.Fatalf("when it is handled: %+v, %v", h, err)
		}
		w.Send("s", "now", "e3")
		w.EventuallyEnded("s", 3)
		w.Pass(3 * time.Second)
		w.Server.PurgeLog("s", h.Seq+1)
		if _, err := history.FindReceipt(t.Context(), w.Client, "s", "now", "e1"); !errors.Is(err, history.ErrForgotten) {
			t.Errorf("after the log has forgotten it: %v", err)
		}
	})
}

// The wakeup that an attached runtime has saved for its own timer does not replace an earlier one.
func TestDue_TheTimerOfAnAttachedRuntimeHidesNoEarlierWakeup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		cfg := worker.Config{ID: "w1", Programs: worldtest.Always(reminders(t)), Options: worker.Options{Checkpoint: 5 * time.Second, Idle: -1}}
		w1 := w.process(cfg, nil)
		w.sendLater("s", "e1", time.Now().Add(time.Minute))
		w.Pass(time.Second)
		b := w.Server.Connect("app")
		a, err := worker.Attach(t.Context(), b, worker.AttachConfig{ID: "app", Space: "s"})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Transact(t.Context(), "app", func(tx *space.Tx) error {
			tx.SetTimer("t", "now", tx.Now().Add(time.Hour), nil)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.Pass(15 * time.Second)
		w.WantPosition(0, 1)
		a.Kill()
		b.Kill()
		w1.Crash()
		cfg.ID = "w2"
		w.process(cfg, nil)
		w.Pass(time.Minute)
		w.wantHandled("s", "e1")
	})
}
