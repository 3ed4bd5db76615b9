package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// relay is a program whose event "pay" records its own id under "paid" and sends it to the space in the
// payload, which records it under "got", both with counts. The sends of "later" are delayed at the target for
// half an hour. "via" and "timed" have the effect of "pay" through an event that the space sends to itself,
// at once or ten seconds later.
func relay(t *testing.T) *space.Program {
	t.Helper()
	p := space.NewProgram("relay")
	note := func(tx *space.Tx, doc, key string) {
		n, _ := tx.Get(doc, key).AsInt()
		tx.Set(doc, n+1, key)
	}
	err := p.Handle("pay", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		note(tx, "paid", ev.ID)
		to, _ := ev.Payload.AsString()
		tx.Send(to, "got", ev.ID)
		return model.Value{}, nil
	})
	if err == nil {
		err = p.Handle("later", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			to, _ := ev.Payload.AsString()
			tx.SendAfter(to, "got", 30*time.Minute, ev.ID)
			return model.Value{}, nil
		})
	}
	hand := func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		id, _ := ev.Payload.Get("id").AsString()
		to, _ := ev.Payload.Get("to").AsString()
		note(tx, "paid", id)
		tx.Send(to, "got", id)
		return model.Value{}, nil
	}
	own := func(send func(tx *space.Tx, payload map[string]any)) space.Handler {
		return func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			to, _ := ev.Payload.AsString()
			send(tx, map[string]any{"id": ev.ID, "to": to})
			return model.Value{}, nil
		}
	}
	if err == nil {
		err = p.Handle("hand", hand)
	}
	if err == nil {
		err = p.Handle("via", own(func(tx *space.Tx, payload map[string]any) { tx.Send(tx.Space(), "hand", payload) }))
	}
	if err == nil {
		err = p.Handle("timed", own(func(tx *space.Tx, payload map[string]any) { tx.SendAfter(tx.Space(), "hand", 10*time.Second, payload) }))
	}
	if err == nil {
		err = p.Handle("got", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			id, _ := ev.Payload.AsString()
			note(tx, "got", id)
			return model.String("got " + id), nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reissue is a deployment in which the space from sends to the space to, and the partition of from goes back.
type reissue struct {
	*world
	from, to string
	life     int
	stop     func()
	asleep   atomic.Bool // the space to has no program
}

func newReissue(t *testing.T) *reissue { return newReissueOf(t, membus.Config{Partitions: 2}) }

func newReissueOf(t *testing.T, cfg membus.Config) *reissue {
	r := &reissue{world: newWorldOf(t, cfg), from: worldtest.SpacesIn(0, 2, 1)[0], to: worldtest.SpacesIn(1, 2, 1)[0]}
	r.start()
	return r
}

// start starts a worker and a coordinator.
func (r *reissue) start() {
	r.life++
	p := r.process(worker.Config{ID: fmt.Sprint("w", r.life), Programs: r.program}, nil)
	c := r.Coordinator()
	r.stop = func() { p.Crash(); c.Stop() }
}

func (r *reissue) program(name string) (*space.Program, error) {
	if name == r.to && r.asleep.Load() {
		return nil, nil
	}
	return relay(r.T), nil
}

// goBack makes the partition of from go back, under running processes or while none runs.
func (r *reissue) goBack(to *membus.Snapshot, lane, alive bool) {
	if !alive {
		r.stop()
	}
	r.Server.GoBackIn(0, to, lane)
	if !alive {
		r.Pass(time.Second)
		r.start()
	}
}

func (r *reissue) pay(first, last int) {
	r.Helper()
	for i := first; i <= last; i++ {
		r.Send(r.from, "pay", fmt.Sprint("e", i), `"`+r.to+`"`)
	}
}

// counted returns how often each event has taken effect in a document.
func (r *reissue) counted(space, doc string) model.Value {
	r.Helper()
	return r.Read(space, doc).Value
}

// wantOnce waits until n events have taken effect in a document, and checks that each did so once.
func (r *reissue) wantOnce(space, doc string, n int) {
	r.Helper()
	r.Eventually(fmt.Sprintf("%d events have taken effect in %s of %s", n, doc, space), func() bool { return r.counted(space, doc).Len() >= n })
	r.Pass(5 * time.Second)
	for id, v := range r.counted(space, doc).All() { // any order: each on its own
		if times, _ := v.AsInt(); times != 1 {
			r.Errorf("%s has taken effect %d times in %s of %s", id, times, doc, space)
		}
	}
	if got := r.counted(space, doc).Len(); got != n {
		r.Errorf("%d events have taken effect in %s of %s, want %d", got, doc, space, n)
	}
}

// One partition loses commits whose sends the target has handled. What its space sends afterwards takes
// effect there once, whether the space handles the events of the lost commits again (because its lane has
// them) or not, and whichever worker serves it. The effects of the lost commits' sends remain, and are not
// repeated.
func TestReissue_SendsUnderReissuedPositionsArriveOnce(t *testing.T) {
	for _, alive := range []bool{true, false} {
		for _, lane := range []bool{true, false} {
			for _, before := range []int{0, 5} {
				t.Run(fmt.Sprintf("alive %v, lane lost %v, after %d", alive, lane, before), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newReissue(t)
						r.pay(1, before)
						r.wantOnce(r.to, "got", before)
						old := r.Server.Snapshot()
						r.pay(6, 8)
						r.wantOnce(r.to, "got", before+3)
						r.goBack(old, lane, alive)
						r.pay(9, 12)
						r.wantOnce(r.to, "got", before+7)
						if r.pay(6, 8); lane { // the events are lost, so they are new to the space, but known to the target
							r.wantOnce(r.from, "paid", before+7)
						}
						r.wantOnce(r.to, "got", before+7)
						if r.Log.Count("given out again") == 0 {
							t.Errorf("nothing was logged:\n%s", r.Log)
						}
						if d := r.Server.ReadDead("", 0, 10); len(d) > 0 {
							t.Errorf("dead letters: %+v", d)
						}
					})
				})
			}
		}
	}
}

