package space

import (
	"errors"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// waitingHead returns a host whose first event, e1, waits at the head after a transient error. e2 is behind
// it.
func waitingHead(t *testing.T, expires int64) (*world, *host) {
	t.Helper()
	w := newWorld(t)
	p := newProgram(t).set().handle("pay", func(*Tx, *model.Event) any { return Transient(errors.New("not now")) })
	h := w.owner("w1", p.Program)
	h.wall = zeroHour
	w.publish(model.Event{Space: home, Stream: "pay", ID: "e1", Expires: expires})
	w.send(home, "set", "e2", map[string]any{"x": 1})
	h.run()
	if all := w.receipts(home); len(all) > 0 {
		t.Fatalf("there are receipts already: %v", all)
	}
	return w, h
}

// An event that waits at the head expires there: Ready.Due is that time, and then the next event is handled.
func TestExpires_TheHeadIsGivenUpWhenItsTimeHasPassed(t *testing.T) {
	w, h := waitingHead(t, zeroHour+10)
	if h.last.Due != zeroHour+11 {
		t.Errorf("Ready.Due is %d, want %d", h.last.Due, zeroHour+11)
	}
	h.wall = zeroHour + 10
	h.run()
	if all := w.receipts(home); len(all) > 0 {
		t.Fatalf("it has ended before it expired: %v", all)
	}
	h.wall = zeroHour + 11
	h.run()
	if rc := w.receipt(home, "e1"); rc.Outcome != model.Expired || rc.Lane == 0 {
		t.Errorf("the receipt is %+v", rc)
	}
	if rc := w.receipt(home, "e2"); rc.Outcome != model.Handled {
		t.Errorf("the receipt of the next event is %+v", rc)
	}
}

// A mark written by another runtime ends the head at once, although its pause is not over, and is then
// removed.
func TestCancel_TheWaitingHeadIsCancelled(t *testing.T) {
	w, h := waitingHead(t, 0)
	other := w.attached("app", newProgram(t).Program, func(c *Config) { c.WithoutEvents = true })
	if _, err := other.core.Transact("cancel", func(tx *Tx) error {
		tx.Set(CancelDoc, CancelMark("it blocks", 0), CancelKey("pay", "e1"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	other.run()
	h.integrate()
	h.run()
	if rc := w.receipt(home, "e1"); rc.Outcome != model.Cancelled || rc.Error != "it blocks" {
		t.Errorf("the receipt is %+v", rc)
	}
	if rc := w.receipt(home, "e2"); rc.Outcome != model.Handled {
		t.Errorf("the receipt of the next event is %+v", rc)
	}
	if v := h.core.Value(CancelDoc); len(v.Keys()) > 0 {
		t.Errorf("the mark is left: %v", v)
	}
}

// The handling is based on a head before the mark, so its commit is refused and its writes are undone.
func TestCancel_AMarkThatIsFirstUndoesTheHandling(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).set().Program)
	w.send(home, "set", "e1", map[string]any{"x": 1})
	h.deliver()
	h.settle() // the handling is on its way
	other := w.attached("app", newProgram(t).Program, func(c *Config) { c.WithoutEvents = true })
	if _, err := other.core.Transact("cancel", func(tx *Tx) error {
		tx.Set(CancelDoc, CancelMark("first", 0), CancelKey("set", "e1"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	other.run()
	if h.decide() {
		t.Fatal("it was in the log before the mark")
	}
	h.run()
	if rc := w.receipt(home, "e1"); rc.Outcome != model.Cancelled {
		t.Errorf("the receipt is %+v", rc)
	}
	if v := h.core.Value("x"); !v.IsAbsent() {
		t.Errorf("it took effect: %v", v)
	}
}

// The timer's time has come, so it is in the lane, behind an event that waits at the head. When another
// runtime cancels it, it leaves the lane.
func TestTimers_ATimerInTheLaneIsCancelledByAnotherRuntime(t *testing.T) {
	w := newWorld(t)
	p := newProgram(t).set()
	program := func() *Program {
		return newProgram(t).
			handle("pay", func(*Tx, *model.Event) any { return Transient(errors.New("not now")) }).
			handle("plan", func(tx *Tx, ev *model.Event) any {
				if ev.Payload.IsAbsent() {
					return nil
				}
				tx.SetTimer("x", "plan", tx.Now().Add(100*time.Millisecond), nil)
				return nil
			}).Program
	}
	h := w.host("w1", program())
	h.wall = noon
	h.takeOver()
	w.send(home, "plan", "e1", "x")
	h.run()
	w.send(home, "pay", "e2", nil)
	h.run()
	h.pass(100)
	h.run()
	other := w.attached("app", p.Program, func(c *Config) { c.WithoutEvents = true })
	if _, err := other.core.Transact("cancel", func(tx *Tx) error { tx.CancelTimer("x"); return nil }); err != nil {
		t.Fatal(err)
	}
	other.run()
	w.wantReceipts("e1 handled")
	h.integrate()
	for range 100 {
		h.pass(10_000)
		h.run()
	}
	w.wantReceipts("e1 handled", "e2 failed")
}
