package space

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// noon is the start of the tests in this file, in milliseconds.
const noon = int64(1_800_000_000_000)

// planner returns a program whose stream "plan" executes the lines of the payload: "after MS SPACE", "set
// NAME MS", "cancel NAME", "fail". The result of each of its handlers is the time.
func planner(t testing.TB) *Program {
	p := newProgram(t)
	do := func(tx *Tx, ev *model.Event) any {
		steps, _ := ev.Payload.AsString()
		for line := range strings.Lines(steps) {
			var name string
			var ms int64
			switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
			case "after":
				_, _ = fmt.Sscan(rest, &ms, &name)
				tx.SendAt(name, "plan", tx.Now().Add(time.Duration(ms)*time.Millisecond), nil)
			case "set":
				_, _ = fmt.Sscan(rest, &name, &ms)
				tx.SetTimer(name, "plan", tx.Now().Add(time.Duration(ms)*time.Millisecond), nil)
			case "cancel":
				tx.CancelTimer(rest)
			case "fail":
				return errors.New("as it was configured")
			}
		}
		return tx.Now().UnixMilli()
	}
	return p.handle("plan", do).Program
}

func (w *world) sendAt(id string, at int64, steps string) {
	w.publish(model.Event{Space: home, Stream: "plan", ID: id, Payload: model.String(steps), NotBefore: at})
}

// plans returns an owner of home that runs the planner, at noon.
func (w *world) plans(t testing.TB, runtime string, change ...func(*Config)) *host {
	h := w.host(runtime, planner(t), change...)
	h.wall = noon
	h.takeOver()
	return h
}

// pass lets time pass.
func (h *host) pass(ms int64) { h.wall += ms; h.now += time.Duration(ms) * time.Millisecond }

func (w *world) wantReceipts(want ...string) {
	w.t.Helper()
	if got := w.receipts(home); !slices.Equal(got, want) {
		w.t.Errorf("receipts %v, want %v", got, want)
	}
}

func TestLater_AnEarlyEventWaitsWithoutDelayingOthers(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "r1")
	w.sendAt("late", noon+1000, "")
	w.sendAt("now", noon, "")
	w.sendAt("sooner", noon+500, "")
	w.sendAt("last", 0, "")
	h.run()
	w.wantReceipts("now handled", "last handled")
	if r := w.replica(home); r.Later.Len() != 2 || r.Later.Next() != noon+500 || r.LaneDone() != h.laneEnd() {
		t.Errorf("%d wait, the first until %d; the lane is done up to %d", r.Later.Len(), r.Later.Next(), r.LaneDone())
	}
	if h.last.Due != noon+500 || h.core.NextDue() != noon+500 || !h.core.Durable() {
		t.Errorf("due at %d, %d", h.last.Due, h.core.NextDue())
	}
	h.pass(499)
	h.run()
	w.wantReceipts("now handled", "last handled")
	h.pass(1)
	h.run()
	h.pass(10_000)
	w.sendAt("after", 0, "")
	h.run()
	w.wantReceipts("now handled", "last handled", "sooner handled", "after handled", "late handled")
	if rc := w.receipt(home, "late"); rc.Lane != 0 || rc.Slot == 0 || rc.Result.String() != fmt.Sprint(noon+10_500) {
		t.Errorf("the receipt is %+v", rc)
	}
	if h.last.Due != 0 || h.core.NextDue() != 0 {
		t.Errorf("nothing waits, and it is due at %d", h.last.Due)
	}
}

func TestLater_WaitingEventsSurviveACrashWhateverWasSaved(t *testing.T) {
	for _, save := range []string{"nothing", "half", "all", "all, then more"} {
		t.Run(save, func(t *testing.T) {
			w := newWorld(t)
			h := w.plans(t, "r1")
			w.sendAt("a", noon+300, "")
			w.sendAt("b", noon+100, "after 50 home")
			h.run()
			switch save {
			case "half":
				c, err := h.core.Checkpoint()
				if err != nil {
					t.Fatal(err)
				}
				h.saveItems(c.Docs[:1])
			case "all":
				h.checkpoint()
			case "all, then more":
				h.checkpoint()
				w.sendAt("c", noon+200, "")
				h.run()
			}
			h.load()
			h.takeOver()
			h.pass(1000)
			h.run()
			h.checkpoint()
			h.load()
			h.takeOver()
			h.pass(1000)
			h.run()
			got := w.receipts(home)
			want := []string{"b handled", "a handled"}
			if save == "all, then more" {
				want = []string{"b handled", "c handled", "a handled"}
			}
			if len(got) != len(want)+1 || !slices.Equal(got[:len(want)], want) {
				t.Errorf("receipts %v, want %v and that of the event that b sends", got, want)
			}
			if r := w.replica(home); r.Later.Len() != 0 {
				t.Errorf("%d still wait", r.Later.Len())
			}
		})
	}
}