// recallFails is a bus that fails to read the log of a space for a while.
type recallFails struct {
	*membus.Bus
	space string
	fails atomic.Int64 // remaining failures
}

func (b *recallFails) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if space == b.space && b.fails.Add(-1) >= 0 {
		return nil, errStore
	}
	return b.Bus.ReadLog(ctx, space, after, limit)
}

// The first reads of what the target has handled fail. A failure does not count as an answer, so the read is
// retried.
func TestReissue_AFailedReadOfHandledSendsIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReissue(t)
		r.pay(1, 5)
		r.wantOnce(r.to, "got", 5)
		old := r.Server.Snapshot()
		r.pay(6, 8)
		r.wantOnce(r.to, "got", 8)
		r.stop()
		r.Server.GoBackIn(0, old, false)
		r.Pass(time.Second)
		bus := &recallFails{space: r.to}
		r.process(worker.Config{ID: "w2", Programs: r.program}, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		r.Send(r.to, "got", "wakes", `"wakes"`)
		r.wantOnce(r.to, "got", 9)
		bus.fails.Store(3)
		r.Coordinator() // it releases what the origin sends
		r.pay(9, 12)
		r.wantOnce(r.to, "got", 13)
		if n := bus.fails.Load(); n >= 0 {
			t.Errorf("%d reads did not fail", n)
		}
	})
}

// The target sleeps while its origin goes back. It finds in its lane the sends of the lost commits and the
// later ones, and has handled none of them.
func TestReissue_ATargetThatHasHandledNoneHandlesEachOnce(t *testing.T) {
	for _, lane := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newReissue(t)
			r.pay(1, 5)
			r.wantOnce(r.to, "got", 5)
			old := r.Server.Snapshot()
			r.asleep.Store(true)
			r.goBack(r.Server.Snapshot(), false, false) // the target is no longer in memory
			r.pay(6, 8)
			r.Eventually("the lost commits' sends are in the lane", func() bool { return len(r.Server.ReadLane(r.to, 0, 100)) == 8 })
			r.goBack(old, lane, true)
			r.pay(9, 10)
			n := 13 // including those that the space has handled again
			if lane {
				n = 10
			}
			r.Eventually("all sends are in the lane", func() bool { return len(r.Server.ReadLane(r.to, 0, 100)) == n })
			r.asleep.Store(false)
			r.Send(r.to, "got", "wakes", `"wakes"`)
			r.wantOnce(r.to, "got", 11)
		})
	}
}

