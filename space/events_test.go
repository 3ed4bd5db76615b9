package space

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

func counter(t *testing.T) program {
	return newProgram(t).handle("add", func(tx *Tx, ev *model.Event) any {
		n := num(tx.Get("count")) + num(ev.Payload)
		tx.Set("count", n)
		return n
	})
}

// The receipt for a misspelt stream lists the existing ones.
func TestTheReceiptOfAnUnhandledStreamListsTheHandledOnes(t *testing.T) {
	for n, want := range map[int]string{ // any order: each stream is registered once
		0: "",
		2: "; it has: a, b",
		8: "; it has: a, b, c, d, e, f, g, h",
		9: "; it has: a, b, c, d, e, f, g, h and 1 more",
	} {
		p := newProgram(t)
		for i := range n {
			p.handle(string(rune('a'+i)), func(*Tx, *model.Event) any { return nil })
		}
		if got := p.unhandled("z"); got != "program "+p.Name+" has no handler for stream z"+want {
			t.Errorf("with %d: %s", n, got)
		}
	}
}

func TestAReceiptContainsTheHandlersResult(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program)
	w.send(home, "add", "e1", 2)
	w.send(home, "add", "e2", 3)
	h.run()
	rc := w.receipt(home, "e2")
	if rc.Outcome != model.Handled || rc.Result.String() != "5" || rc.Lane != w.lanes[home][1].Lane {
		t.Errorf("receipt %+v, result %s", rc, rc.Result)
	}
}