// I10: what an undone transaction sent for later does not exist, and what it cancelled still waits.
func TestI10_ARefusalUndoesDelayedSendsAndCancellations(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "r1")
	w.send(home, "plan", "first", "set x 1000\nset y 100")
	h.run()
	w.send(home, "plan", "second", "cancel x\nset y 5000\nset z 10\nafter 10 home")
	h.deliver()
	h.settle()
	h.refuse(put("elsewhere", 1))
	if r := w.replica(home); r.Later.Len() != 2 || r.Later.Next() != noon+100 {
		t.Errorf("%d wait, the first until %d", r.Later.Len(), r.Later.Next())
	}
	h.run() // handles the events again
	if r := w.replica(home); r.Later.Len() != 3 || r.Later.Next() != noon+10 {
		t.Errorf("%d wait, the first until %d", r.Later.Len(), r.Later.Next())
	}
	h.pass(10_000)
	h.run()
	if got := w.receipts(home); len(got) != 5 {
		t.Errorf("receipts %v, want first, second, z, the event that was sent, and y", got)
	}
}

// A timer that is in the lane because its time has come can still be cancelled or postponed.
func TestTimers_ADueTimerCanBeCancelledByAnEarlierEvent(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "r1")
	w.send(home, "plan", "e1", "set x 100\nset y 100")
	w.sendAt("e2", noon+100, "cancel x\nset y 500")
	h.run()
	w.sendAt("e3", noon+50, "")
	h.run()
	h.pass(100)
	h.run()
	w.wantReceipts("e1 handled", "e3 handled", "home:1:1:0 handled", "home:1:1:1 handled", "e2 handled")

	w = newWorld(t)
	h = w.plans(t, "r1")
	w.sendAt("e2", noon+100, "cancel x\nset y 500")
	w.send(home, "plan", "e1", "set x 100\nset y 100")
	h.run()
	h.pass(100)
	h.settle() // all three are in the lane, and e2 is handled
	h.refuse(put("elsewhere", 1))
	h.run()
	w.wantReceipts("e1 handled", "e2 handled")
	h.pass(500)
	h.run()
	if got := w.receipts(home); len(got) != 3 {
		t.Errorf("receipts %v, want e1, e2 and y", got)
	}
}

func TestTimers_ATimerIsOneHoweverOftenItIsSet(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "r1")
	for i := range 50 {
		w.send(home, "plan", fmt.Sprint("e", i), "set x 1000\nset x 2000\ncancel none")
	}
	h.run()
	if r := w.replica(home); r.Later.Len() != 1 || r.Later.Next() != noon+2000 {
		t.Errorf("%d events wait, the first until %d", r.Later.Len(), r.Later.Next())
	}
	h.checkpoint()
	if n := len(w.saved[home].Later); n != 1 {
		t.Errorf("%d items are saved for one timer", n)
	}
	h.pass(10_000)
	h.run()
	if n := len(w.receipts(home)); n != 51 {
		t.Errorf("%d receipts", n)
	}
}

func TestTimers_AHandlerSeesWhatIsSetAndSetsItsOwnTimerAgain(t *testing.T) {
	p := newProgram(t)
	var seen []string
	p.handle("tick", func(tx *Tx, ev *model.Event) any {
		_, set := tx.Timer("t")
		seen = append(seen, fmt.Sprint(ev.Timer, " ", set))
		tx.SetTimer("t", "tick", tx.Now().Add(time.Second), nil)
		at, _ := tx.Timer("t")
		seen = append(seen, at.Sub(tx.Now()).String())
		tx.CancelTimer("t")
		_, set = tx.Timer("t")
		seen = append(seen, fmt.Sprint(set))
		if ev.Timer == "" {
			tx.SetTimer("t", "tick", tx.Now().Add(2*time.Second), nil)
		}
		return nil
	})
	w := newWorld(t)
	h := w.host("r1", p.Program)
	h.wall = noon
	h.takeOver()
	w.send(home, "tick", "e1", nil)
	h.run()
	h.pass(2000)
	h.run()
	wantStory(t, seen, " false", "1s", "false", "t false", "1s", "false")
	if r := w.replica(home); r.Later.Len() != 0 {
		t.Errorf("%d wait", r.Later.Len())
	}
}