// The target is taken over while its origin repeats its sends. What it knows about reissued positions is
// saved.
func TestReissue_ATargetThatIsTakenOverKnowsWhatItHadHandled(t *testing.T) {
	for _, saved := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newReissue(t)
			old := r.Server.Snapshot()
			r.pay(1, 3)
			r.wantOnce(r.to, "got", 3)
			r.goBack(old, true, false)
			r.pay(1, 1)
			if saved {
				r.Pass(10 * time.Second)
			} else {
				r.Eventually("the event has ended again", func() bool { return len(r.Receipts(r.to)) == 4 })
			}
			r.stop()
			r.start()
			r.pay(2, 5)
			r.wantOnce(r.to, "got", 5)
		})
	}
}

// What a space sends through events to itself is identified by the event that caused it, however long it
// waited, and whether or not the space was saved in between.
func TestReissue_SendsThroughTheSpaceItselfTakeEffectOnce(t *testing.T) {
	for _, stream := range []string{"via", "timed"} {
		for _, pause := range []time.Duration{0, 5 * time.Second} { // with or without a takeover while it waits
			synctest.Test(t, func(t *testing.T) {
				r := newReissue(t)
				old := r.Server.Snapshot()
				r.Send(r.from, stream, "e1", `"`+r.to+`"`)
				r.wantOnce(r.to, "got", 1)
				r.goBack(old, false, false)
				if pause > 0 {
					r.Pass(pause)
					r.stop()
					r.start()
				}
				r.pay(2, 2)
				r.Pass(time.Minute)
				r.wantOnce(r.from, "paid", 2)
				r.wantOnce(r.to, "got", 2)
			})
		}
	}
}

// An event that ends like an earlier one has its result, and a tree that ends with it: it stands for what the
// lost commit had sent.
func TestReissue_ARepeatedSendHasItsFirstResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReissue(t)
		old := r.Server.Snapshot()
		r.pay(1, 1)
		r.wantOnce(r.to, "got", 1)
		r.goBack(old, false, false)
		r.wantOnce(r.from, "paid", 1)
		r.Eventually("both events have ended", func() bool { return len(r.Receipts(r.to)) == 2 })
		all := r.Receipts(r.to)
		if all[0].Event == all[1].Event {
			t.Errorf("two events have the id %s", all[0].Event)
		}
		for _, rc := range all {
			if rc.Outcome != model.Handled || rc.Result.String() != `"got e1"` {
				t.Errorf("%+v", rc)
			}
		}
		tree, err := history.RequestTree(t.Context(), r.Client, history.TreeQuery{Event: "e1", Space: r.from})
		if err != nil || !tree.Settled || tree.Events != 2 || tree.States[lineage.Handled] != 2 {
			t.Errorf("the tree: %+v, %v", tree, err)
		}
	})
}

// A delayed send of a lost commit already waits at the target, and must not wait there twice.
func TestReissue_ADelayedSendWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReissue(t)
		old := r.Server.Snapshot()
		r.Send(r.from, "later", "e1", `"`+r.to+`"`)
		r.Eventually("it waits", func() bool { return len(r.Server.LoadState(r.to).Later) == 1 })
		r.goBack(old, false, true)
		r.pay(2, 2)
		r.wantOnce(r.to, "got", 1)
		r.Pass(time.Hour)
		r.wantOnce(r.to, "got", 2)
	})
}