// A handler that fails is called once and leaves nothing behind but its receipt; the next event is handled.
func TestN03_P15_AFailedHandlingKeepsNothingAndTheLaneContinues(t *testing.T) {
	bad := map[string]func(tx *Tx) any{
		"error":        func(*Tx) any { return errors.New("no such item") },
		"panic":        func(*Tx) any { panic("no such item") },
		"nil-deref":    func(*Tx) any { var p *model.Event; return p.ID },
		"bad-write":    func(tx *Tx) any { tx.Set("count", 1, "below", "a scalar"); return nil },
		"bad-name":     func(tx *Tx) any { tx.Set("no good", 1); return nil },
		"bad-value":    func(tx *Tx) any { tx.Set("x", func() {}); return nil },
		"bad-send":     func(tx *Tx) any { tx.Send("no good", "add", 1); return nil },
		"bad-stream":   func(tx *Tx) any { tx.Send(home, "", 1); return nil },
		"not-json":     func(*Tx) any { return func() {} },
		"derived":      func(tx *Tx) any { tx.Set("twice", 1); return nil },
		"write-a-lot":  func(tx *Tx) any { tx.Set("x", strings.Repeat("x", 600<<10)); return nil },
		"return-a-lot": func(*Tx) any { return strings.Repeat("x", 600<<10) },
		"say-a-lot":    func(*Tx) any { return errors.New(strings.Repeat("\x00", 600<<10)) },
	}
	for name, fail := range bad {
		t.Run(name, func(t *testing.T) {
			calls := 0
			tell := func(tx *Tx, _ *model.Event) any { tx.Send("other", "add", 1); return nil }
			p := counter(t).sum("twice", "count", "count").handle("tell", tell).handle("bad", func(tx *Tx, _ *model.Event) any {
				calls++
				tx.Set("kept", true)
				tx.Send(home, "add", 1000)
				tx.Send("other", "add", 1000)
				return fail(tx)
			})
			w := newWorld(t)
			h := w.owner("w1", p.Program)
			w.send(home, "add", "e1", 1)
			w.send(home, "bad", "e2", nil)
			w.send(home, "add", "e3", 1)
			h.run()
			w.release()
			if got, want := w.receipts(home), []string{"e1 handled", "e2 failed", "e3 handled"}; !slices.Equal(got, want) {
				t.Errorf("receipts %v, want %v", got, want)
			}
			if rc := w.receipt(home, "e2"); rc.Error == "" || !rc.Result.IsAbsent() {
				t.Errorf("receipt %+v", rc)
			}
			if calls != 1 {
				t.Errorf("the handler was called %d times", calls)
			}
			wantValue(t, h, "count", "2")
			wantValue(t, h, "kept", "absent")
			if n := len(w.lanes["other"]); n > 0 {
				t.Errorf("%d events were sent to another space", n)
			}
			w.send(home, "tell", "e4", nil)
			h.run()
			w.release()
			if sent := w.lanes["other"]; len(sent) != 1 || sent[0].Position != 1 {
				t.Errorf("the first event that is sent there is %+v, want position 1", sent)
			}
			if st := h.core.Stats(); st.Handled != 3 || st.Failed != 1 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

// The text of the receipt is the same each time the handler panics; the stack is only for the host.
func TestTheStackOfAPanicIsForTheHostOnly(t *testing.T) {
	p := newProgram(t).handle("bad", func(*Tx, *model.Event) any { panic("boom") })
	w := newWorld(t)
	var stack string
	h := w.owner("w1", p.Program, func(c *Config) {})
	h.cfg.Trace.HandleEnd = func(i HandleInfo) { stack = string(i.Stack) }
	h.load()
	h.takeOver()
	w.send(home, "bad", "e1", nil)
	h.run()
	if got, want := w.receipt(home, "e1").Error, "handler of bad panicked: boom"; got != want {
		t.Errorf("the receipt says %q, want %q", got, want)
	}
	if !strings.Contains(stack, "events_test.go") {
		t.Errorf("the host receives %q", stack)
	}
}

func TestAnEventWithoutAHandlerIsRefused(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program)
	w.send(home, "unheard", "e1", nil)
	w.publish(model.Event{Space: home, Stream: "add", ID: "e2", Invalid: "the payload is not JSON"})
	w.send(home, "add", "e3", 1)
	h.run()
	if got, want := w.receipts(home), []string{"e1 refused", "e2 refused", "e3 handled"}; !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
	if rc := w.receipt(home, "e1"); !strings.Contains(rc.Error, "unheard") {
		t.Errorf("error %q does not name the stream", rc.Error)
	}
	if rc := w.receipt(home, "e2"); rc.Error != "the payload is not JSON" {
		t.Errorf("error %q", rc.Error)
	}
}

// relay has a program whose event e emits two follow-ups, one of which emits another.
func relay(t *testing.T) program {
	note := func(tx *Tx, what any) { tx.Set("log", append(list(tx.Get("log")), model.MustOf(what))) }
	return newProgram(t).
		handle("start", func(tx *Tx, ev *model.Event) any {
			note(tx, "start "+ev.ID)
			tx.Send(home, "first", ev.ID)
			tx.Send(home, "last", ev.ID)
			return nil
		}).
		handle("first", func(tx *Tx, ev *model.Event) any {
			note(tx, fmt.Sprintf("first %s", ev.Payload))
			tx.Send(home, "last", "again")
			return nil
		}).
		handle("last", func(tx *Tx, ev *model.Event) any {
			note(tx, fmt.Sprintf("last %s", ev.Payload))
			return nil
		})
}

func list(v model.Value) []model.Value {
	var out []model.Value
	for e := range v.Elements() {
		out = append(out, e)
	}
	return out
}

// Follow-ups queue behind the waiting events, and are handled in the same suffix.
func TestFollowUpsAreHandledInOrderBehindWaitingEvents(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", relay(t).Program)
	w.send(home, "start", "e1", nil)
	w.send(home, "start", "e2", nil)
	h.deliver()
	h.settle()
	const want = `["start e1","start e2","first \"e1\"","last \"e1\"","first \"e2\"","last \"e2\"","last \"again\"","last \"again\""]`
	wantValue(t, h, "log", want)
	if n := len(h.inFlight.Commit.Txs); n != 8 {
		t.Errorf("%d transactions in the commit, want all 8", n)
	}
	h.run()
	if n := len(w.replica(home).Own); n > 0 {
		t.Errorf("%d follow-ups left in the log", n)
	}
}

// sendIDs returns the ids of all sends in the log.
func (w *world) sendIDs(space string) []string {
	var out []string
	for _, e := range w.logs[space] {
		for _, tx := range w.commit(e).Txs {
			for _, s := range tx.Sends {
				out = append(out, s.ID)
			}
		}
	}
	return out
}

// Follow-ups of a refused commit vanish, and the repeated handling emits new ones with fresh ids (I10).
func TestI10_FollowUpsOfARefusedCommitVanishAndAreSentAfresh(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", relay(t).Program)
	w.send(home, "start", "e1", nil)
	h.deliver()
	h.settle()
	var lost []string
	for _, tx := range h.inFlight.Commit.Txs {
		for _, s := range tx.Sends {
			lost = append(lost, s.ID)
		}
	}
	h.refuse(put("log", []string{"before"}))
	wantValue(t, h, "log", `["before"]`)
	h.run()
	wantValue(t, h, "log", `["before","start e1","first \"e1\"","last \"e1\"","last \"again\""]`)
	kept := w.sendIDs(home)
	if len(lost) != 3 || len(kept) != 3 {
		t.Fatalf("sent %v, then %v", lost, kept)
	}
	for _, id := range kept {
		if slices.Contains(lost, id) {
			t.Errorf("%s was minted twice", id)
		}
	}
}

// Follow-ups that are committed but not handled survive their owner, once each and in order, even through a
// checkpoint.
func TestI10_CommittedFollowUpsSurviveTheirOwner(t *testing.T) {
	for _, saved := range []bool{false, true} {
		t.Run(fmt.Sprintf("checkpoint %v", saved), func(t *testing.T) {
			w := newWorld(t)
			h := w.owner("w1", relay(t).Program, func(c *Config) { c.MaxGroup = 2 })
			w.send(home, "start", "e1", nil)
			w.send(home, "start", "e2", nil)
			h.deliver()
			h.settle() // the two starts; the append is under way
			h.decide()
			if n := len(w.replica(home).Own); n != 4 {
				t.Fatalf("%d follow-ups in the log, want 4", n)
			}
			if saved {
				h.checkpoint()
			}
			w.send(home, "start", "e3", nil)
			next := w.owner("w2", relay(t).Program)
			next.run()
			const want = `["start e1","start e2","first \"e1\"","last \"e1\"","first \"e2\"","last \"e2\"","start e3",` +
				`"last \"again\"","last \"again\"","first \"e3\"","last \"e3\"","last \"again\""]`
			wantValue(t, next, "log", want)
			if n := len(w.replica(home).Own); n > 0 {
				t.Errorf("%d follow-ups left", n)
			}
		})
	}
}

// Sends to another space are only in their commit until they are released. If they are released twice and out
// of order, they are still handled once, in order.
func TestI10_CrossSpaceSendsAreParkedInTheirCommit(t *testing.T) {
	p := counter(t).handle("tell", func(tx *Tx, ev *model.Event) any {
		for i := range 3 {
			tx.Send("other", "note", fmt.Sprint(ev.ID, i))
		}
		return nil
	})
	note := newProgram(t).handle("note", func(tx *Tx, ev *model.Event) any {
		tx.Set("log", append(list(tx.Get("log")), ev.Payload))
		return nil
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	other := w.owner("w1", note.Program, func(c *Config) { c.Space = "other" })
	w.send(home, "tell", "e1", nil)
	h.deliver()
	h.settle()
	w.release()
	if n := len(w.lanes["other"]); n > 0 {
		t.Fatalf("%d events released before their commit", n)
	}
	h.refuse()
	h.run()
	w.send(home, "tell", "e2", nil)
	h.run()
	w.release()
	first := slices.Clone(w.lanes["other"])
	if len(first) != 6 {
		t.Fatalf("%d events released, want 6", len(first))
	}
	w.lanes["other"] = nil
	for _, i := range []int{1, 0, 0, 2, 5, 4, 3, 1, 5} {
		w.publish(first[i])
	}
	other.run()
	wantValue(t, other, "log", `["e10","e11","e12","e20","e21","e22"]`)
	if !other.core.Idle() {
		t.Error("the other space is not idle")
	}
	for _, again := range first {
		w.publish(again)
	}
	reborn := w.owner("w2", note.Program, func(c *Config) { c.Space = "other" })
	reborn.run()
	wantValue(t, reborn, "log", `["e10","e11","e12","e20","e21","e22"]`)
}

// Events that arrive while an append is under way share the next commit.
func TestW11_GroupCommit(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program)
	w.send(home, "add", "e0", 1)
	h.deliver()
	h.settle()
	for i := 1; i <= 10; i++ {
		w.send(home, "add", fmt.Sprint("e", i), 1)
		h.deliver()
		if r := h.settle(); r.Append != nil {
			t.Fatal("a second append while the first is under way")
		}
	}
	wantValue(t, h, "count", "11")
	h.decide()
	h.settle()
	if n := len(h.inFlight.Commit.Txs); n != 10 {
		t.Errorf("%d transactions in the next commit, want 10", n)
	}
	h.run()
	if n := len(w.logs[home]); n != 3 {
		t.Errorf("%d commits, want a takeover and two", n)
	}
	if got := w.replica(home).Doc("count").Value.String(); got != "11" {
		t.Errorf("the log says %s", got)
	}
	var want []string
	for i := range 11 {
		want = append(want, fmt.Sprintf("e%d handled", i))
	}
	if got := w.receipts(home); !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
}

func TestAFullGroupWaitsForTheAnswer(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program, func(c *Config) { c.MaxGroup = 3 })
	for i := range 10 {
		w.send(home, "add", fmt.Sprint("e", i), 1)
	}
	h.deliver()
	h.settleAll()
	wantValue(t, h, "count", "6") // three under way, three in the open group
	if h.last.More {
		t.Error("More is set, although only an answer makes room")
	}
	h.decide()
	h.settleAll()
	wantValue(t, h, "count", "9")
	h.run()
	for _, e := range w.logs[home] {
		if n := len(w.commit(e).Txs); n > 3 {
			t.Errorf("a commit of %d transactions, want 3 at most", n)
		}
	}
	if got := len(w.receipts(home)); got != 10 {
		t.Errorf("%d receipts, want 10", got)
	}
}

// No commit exceeds its limit, and nothing starves for lack of room. (host.settle checks every commit's
// size.)
func TestCommitsStayWithinTheirLimit(t *testing.T) {
	fill := func(tx *Tx, n int64, kb int) {
		tx.Set(fmt.Sprint("doc", n%7), strings.Repeat(fmt.Sprint(n%10), kb<<10))
	}
	p := newProgram(t).
		handle("write", func(tx *Tx, ev *model.Event) any {
			n := num(ev.Payload)
			fill(tx, n, int(1+n%27))
			tx.Set("n", n)
			tx.Send("other", "note", n)
			return nil
		}).
		compute("big", func(tx *Tx) any { return strings.Repeat(fmt.Sprint(num(tx.Get("n"))%10), 20<<10) }).
		compute("big2", func(tx *Tx) any { return tx.Get("big") })
	w := newWorld(t)
	h := w.owner("w1", p.Program, func(c *Config) { c.MaxCommitBytes = 32 << 10 })
	h.observe("big2")
	const events = 100
	for i := range events {
		w.send(home, "write", fmt.Sprint("e", i), i)
	}
	h.run()
	if got := len(w.receipts(home)); got != events {
		t.Errorf("%d receipts, want %d", got, events)
	}
	want := `"` + strings.Repeat(fmt.Sprint((events-1)%10), 20<<10) + `"`
	wantValue(t, h, "big2", want)
	if got := w.replica(home).Doc("big2").Value.String(); got != want {
		t.Error("the log has another value")
	}
	if got := h.core.Stats().NodeErrors; got != 0 {
		t.Errorf("%d node errors", got)
	}
	w.release()
	for i, ev := range w.lanes["other"] {
		if ev.Position != uint64(i+1) {
			t.Fatalf("send %d has position %d: an attempt that found no room took one", i+1, ev.Position)
		}
	}
	if !h.core.Idle() {
		t.Error("not idle")
	}
}

// Computations get their room even if there is always another event.
func TestALargeOutputIsNotStarvedByEvents(t *testing.T) {
	p := newProgram(t).
		handle("write", func(tx *Tx, ev *model.Event) any {
			tx.Set("in", ev.Payload)
			tx.Set("pad-"+ev.ID, strings.Repeat("x", 3<<10))
			return nil
		}).
		compute("big", func(tx *Tx) any { return fmt.Sprint(num(tx.Get("in")), strings.Repeat("y", 24<<10)) })
	w := newWorld(t)
	h := w.owner("w1", p.Program, func(c *Config) { c.MaxCommitBytes = 32 << 10 })
	h.observe("big")
	h.run()
	before := h.runs["big"]
	commits := len(w.logs[home])
	for i := range 200 {
		w.send(home, "write", fmt.Sprint("e", i), i)
	}
	for range 40 {
		h.deliver()
		h.settle()
		h.decide()
	}
	changes := 0
	for _, e := range w.logs[home][commits:] {
		for _, tx := range w.commit(e).Txs {
			if tx.By == "compute big" {
				changes++
			}
		}
	}
	if changes < 10 {
		t.Errorf("big was committed %d times in %d commits, after %d runs", changes, len(w.logs[home])-commits, h.runs["big"]-before)
	}
}

// What a notice returns is left out if there is no room for it: the outcome of the event does not depend on it.
func TestARejectionIsRecordedWithoutThePayloadIfThereIsNoRoom(t *testing.T) {
	p := newProgram(t).handle("ask", func(tx *Tx, ev *model.Event) any {
		return receipts.Reject("no", "not now", strings.Repeat("x", 22<<10))
	})
	w := newWorld(t)
	h := w.owner("w1", p.Program, func(c *Config) { c.MaxCommitBytes = 32 << 10 })
	for i, n := range []int{model.MaxReturned - 2, 100} {
		id := fmt.Sprintf("away:1:%d:1", i+1)
		w.publish(model.Event{Space: home, Stream: "ask", ID: id, Payload: model.String(strings.Repeat("y", n)), Position: uint64(i + 1), ReplayKey: uint64(i + 1)})
		h.run()
		rc := w.commit(w.logs[home][len(w.logs[home])-1]).Txs[0].Receipt
		if rc.Event != id || rc.Outcome != model.Rejected || rc.Code != "no" || rc.Returned.IsAbsent() != (n > 100) {
			t.Errorf("%d bytes: %s %s %s %.20s", n, rc.Event, rc.Outcome, rc.Error, rc.Returned)
		}
	}
}

// The oldest events of an overfull lane are kept; the others are read again.
func TestRefillReadsEventsThatFoundNoRoom(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program, func(c *Config) { c.LaneLimit = 4; c.MaxGroup = 3 })
	for i := range 50 {
		w.send(home, "add", fmt.Sprint("e", i), 1)
	}
	h.deliver()
	if h.core.Idle() {
		t.Error("idle, with 46 events in the stream")
	}
	if n := h.core.ledger.Lane().Waiting(); n > 4 {
		t.Errorf("%d events in memory, the limit is 4", n)
	}
	h.run()
	wantValue(t, h, "count", "50")
	for i, rc := range w.receipts(home) {
		if want := fmt.Sprintf("e%d handled", i); rc != want {
			t.Fatalf("receipt %d is %s, want %s", i, rc, want)
		}
	}
	if !h.core.Idle() {
		t.Error("not idle")
	}
}

// Hold lets the space finish what it has begun, and start nothing new.
func TestHoldFinishesAndStartsNothing(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).sum("twice", "count", "count").Program)
	h.observe("twice")
	w.send(home, "add", "e1", 1)
	h.deliver()
	h.settle()
	h.core.Hold()
	w.send(home, "add", "e2", 1)
	h.run()
	if !h.core.Settled() {
		t.Error("not settled")
	}
	if got := w.receipts(home); len(got) != 1 {
		t.Errorf("receipts %v, want that of e1", got)
	}
}