func TestNow_IsNotForComputationsAndNeedsAClock(t *testing.T) {
	p := newProgram(t).compute("c", func(tx *Tx) any { return tx.Now().Unix() }).
		handle("e", func(tx *Tx, _ *model.Event) any { return tx.Now().Unix() }).
		handle("send", func(tx *Tx, _ *model.Event) any { tx.SendAfter(home, "e", time.Hour, nil); return nil })
	w := newWorld(t)
	h := w.owner("r1", p.Program)
	h.observe("c")
	w.send(home, "e", "e1", nil)
	w.send(home, "send", "e2", nil)
	h.run()
	wantStory(t, h.told(), "failed e1", "failed e2", "run c: computation c asks for the time: it would not run again when time passes; have a handler write the value to read", "run observe:c")
	for _, id := range []string{"e1", "e2"} {
		if rc := w.receipt(home, id); !strings.Contains(rc.Error, "Space.Clock") {
			t.Errorf("without a clock: %s", rc.Error)
		}
	}
}

func TestLater_TooManyAndTooFarAheadAreRefusedWithTheReason(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "r1", func(c *Config) { c.MaxLater = 3 })
	w.sendAt("e1", noon+1000, "")
	w.sendAt("far", noon+model.MaxDelay.Milliseconds()+1000, "")
	w.send(home, "plan", "three", "set a 1000\nset b 1000\nset c 1000")
	w.send(home, "plan", "two", "set a 1000\nset b 1000")
	w.sendAt("more", noon+1000, "")
	w.send(home, "plan", "years", fmt.Sprint("after ", model.MaxDelay.Milliseconds()+1, " away"))
	h.run()
	w.wantReceipts("far refused", "three failed", "two handled", "more refused", "years failed")
	for id, want := range map[string]string{"far": "ten years", "three": "MaxLater", "more": "MaxLater", "years": "ten years"} {
		if rc := w.receipt(home, id); !strings.Contains(rc.Error, want) {
			t.Errorf("%s: %s", id, rc.Error)
		}
	}
	h.pass(1000)
	h.run()
	w.sendAt("again", noon+2000, "")
	h.run()
	if r := w.replica(home); r.Later.Len() != 1 {
		t.Errorf("%d wait", r.Later.Len())
	}
}

func TestTimers_NamesAreValidatedAndNodesHaveNone(t *testing.T) {
	p := newProgram(t).handle("bad", func(tx *Tx, ev *model.Event) any {
		name, _ := ev.Payload.AsString()
		tx.SetTimer(name, "bad", tx.Now(), nil)
		return nil
	}).compute("c", func(tx *Tx) any { tx.CancelTimer("x"); return nil })
	w := newWorld(t)
	h := w.host("r1", p.Program)
	h.wall = noon
	h.takeOver()
	h.observe("c")
	w.send(home, "bad", "e1", "=cron.x")
	w.send(home, "bad", "e2", "")
	h.run()
	w.wantReceipts("e1 failed", "e2 failed")
	if told := fmt.Sprint(h.told()); !strings.Contains(told, "only handlers cancel timers") {
		t.Errorf("%s", told)
	}
}

// When the clock is set back, due events that were not handled wait again, and nothing is handled twice.
func TestLater_TheClockIsSetBackAndForth(t *testing.T) {
	w := newWorld(t)
	h := w.plans(t, "r1")
	w.sendAt("a", noon+100, "")
	w.sendAt("b", noon+200, "")
	h.run()
	h.pass(150)
	h.settle() // a is handled, but not in the log yet
	h.wall = noon - 3_600_000
	h.run()
	w.wantReceipts("a handled")
	h.pass(100)
	h.run()
	w.wantReceipts("a handled")
	h.wall = noon + 3_600_000
	h.run()
	w.wantReceipts("a handled", "b handled")
	h.wall = noon
	w.sendAt("c", noon+1, "")
	h.run()
	w.put(home, put("elsewhere", 1))
	h.integrate()
	h.wall = noon + 1
	h.run()
	w.wantReceipts("a handled", "b handled", "c handled")
}

func TestLater_ADueEventThatIsNotHandledYetWaitsAgainWhenTheClockIsSetBack(t *testing.T) {
	w := newWorld(t)
	p := newProgram(t).handle("read", func(tx *Tx, _ *model.Event) any { return tx.GetFrom("away", "x") })
	h := w.host("r1", p.Program)
	h.wall, h.deaf = noon, true
	h.takeOver()
	w.publish(model.Event{Space: home, Stream: "read", ID: "e", NotBefore: noon + 100})
	h.run()
	h.pass(100)
	h.run() // it is due, but waits for a document of another space
	h.wall, h.deaf = noon, false
	h.run()
	w.wantReceipts()
	h.pass(100)
	h.run()
	w.wantReceipts("e handled")
}

