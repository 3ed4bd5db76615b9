package worker_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/loss"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

// accept accepts the losses of a partition, and returns them.
func (w *world) accept(partition int) []*loss.Loss {
	w.Helper()
	lost, err := loss.InPartition(w.Context(), w.Client, partition)
	for _, l := range lost {
		if err == nil {
			err = l.Accept(w.Context(), w.Client, nil)
		}
	}
	if err != nil {
		w.Fatal(err)
	}
	if left, err := loss.InPartition(w.Context(), w.Client, partition); len(left) > 0 || err != nil {
		w.Fatalf("after accepting, the losses are %v, %v", left, err)
	}
	return lost
}

// wantLoss waits until a worker reports exactly one loss, and compares it.
func (w *world) wantLoss(p *process, want model.LossError) {
	w.Helper()
	w.Eventually("the worker reports the loss", func() bool { return len(p.Figures().Losses) > 0 })
	f := p.Figures()
	got := f.Losses[0]
	if f.LossCount != 1 || got.Kind != want.Kind || got.Space != want.Space || got.Known != want.Known || got.Found != want.Found {
		w.Errorf("the worker reports %+v, want %+v", f.Losses, want)
	}
}

const refusedLog = "refused: the store has lost what is known of it"

// A lane that was replaced by an empty one is refused, and other partitions continue. Once the loss is
// accepted, new events are handled once, and handled events are not handled again.
func TestLoss_AnEmptyLaneIsRefusedUntilItIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		s, other := worldtest.SpacesIn(0, 2, 1)[0], worldtest.SpacesIn(1, 2, 1)[0]
		w.Coordinator()
		first := w.worker("w1")
		w.adds(s, 10)
		first.Shutdown()
		w.Server.LoseLane(0, 0)
		second := w.worker("w2")
		w.wantLoss(second, model.LossError{Kind: model.LossOfLane, Known: 10, Found: 0})
		w.adds(other, 3)
		w.Pass(5 * time.Minute)
		if n := w.Log.Count(refusedLog); n < 1 || n > 4 {
			t.Errorf("the loss was logged %d times in five minutes", n)
		}
		w.Send(s, "add", "n1") // the lane is no longer empty, and receipts decide what is handled
		w.EventuallyEnded(s, 11)
		w.wantHandled(s, append(worldtest.Numbered(10), "n1")...)
		if got := second.Figures(); got.LossCount != 0 {
			t.Errorf("the worker still reports %v", got.Losses)
		}
		if lost := w.accept(0); len(lost) != 0 {
			t.Errorf("accepted %v", lost)
		}
	})
}

func TestLoss_AnEmptyLaneIsServedOnceTheLossIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Coordinator()
		first := w.worker("w1")
		w.adds("s", 10)
		first.Shutdown()
		w.Server.LoseLane(0, 0)
		second := w.worker("w2")
		w.wantLoss(second, model.LossError{Kind: model.LossOfLane, Known: 10, Found: 0})
		w.accept(0)
		w.Eventually("the partition is served", func() bool { return second.Figures().LossCount == 0 })
		w.Send("s", "add", "n1")
		w.EventuallyEnded("s", 11)
		for _, id := range append(worldtest.Numbered(10), "n1") {
			if !w.sendAgain("s", "add", id) {
				t.Errorf("a duplicate of event %s was taken for a new event", id)
			}
		}
		w.Pass(time.Minute)
		w.wantHandled("s", append(worldtest.Numbered(10), "n1")...)
	})
}

