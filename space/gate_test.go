package space

import (
	"fmt"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// shop has a handler that reads an unobserved derived document: pay takes the total, which is computed from
// the prices.
func shop(t *testing.T) program {
	return newProgram(t).set().
		handle("pay", func(tx *Tx, _ *model.Event) any {
			tx.Set("paid", tx.Get("total"))
			return tx.Get("total")
		}).
		sum("total", "net", "tax").
		sum("tax", "net").
		sum("net", "price1", "price2")
}

func TestI4_AHandlerWaitsForTheComputationsItReads(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", shop(t).Program)
	w.send(home, "set", "e1", map[string]any{"price1": 2, "price2": 3})
	w.send(home, "pay", "e2", nil)
	w.send(home, "set", "e3", map[string]any{"price1": 100})
	h.run()
	wantValue(t, h, "paid", "10")
	if got := w.receipt(home, "e2").Result.String(); got != "10" {
		t.Errorf("the receipt says %s, want 10", got)
	}
	wantStory(t, h.told(),
		"handled e1", "park e2",
		"run net, changed", "run tax, changed", "run total, changed",
		"handled e2", "handled e3")
}

// What the event demanded is dormant again once the event is handled.
func TestI2_TheDemandOfAnEventEndsWithIt(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", shop(t).Program)
	w.send(home, "pay", "e1", nil)
	h.run()
	h.told()
	w.send(home, "set", "e2", map[string]any{"price1": 5})
	h.run()
	wantStory(t, h.told(), "handled e2")
}

// A computation that is clean itself but has an invalid node upstream is not up to date either.
func TestI4_CleanBelowSomethingInvalidIsNotUpToDate(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", shop(t).Program)
	w.send(home, "set", "e1", map[string]any{"price1": 1})
	w.send(home, "pay", "e2", nil)
	h.run()
	w.send(home, "set", "e3", map[string]any{"price1": 7})
	h.run() // net is not needed, so it stays invalid, and total stays clean
	for _, n := range h.core.Nodes() {
		if want := map[string]Status{"net": Invalid, "tax": Clean, "total": Clean}[n.ID]; n.Status != want {
			t.Fatalf("%s is %s, want %s", n.ID, n.Status, want)
		}
	}
	w.send(home, "pay", "e4", nil)
	h.run()
	wantValue(t, h, "paid", "14")
}

// The gate holds the lane, not the space: events stay in order, and observed computations keep running.
func TestI4_EventsDoNotOvertakeTheOneThatWaits(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", shop(t).Program)
	for i := range 30 {
		w.send(home, "set", fmt.Sprint("s", i), map[string]any{"price1": i})
		w.send(home, "pay", fmt.Sprint("p", i), nil)
	}
	h.run()
	for i := range 30 {
		if got, want := w.receipt(home, fmt.Sprint("p", i)).Result.String(), fmt.Sprint(2*i); got != want {
			t.Errorf("payment %d saw %s, want %s", i, got, want)
		}
	}
}

// Every event needs the computation anew, which is no lack of convergence: nothing is deferred, however many
// events there are.
func TestI6_AnEventThatGetsThroughIsProgress(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", shop(t).Program)
	for i := range 200 {
		w.send(home, "set", fmt.Sprint("s", i), map[string]any{"price1": i})
		w.send(home, "pay", fmt.Sprint("p", i), nil)
	}
	h.run()
	if got := len(w.receipts(home)); got != 400 {
		t.Errorf("%d events handled without time passing, want 400", got)
	}
	if d := h.core.Stats().Deferred; d != 0 {
		t.Errorf("%d nodes deferred", d)
	}
}

// Each of several derived documents is waited for, and stays up to date while the event waits for the next.
func TestI4_AHandlerMayReadManyDerivedDocuments(t *testing.T) {
	const n = 25
	p := newProgram(t).set().handle("pay", func(tx *Tx, _ *model.Event) any {
		total := int64(0)
		for i := range n {
			total += num(tx.Get(fmt.Sprint("out", i)))
		}
		return total
	})
	for i := range n {
		p = p.sum(fmt.Sprint("out", i), "base")
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "set", "e1", map[string]any{"base": 2})
	w.send(home, "pay", "e2", nil)
	h.run()
	if got := w.receipt(home, "e2").Result.String(); got != "50" {
		t.Errorf("the handler saw %s, want 50", got)
	}
	for id, runs := range h.runs {
		if runs != 1 {
			t.Errorf("%d runs of %s, want 1", runs, id)
		}
	}
}

// A handler that fails because it read an out-of-date value has not failed.
func TestI4_AnAttemptOnOldValuesLeavesNoTrace(t *testing.T) {
	p := newProgram(t).set().
		handle("pay", func(tx *Tx, _ *model.Event) any {
			total := num(tx.Get("total"))
			tx.Set("log", total, fmt.Sprint("saw", total))
			tx.Send(home, "set", map[string]any{"sent": total})
			if total == 0 {
				panic("nothing to pay")
			}
			return total
		}).
		sum("total", "price")
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "set", "e1", map[string]any{"price": 9})
	w.send(home, "pay", "e2", nil)
	h.run()
	wantValue(t, h, "log", `{"saw9":9}`)
	wantValue(t, h, "sent", "9")
	if rc := w.receipt(home, "e2"); rc.Outcome != model.Handled {
		t.Errorf("receipt %+v", rc)
	}
}