// Two runtimes have clocks an hour apart: the clock of the runtime that handles an event decides whether it
// is due.
func TestLater_ATakeoverByAnOwnerWhoseClockIsAnHourOff(t *testing.T) {
	for _, off := range []int64{-3_600_000, 3_600_000} {
		w := newWorld(t)
		old := w.plans(t, "r1")
		w.sendAt("a", noon+100, "")
		w.sendAt("b", noon+1_800_000, "")
		old.run()
		old.pass(200)
		old.settle() // a is under way
		next := w.host("r2", planner(t))
		next.wall = old.wall + off
		next.takeOver()
		next.run()
		old.decide() // refused, which deposes it
		old.run()
		want := []string{"a handled", "b handled"}
		if off < 0 {
			want = nil
		}
		w.wantReceipts(want...)
		next.pass(2 * 3_600_000)
		next.run()
		w.wantReceipts("a handled", "b handled")
	}
}

// The transaction that set a timer to a later time is undone, so the timer waits for its earlier time again.
// That time has passed, and it precedes that of an event that is in the lane already.
func TestTimers_ATimerThatARefusalRestoresKeepsItsPlace(t *testing.T) {
	w := newWorld(t)
	p, tries := planner(t), 0
	if err := p.Handle("once", func(tx *Tx, _ *model.Event) (model.Value, error) {
		if tries++; tries == 1 {
			tx.SetTimer("x", "plan", tx.Now().Add(5*time.Second), nil)
		}
		return model.Value{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	h := w.host("r1", p)
	h.wall = noon
	h.takeOver()
	w.send(home, "plan", "first", "set x 100")
	w.sendAt("later", noon+200, "")
	h.run()
	w.send(home, "once", "second", "")
	h.deliver()
	h.settle()
	h.pass(250)
	h.settle() // "later" is in the lane, and x is not due
	h.refuse(put("elsewhere", 1))
	h.run()
	w.wantReceipts("first handled", "second handled", "home:1:1:0 handled", "later handled")
	if tries != 2 {
		t.Errorf("only %d attempts: this proves nothing", tries)
	}
}

// Random sends with delays, timers that are set again and cancelled, failures, refusals, crashes between any
// two steps, half-saved checkpoints, owners with different clocks: every event that was sent and not
// cancelled is handled once, not before its time by its owner's clock, and events that wait at the same time
// are handled in the order of (time, place).
func TestLater_EveryEventIsHandledOnceInOrderAndNotBeforeItsTime(t *testing.T) {
	program := planner(t)
	var waited, cancelled, early int
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		h := w.host("r0", program)
		h.wall = noon
		h.takeOver()
		sent := 0
		for i := range rapid.IntRange(5, 80).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{
				"send", "send", "send", "settle", "settle", "decide", "decide", "decide", "deliver", "deliver", "pass", "pass", "refuse", "jump", "save", "half", "crash", "take over",
			}).Draw(t, "step") {
			case "send":
				at := int64(0)
				if rapid.Bool().Draw(t, "late") {
					at = h.wall + rapid.Int64Range(-50, 300).Draw(t, "at")
				}
				w.sendAt(fmt.Sprint("e", i), at, drawSteps(t))
				sent++
			case "settle":
				if h.inFlight == nil {
					h.settle()
				}
			case "deliver":
				h.deliver()
			case "decide":
				h.decide()
			case "refuse":
				if h.inFlight != nil {
					h.refuse(put("elsewhere", i))
				}
			case "pass":
				h.pass(rapid.Int64Range(0, 200).Draw(t, "ms"))
			case "jump":
				h.wall += rapid.Int64Range(-500, 500).Draw(t, "ms")
			case "save":
				h.checkpoint()
			case "half":
				if c, err := h.core.Checkpoint(); err == nil {
					h.saveItems(c.Docs[:rapid.IntRange(0, len(c.Docs)).Draw(t, "items")])
					h.core.CheckpointFailed(c)
				}
			case "crash":
				h.load()
				h.takeOver()
			case "take over":
				next := w.host(fmt.Sprint("r", i), program)
				next.wall = h.wall + rapid.Int64Range(-400, 400).Draw(t, "off")
				next.takeOver()
				h = next
			}
			compareWaiting(t, w, h)
		}
		if h.inFlight != nil {
			h.decide()
		}
		for range 3 {
			h.run()
			h.pass(100_000)
		}
		h.run()
		l := readLedger(w)
		for id, n := range l.handled {
			if n != 1 {
				t.Errorf("%s was handled %d times", id, n)
			}
		}
		if len(l.waiting) > 0 || len(l.open) > 0 {
			t.Errorf("events %v still wait and %v are open", l.waiting, l.open)
		}
		fromOutside := 0
		for id := range l.handled {
			if strings.HasPrefix(id, "e") {
				fromOutside++
			}
		}
		if fromOutside != sent {
			t.Errorf("%d events were sent, %d handled", sent, fromOutside)
		}
		if r := w.replica(home); r.Later.Len() != 0 || r.Later.Next() != 0 {
			t.Errorf("the replica has %d waiting events", r.Later.Len())
		}
		waited, cancelled, early = waited+l.waited, cancelled+l.cancelled, early+l.early
	})
	if waited == 0 || cancelled == 0 || early == 0 {
		t.Errorf("%d waited, %d of them from the lane, %d were cancelled: this proves nothing", waited, early, cancelled)
	}
}