// A lane whose events have no receipts left ends before the saved position. Events that were in it when the
// position was saved have been handled; later ones have not.
func TestLoss_WithoutReceiptsTheTimeOfThePositionDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.worker("w1")
		w.adds("s", 6)
		first.Shutdown()
		w.Server.LoseLane(0, 2)
		w.Server.LoseLog(0, 0)
		w.Pass(time.Minute)
		w.Send("s", "add", "n1") // at 3, which the cursor counts as done
		second := w.worker("w2")
		w.wantLoss(second, model.LossError{Kind: model.LossOfLane, Known: 6, Found: 3})
		known := w.Server.LoadState("s").Mark.Seq
		lost := w.accept(0)
		if len(lost) != 2 || lost[1].Kind != model.LossOfLog || lost[1].Known != known || lost[1].Found != 0 {
			t.Errorf("the losses are %+v", lost)
		}
		w.Eventually("n1 is handled", func() bool { return len(w.Receipts("s")) > 0 })
		w.Send("s", "add", "n2")
		w.EventuallyEnded("s", 2)
		w.Pass(time.Minute)
		w.wantHandled("s", "n1", "n2")
		if got := w.Doc("s", "n"); got != "8" {
			t.Errorf("n is %s, want 8", got)
		}
	})
}

// A log has lost its end, and the state reflects more. The space is refused, and the others are not. Once the
// loss is accepted, the space continues from its state, lost receipts are reported as lost, and its next
// sends arrive, although their targets never received the lost ones.
func TestLoss_ALogThatEndsBeforeItsStateIsRefusedUntilItIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		c := w.Coordinator()
		first := w.worker("w1")
		w.Send("s", "forward", "e1", `"b"`)
		w.EventuallyEnded("b", 1)
		released := w.Server.Head("s")
		w.Eventually("the send is released", func() bool { return w.Server.LoadPosition(0, "released") >= released })
		c.Stop()
		for i := 2; i <= 4; i++ {
			w.Send("s", "forward", fmt.Sprint("e", i), `"b"`)
		}
		w.EventuallyEnded("s", 4)
		first.Shutdown()
		known := w.Server.Head("s")
		head := w.Server.ReadLog("s", 0, 100)[1].Seq // of the first forward
		w.Server.LoseLog(0, max(head, w.Server.Head("b")))
		found := w.Server.Head("s")
		second := w.worker("w2")
		w.Send("s", "forward", "n1", `"b"`)
		w.wantLoss(second, model.LossError{Kind: model.LossOfLog, Space: "s", Known: known, Found: found})
		w.Send("other", "add", "o1")
		w.EventuallyEnded("other", 1)
		w.Pass(5 * time.Minute)
		if n := w.Log.Count(refusedLog); n < 1 || n > 4 {
			t.Errorf("the loss was logged %d times in five minutes", n)
		}
		if n := len(w.Server.ReadLog("s", 0, 100)); n != 2 {
			t.Errorf("the log of the space has %d commits", n)
		}
		lost := w.accept(0)
		if len(lost) != 1 || lost[0].Events() != 3 || lost[0].Gone[0].To != "b" {
			t.Errorf("the losses are %+v", lost)
		}
		w.Coordinator()
		w.Eventually("n1 arrives", func() bool {
			rcs := w.Receipts("b")
			return len(rcs) > 0 && rcs[len(rcs)-1].Outcome == model.Handled && len(rcs) == 5
		})
		if got := w.Doc("s", "n"); got != "5" {
			t.Errorf("n of s is %s, want 5", got)
		}
		if got := w.Doc("b", "n"); got != "2" {
			t.Errorf("n of b is %s, want 2", got)
		}
		if _, err := history.FindReceipt(t.Context(), w.Client, "s", "forward", "e3"); !errors.Is(err, history.ErrForgotten) {
			t.Errorf("the receipt of e3: %v, want %v", err, history.ErrForgotten)
		}
		if !w.sendAgain("s", "forward", "e3") {
			t.Error("e3 was taken for a new event, although its lane has it")
		}
		dead, err := w.Client.ReadDead(t.Context(), "b", 0, 10)
		if err != nil || len(dead) != 3 {
			t.Errorf("dead letters: %v, %v, want three", dead, err)
		}
		w.Eventually("no loss is reported any more", func() bool { return second.Figures().LossCount == 0 })
	})
}