// A computation that fails has no newer value: the handler gets the last one.
func TestI4_AFailedComputationIsNotWaitedFor(t *testing.T) {
	p := newProgram(t).set().
		handle("read", func(tx *Tx, _ *model.Event) any { return tx.Get("out") }).
		compute("out", func(tx *Tx) any {
			if num(tx.Get("base")) < 0 {
				return fmt.Errorf("negative")
			}
			return tx.Get("base")
		})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "set", "e1", map[string]any{"base": 4})
	w.send(home, "read", "e2", nil)
	w.send(home, "set", "e3", map[string]any{"base": -1})
	w.send(home, "read", "e4", nil)
	w.send(home, "set", "e5", map[string]any{"base": 6})
	w.send(home, "read", "e6", nil)
	h.run()
	for event, want := range map[string]string{"e2": "4", "e4": "4", "e6": "6"} {
		if got := w.receipt(home, event).Result.String(); got != want {
			t.Errorf("%s saw %s, want %s", event, got, want)
		}
	}
	if got := h.core.Stats().NodeErrors; got != 1 {
		t.Errorf("%d node errors, want 1", got)
	}
}

// pair oscillates without end: each node adds one to the other.
func pair(t *testing.T) program {
	return newProgram(t).set().
		compute("ping", func(tx *Tx) any { return num(tx.Get("pong")) + 1 }).
		compute("pong", func(tx *Tx) any { return num(tx.Get("ping")) + 1 }).
		sum("calm", "base").
		handle("read", func(tx *Tx, ev *model.Event) any {
			which, _ := ev.Payload.AsString()
			return tx.Get(which)
		})
}

func TestI6_NodesThatDoNotConvergeBackOff(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", pair(t).Program)
	h.observe("ping")
	h.run()
	if n := h.runs["ping"] + h.runs["pong"]; n == 0 || n > 2*h.core.cfg.RunBudget+2 {
		t.Errorf("%d runs in a pass, the budget is %d per node", n, h.core.cfg.RunBudget)
	}
	if h.core.Idle() {
		t.Error("idle, although a node is gated")
	}
	if d := h.core.Stats().Deferred; d != 1 {
		t.Errorf("%d nodes deferred, want one: the other is clean", d)
	}
	for _, want := range []time.Duration{250, 500, 1000, 2000, 2000, 2000} {
		wake := h.last.Wake
		if got := wake - h.now; got != want*time.Millisecond {
			t.Fatalf("gated for %v, want %v ms", got, int(want))
		}
		before := h.runs["ping"] + h.runs["pong"]
		h.now = wake - 1
		h.run()
		if n := h.runs["ping"] + h.runs["pong"]; n != before {
			t.Fatalf("%d runs before the gate opened", n-before)
		}
		h.now = wake
		h.run()
		if n := h.runs["ping"] + h.runs["pong"] - before; n == 0 || n > 2*h.core.cfg.RunBudget {
			t.Fatalf("%d runs once the gate opened", n)
		}
	}
}

func TestI6_NodesThatDoNotConvergeDoNotStarveOthers(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", pair(t).Program)
	h.observe("ping")
	h.observe("calm")
	for i := range 20 {
		w.send(home, "set", fmt.Sprint("e", i), map[string]any{"base": i})
		w.send(home, "read", fmt.Sprint("r", i), "calm")
		h.run()
		wantValue(t, h, "calm", fmt.Sprint(i))
		if got := w.receipt(home, fmt.Sprint("r", i)).Result.String(); got != fmt.Sprint(i) {
			t.Fatalf("read %d saw %s", i, got)
		}
	}
	if n := h.runs["ping"]; n > 2*h.core.cfg.RunBudget {
		t.Errorf("%d runs of the gated node while 40 events were handled", n)
	}
}

// A value that never converges does not block the lane.
func TestI6_AnEventThatReadsANonConvergingNodeIsHandledInTheEnd(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", pair(t).Program)
	w.send(home, "read", "e1", "ping")
	w.send(home, "set", "e2", map[string]any{"base": 1})
	h.run()
	if got := w.receipts(home); len(got) > 0 {
		t.Fatalf("%v, without waiting", got)
	}
	for len(w.receipts(home)) == 0 {
		if h.last.Wake == 0 {
			t.Fatal("an event waits, but nothing will wake it")
		}
		h.now = h.last.Wake
		h.run()
	}
	if got := w.receipts(home); len(got) != 2 {
		t.Errorf("receipts %v after %v", got, h.now)
	}
	if h.now > 10*time.Second {
		t.Errorf("it took %v", h.now)
	}
}

// A node that has converged is not held back for its past.
func TestI6_ACleanPassClearsTheStreak(t *testing.T) {
	p := newProgram(t).set().
		compute("ping", func(tx *Tx) any { return min(num(tx.Get("pong"))+1, num(tx.Get("limit"))) }).
		compute("pong", func(tx *Tx) any { return num(tx.Get("ping")) })
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "set", "e1", map[string]any{"limit": 25})
	h.observe("ping")
	for h.run(); h.last.Wake != 0; h.run() {
		h.now = h.last.Wake
	}
	wantValue(t, h, "ping", "25")
	deferred := h.core.Stats().Deferred
	w.send(home, "set", "e2", map[string]any{"limit": 27})
	h.run()
	wantValue(t, h, "ping", "27")
	if got := h.core.Stats().Deferred; got != deferred || h.last.Wake != 0 {
		t.Errorf("%d more deferrals for two more steps", got-deferred)
	}
	w.send(home, "set", "e3", map[string]any{"limit": 100})
	h.run()
	if got := h.last.Wake - h.now; got != h.core.cfg.BackoffMin {
		t.Errorf("gated for %v, as if it had never converged", got)
	}
}

func TestI6_ANodeRunsNoMoreThanItsBudgetInAPass(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", pair(t).Program, func(c *Config) { c.RunBudget = 3; c.MaxIterations = 50 })
	h.observe("ping")
	h.run()
	if n := h.runs["ping"]; n == 0 || n > 3 {
		t.Errorf("%d runs, the budget is 3", n)
	}
}