func TestProgramsRefuseInvalidRegistrations(t *testing.T) {
	run := func(*Tx) (model.Value, error) { return model.Value{}, nil }
	on := func(*Tx, *model.Event) (model.Value, error) { return model.Value{}, nil }
	p := NewProgram("p")
	if err := p.Handle("add", on); err != nil {
		t.Fatal(err)
	}
	if err := p.Add(NodeSpec{ID: "a", Kind: Computation, Output: "out", Run: run}); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a second handler":      p.Handle("add", on),
		"no handler":            p.Handle("x", nil),
		"a bad stream":          p.Handle("a b", on),
		"a taken id":            p.Add(NodeSpec{ID: "a", Kind: Computation, Output: "b", Run: run}),
		"a taken output":        p.Add(NodeSpec{ID: "b", Kind: Computation, Output: "out", Run: run}),
		"a bad output":          p.Add(NodeSpec{ID: "b", Kind: Computation, Output: "", Run: run}),
		"a bad id":              p.Add(NodeSpec{ID: "observe:a", Kind: Effect, Run: run}),
		"an effect that writes": p.Add(NodeSpec{ID: "b", Kind: Effect, Output: "x", Run: run}),
		"no function":           p.Add(NodeSpec{ID: "b", Kind: Effect}),
		"an unset kind":         p.Add(NodeSpec{ID: "b", Run: run}),
		"an unknown kind":       p.Add(NodeSpec{ID: "b", Kind: 9, Run: run}),
	} {
		if err == nil {
			t.Errorf("%s is accepted", what)
		} else if !strings.Contains(err.Error(), "program p") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestComputationsAndEffectsOnlyRead(t *testing.T) {
	for name, do := range map[string]func(tx *Tx){
		"set":    func(tx *Tx) { tx.Set("x", 1) },
		"delete": func(tx *Tx) { tx.Delete("x") },
		"send":   func(tx *Tx) { tx.Send(home, "add", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			p := counter(t).compute("out", func(tx *Tx) any {
				do(tx)
				if tx.Err() == nil {
					t.Errorf("%s is allowed in a computation", name)
				}
				return 1
			})
			w := newWorld(t)
			h := w.owner("w1", p.Program)
			h.observe("out")
			h.run()
			wantValue(t, h, "out", "absent")
			wantValue(t, h, "x", "absent")
			if h.core.Stats().NodeErrors != 1 {
				t.Errorf("stats %+v", h.core.Stats())
			}
		})
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	for what, cfg := range map[string]Config{
		"no space":          {Runtime: "w1"},
		"no runtime":        {Space: "s"},
		"a tiny commit":     {Space: "s", Runtime: "w1", Limits: ledger.Limits{MaxCommitBytes: 1024}},
		"no group":          {Space: "s", Runtime: "w1", Limits: ledger.Limits{MaxGroup: -1}},
		"no budget":         {Space: "s", Runtime: "w1", Budgets: Budgets{RunBudget: -1}},
		"no iterations":     {Space: "s", Runtime: "w1", Budgets: Budgets{MaxIterations: -1}},
		"no room":           {Space: "s", Runtime: "w1", Limits: ledger.Limits{LaneLimit: -1}},
		"a negative pause":  {Space: "s", Runtime: "w1", Budgets: Budgets{BackoffMin: -1}},
		"a space in a name": {Space: "a b", Runtime: "w1"},
	} {
		if err := cfg.fill(); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

// The program that has both does not run; the core keeps the first and has told the caller why.
func TestL03_ASecondHandlerOfAStreamDoesNotReplaceTheFirst(t *testing.T) {
	answers := func(v string) Handler {
		return func(*Tx, *model.Event) (model.Value, error) { return model.String(v), nil }
	}
	p := newProgram(t)
	if err := p.Handle("ask", answers("first")); err != nil {
		t.Fatal(err)
	}
	const want = "program test: stream ask has a handler already; a stream has exactly one"
	if err := p.Handle("ask", answers("second")); err == nil || err.Error() != want {
		t.Fatalf("a second handler: %v, want %s", err, want)
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	w.send(home, "ask", "e1", nil)
	h.run()
	if got := w.receipt(home, "e1").Result.String(); got != `"first"` {
		t.Errorf("the event was handled by the %s handler", got)
	}
}