func drawSteps(t *rapid.T) string {
	var lines []string
	for range rapid.IntRange(0, 3).Draw(t, "n") {
		lines = append(lines, rapid.SampledFrom([]string{
			"after 0 home", "after 50 home", "after 120 home", "after 120 home", "after 40 away", "set x 100", "set x 30", "set y 150", "set y 0", "cancel x", "cancel y", "fail",
		}).Draw(t, "line"))
	}
	return strings.Join(lines, "\n")
}

// waitingLists is a naive oracle: it goes through the log and keeps lists.
type waitingLists struct {
	waiting                  []model.Waiting
	open                     map[string]bool // sent to home, neither handled nor waiting
	handled                  map[string]int
	waited, cancelled, early int
}

func readLedger(w *world) *waitingLists {
	l := &waitingLists{open: map[string]bool{}, handled: map[string]int{}}
	for _, e := range w.logs[home] {
		c := w.commit(e)
		for i := range c.Txs {
			l.take(w.t, &c.Txs[i])
		}
	}
	return l
}

func (l *waitingLists) take(t tester, tx *model.Tx) {
	t.Helper()
	now := int64(0)
	if rc := tx.Receipt; rc != nil {
		now = num(rc.Result)
		l.handled[rc.Event]++
		delete(l.open, rc.Event)
		if i := slices.IndexFunc(l.waiting, func(w model.Waiting) bool { return w.ID == rc.Event }); i >= 0 {
			due := l.waiting[i]
			l.waiting = slices.Delete(l.waiting, i, i+1)
			if now != 0 && now < due.NotBefore {
				t.Errorf("%s is handled at %d, but must wait until %d", rc.Event, now, due.NotBefore)
			}
			for j, other := range l.waiting {
				if other.NotBefore < due.NotBefore && other.Nth == 0 || other.NotBefore == due.NotBefore && other.Nth == 0 && j < i {
					t.Errorf("%s, due at %d, is handled before %s, due at %d", rc.Event, due.NotBefore, other.ID, other.NotBefore)
				}
			}
		}
	}
	for _, c := range tx.Cancels {
		l.cancelled++
		if i := slices.IndexFunc(l.waiting, func(w model.Waiting) bool { return w.ID == c.ID }); i >= 0 {
			l.waiting = slices.Delete(l.waiting, i, i+1)
		} else {
			t.Errorf("%s is cancelled although it did not wait", c.ID)
		}
	}
	if tx.Later != nil {
		l.waited++
		l.early++
		l.add(t, *tx.Later, now)
	}
	for i := range tx.Sends {
		switch s := &tx.Sends[i]; {
		case s.To != home:
			if s.NotBefore == 0 {
				t.Errorf("%s to another space has lost its time", s.ID)
			}
		case s.Slot > 0:
			l.waited++
			l.add(t, s.Waits(), now)
		default:
			l.open[s.ID] = true
		}
	}
}

// add adds a waiting event. The time of a timer that is set to the past is unknown; Nth marks it.
func (l *waitingLists) add(t tester, w model.Waiting, now int64) {
	t.Helper()
	if w.NotBefore <= now {
		w.Nth = 1
	}
	for _, o := range l.waiting {
		if o.Slot == w.Slot || o.ID == w.ID || o.Timer == w.Timer && w.Timer != "" {
			t.Errorf("%+v and %+v wait at the same time", o, w)
		}
	}
	l.waiting = append(l.waiting, w)
}