// Attached runtimes send beside the owner, with positions in terms of their own. Their sends arrive once and
// in order, even if the runtimes return before the owner after the log has gone back.
func TestReissue_SendsOfAnAttachedRuntimeArriveOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReissue(t)
		attach := func(id string) *worker.Attachment {
			a, err := worker.Attach(t.Context(), r.Client, worker.AttachConfig{ID: id, Space: r.from, Program: relay(t)})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		tell := func(a *worker.Attachment, what string) {
			err := a.Transact(t.Context(), "editor", func(tx *space.Tx) error { tx.Send(r.to, "got", what); return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		a := attach("a1")
		r.pay(1, 2)
		tell(a, "a1")
		r.pay(3, 3)
		tell(a, "a2")
		r.wantOnce(r.to, "got", 5)
		old := r.Server.Snapshot()
		tell(a, "a3")
		r.pay(4, 4)
		tell(a, "a4")
		r.wantOnce(r.to, "got", 8)
		_ = a.Close(t.Context()) // the attachment may have ended
		r.stop()
		r.Server.GoBackIn(0, old, true)
		a = attach("a5")
		tell(a, "a6")
		r.start()
		tell(a, "a7")
		r.pay(5, 6)
		tell(a, "a8")
		r.wantOnce(r.to, "got", 13)
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The server's clock was set back along with the loss. Sends after that are refused, each with a dead letter,
// and can be redriven.
func TestReissue_AServerWhoseClockIsSetBackLosesNothingSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		ahead.Store(int64(time.Hour))
		r := newReissueOf(t, membus.Config{Partitions: 2, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		old := r.Server.Snapshot()
		r.pay(1, 3)
		r.wantOnce(r.to, "got", 3)
		r.stop()
		r.Server.GoBackIn(0, old, true)
		ahead.Store(0)
		r.start()
		r.pay(4, 6)
		r.Eventually("each send has a dead letter", func() bool { return len(r.Server.ReadDead("", 0, 10)) == 3 })
		for _, d := range r.Server.ReadDead("", 0, 10) {
			if !strings.Contains(d.Error, "gone back") {
				t.Errorf("the dead letter: %s", d.Error)
			}
			if _, _, err := history.Redrive(t.Context(), r.Client, d.Space, d.Stream, d.Event); err != nil {
				t.Error(err)
			}
		}
		r.wantOnce(r.to, "got", 6)
		r.Pass(2 * time.Hour)
		r.pay(7, 8) // the space has been taken over, with a later term than the lost ones
		r.wantOnce(r.to, "got", 8)
	})
}

// An accepted loss leaves tombstones in place of the lost messages, and later sends arrive after them.
func TestReissue_SendsContinueAfterAnAcceptedLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReissue(t)
		r.pay(1, 3)
		r.wantOnce(r.to, "got", 3)
		r.stop()
		p := r.process(worker.Config{ID: "alone", Programs: worldtest.Always(relay(t))}, nil) // without a coordinator: sends are not released
		end := r.Server.Head(r.from)
		r.pay(4, 5)
		r.wantOnce(r.from, "paid", 5)
		r.Pass(5 * time.Second) // until the space is saved
		p.Crash()
		r.Server.LoseLog(0, end)
		r.start()
		lost, err := loss.InSpace(t.Context(), r.Client, r.from)
		if err != nil || lost == nil || lost.Events() != 2 {
			t.Fatalf("%+v, %v", lost, err)
		}
		if err := lost.Accept(t.Context(), r.Client, nil); err != nil {
			t.Fatal(err)
		}
		r.pay(6, 8)
		r.wantOnce(r.to, "got", 6)
		if d := r.Server.ReadDead("", 0, 10); len(d) != 2 {
			t.Errorf("dead letters: %+v", d)
		}
	})
}

// The partition of the target goes back as a whole: its lane has lost what other partitions had sent, and its
// state has lost how far it had read. The others send again, even with coordinators that start later, and no
// event waits forever.
func TestReissue_LostSendsAreRepeatedToATargetThatWentBack(t *testing.T) {
	for _, alive := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newReissue(t)
			r.pay(1, 3)
			r.wantOnce(r.to, "got", 3)
			old := r.Server.Snapshot()
			r.pay(4, 6)
			r.wantOnce(r.to, "got", 6)
			if !alive {
				r.stop()
			}
			r.Server.GoBackIn(1, old, true)
			if !alive {
				r.Pass(time.Second)
				r.start()
			}
			r.pay(7, 9)
			r.wantOnce(r.to, "got", 9)
			r.wantOnce(r.from, "paid", 9)
			r.Pass(10 * time.Second)
			r.stop()
			r.start() // which finds the lane as it was saved
			r.pay(10, 10)
			r.wantOnce(r.to, "got", 10)
			if n := r.Log.Count("have lost their ends"); n != 1 {
				t.Errorf("the loss was logged %d times", n)
			}
		})
	}
}