// A space without events is served again, too, and its refusal is remembered until then.
func TestLoss_ASpaceWithoutEventsIsServedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.worker("w1")
		w.adds("s", 3)
		first.Shutdown()
		known := w.Server.Head("s")
		w.Server.LoseLog(0, 1)
		second := w.worker("w2")
		seen := w.watch("s", "n")
		w.wantLoss(second, model.LossError{Kind: model.LossOfLog, Space: "s", Known: known, Found: 1})
		seen.end()
		since := second.Figures().Losses[0].Since
		w.Pass(2 * time.Minute)
		w.wantLoss(second, model.LossError{Kind: model.LossOfLog, Space: "s", Known: known, Found: 1})
		if now := second.Figures().Losses[0].Since; !now.Equal(since) {
			t.Errorf("the loss is reported since %v, and was since %v", now, since)
		}
		w.accept(0)
		w.Eventually("no loss is reported any more", func() bool { return second.Figures().LossCount == 0 })
		w.Send("s", "add", "n1")
		w.Eventually("the event is handled", func() bool { return w.Doc("s", "n") == "4" })
	})
}

// A lost state whose log was purged is reported, and cannot be accepted.
func TestLoss_AStateThatIsLostCannotBeAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.worker("w1")
		w.adds("s", 3)
		first.Shutdown()
		w.Server.PurgeLog("s", w.Server.Head("s"))
		w.Server.ForgetState("s")
		second := w.process(worker.Config{ID: "w2"}, nil)
		w.Send("s", "add", "n1")
		w.wantLoss(second, model.LossError{Kind: model.LossOfState, Space: "s"})
		l, err := loss.InSpace(t.Context(), w.Client, "s")
		if err != nil || l == nil {
			t.Fatalf("the losses are %v, %v", l, err)
		}
		if err := l.Accept(t.Context(), w.Client, nil); !errors.Is(err, loss.ErrState) {
			t.Errorf("accepting it: %v", err)
		}
	})
}

// A log that ends before what coordinators have released assigns sequences again. A coordinator that starts
// after the loss releases what is sent under them.
func TestLoss_ALogThatEndsBeforeWhatWasReleasedIsReleasedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.Server.SavePosition(0, "released", 50)
		w.worker("w1")
		w.Coordinator()
		w.Send("s", "forward", "e1", `"b"`)
		w.EventuallyEnded("b", 1)
		w.Send("s", "forward", "e2", `"b"`)
		w.EventuallyEnded("b", 2)
		w.Pass(time.Minute)
		if n := len(w.Receipts("b")); n != 2 {
			t.Errorf("b handled %d events, want 2", n)
		}
		if at, head := w.Server.LoadPosition(0, "released"), w.Server.Head("b"); at != head {
			t.Errorf("the saved position is %d, the log ends at %d", at, head)
		}
	})
}

// The worker died after it had saved a document and before it saved the mark, and the log has lost the
// commit. A takeover would otherwise succeed, and the log assign the document's sequence again.
func TestLoss_ALogThatEndsBeforeADocumentIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		bus := &halfway{}
		first := w.process(worker.Config{ID: "w1", Options: worker.Options{Checkpoint: 100 * time.Millisecond}}, func(b *membus.Bus) port.Bus {
			bus.Bus = b
			return bus
		})
		w.Send("s", "add", "e1")
		w.EventuallyEnded("s", 1)
		w.Pass(time.Second)
		found := w.Server.Head("s")
		bus.on.Store(true)
		w.Send("s", "add", "e2")
		w.EventuallyEnded("s", 2)
		w.Eventually("half of it is saved", func() bool { return bus.done.Load() > 0 })
		first.Crash()
		known := w.Server.Head("s")
		w.Server.LoseLog(0, found)
		second := w.worker("w2")
		w.Send("s", "add", "e3")
		w.wantLoss(second, model.LossError{Kind: model.LossOfLog, Space: "s", Known: known, Found: found})
		if n := w.Server.Head("s"); n != found {
			t.Errorf("the log has grown to %d", n)
		}
	})
}
