package space

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

func TestQ22_NothingIsDispatchedBeforeTheTakeoverIsConfirmed(t *testing.T) {
	w := newWorld(t)
	h := w.host("w1", counter(t).sum("twice", "count", "count").Program)
	w.send(home, "add", "e1", 1)
	h.observe("twice")
	h.deliver()
	h.settle()
	if h.core.TakeOver(); h.core.Owned() {
		t.Error("the runtime owns the space before it requested the takeover")
	}
	h.settle()
	h.settle()
	if len(h.story) > 0 || !h.inFlight.Commit.Takeover {
		t.Errorf("it did %v, and appends %+v", h.story, h.inFlight.Commit)
	}
	h.decide()
	if !h.core.Owned() {
		t.Error("the takeover is confirmed, but the runtime does not own the space")
	}
	h.run()
	wantValue(t, h, "twice", "2")
}

// A takeover that loses is repeated on top of the commit that won.
func TestQ16_ATakeoverThatIsRefusedIntegratesAndAsksAgain(t *testing.T) {
	w := newWorld(t)
	a := w.owner("w1", counter(t).Program)
	w.send(home, "add", "e1", 1)
	b := w.host("w2", counter(t).Program)
	b.core.TakeOver()
	b.settle()
	a.run() // e1 is in the log now
	if b.decide() {
		t.Fatal("accepted on top of a commit that it had not seen")
	}
	b.takeOver()
	w.send(home, "add", "e2", 1)
	b.run()
	wantValue(t, b, "count", "2")
	if got, want := w.receipts(home), []string{"e1 handled", "e2 handled"}; !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
}

// The takeover commit contains what was integrated between the call of TakeOver and the append: it does not
// move the lane back.
func TestATakeoverCarriesTheCursorOfWhenItIsSent(t *testing.T) {
	w := newWorld(t)
	a := w.owner("w1", counter(t).Program)
	b := w.host("w2", counter(t).Program)
	b.core.TakeOver()
	w.send(home, "add", "e1", 1)
	a.run()
	b.integrate()
	b.settle()
	if !b.decide() {
		t.Fatal("refused")
	}
	b.run()
	wantValue(t, b, "count", "1")
	if got := w.receipts(home); len(got) != 1 {
		t.Errorf("receipts %v: e1 was handled again", got)
	}
}

func TestATakeoverDeposesTheOwner(t *testing.T) {
	w := newWorld(t)
	a := w.owner("w1", counter(t).Program)
	b := w.owner("w2", counter(t).Program)
	w.send(home, "add", "e1", 1)
	a.deliver()
	a.settle() // it does not know yet
	wantValue(t, a, "count", "1")
	a.decide()
	if !a.core.Deposed() || a.core.Owned() {
		t.Error("the runtime lost the race but is not deposed")
	}
	wantValue(t, a, "count", "absent")
	a.run()
	b.run()
	if a.core.Stats().Handled != 0 || len(w.receipts(home)) != 1 {
		t.Errorf("receipts %v, the deposed handled %d", w.receipts(home), a.core.Stats().Handled)
	}
	wantValue(t, b, "count", "1")
	// The other way round.
	w.send(home, "add", "e2", 1)
	a.integrate()
	a.takeOver()
	a.run()
	wantValue(t, a, "count", "2")
	if got, want := w.receipts(home), []string{"e1 handled", "e2 handled"}; !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
}

// A refused commit is undone as a whole: the append under way, the group behind it, and everything computed
// from both. All of it is repeated on top of the commit that won.
func TestI11_W07_W10_ARefusedSuffixIsUndoneAndDoneAgainOnce(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).set().sum("twice", "count", "count").Program)
	h.observe("twice")
	h.run()
	w.send(home, "add", "e1", 1)
	h.deliver()
	h.settle() // under way
	w.send(home, "add", "e2", 10)
	h.deliver()
	h.settle() // in the open group
	wantValue(t, h, "twice", "22")
	h.w.put(home, put("count", 100))
	a := h.inFlight
	h.inFlight = nil
	if seq := w.append(home, a); seq != 0 {
		t.Fatal("accepted")
	}
	h.core.Refuse()
	wantValue(t, h, "count", "absent")
	wantValue(t, h, "twice", "0")
	if r := h.settle(); r.Append != nil || r.More {
		t.Errorf("the space continues before the foreign commit is integrated: %+v", r)
	}
	h.integrate()
	h.core.Resume()
	h.run()
	wantValue(t, h, "count", "111")
	wantValue(t, h, "twice", "222")
	if got, want := w.receipts(home), []string{"e1 handled", "e2 handled"}; !slices.Equal(got, want) {
		t.Errorf("receipts %v, want %v", got, want)
	}
	if got := h.core.Stats().Refused; got != 1 {
		t.Errorf("%d refusals counted", got)
	}
}

// A computation whose output was undone runs again, although nothing it read has changed.
func TestI3_AnUndoneOutputIsComputedAgain(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).set().sum("out", "base").Program)
	w.send(home, "set", "e1", map[string]any{"base": 5})
	h.run()
	h.observe("out")
	h.settle() // the output is under way
	wantValue(t, h, "out", "5")
	h.refuse(put("beside", 1))
	wantValue(t, h, "out", "absent")
	h.run()
	wantValue(t, h, "out", "5")
	if got := w.replica(home).Doc("out").Value.String(); got != "5" {
		t.Errorf("the log says %s", got)
	}
}

// Another owner's program may have computed something else. This runtime must not take that for its own
// output.
func TestI1_AnOutputThatAnotherRuntimeWroteIsComputedAgain(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).set().sum("out", "base").Program)
	w.send(home, "set", "e1", map[string]any{"base": 5})
	h.observe("out")
	h.run()
	other := w.owner("w2", newProgram(t).set().compute("out", func(tx *Tx) any { return num(tx.Get("base")) * 1000 }).Program)
	other.observe("out")
	other.run()
	wantValue(t, other, "out", "5000")
	h.integrate()
	h.takeOver()
	h.run()
	wantValue(t, h, "out", "5")
}

func TestAForeignCommitIsNotIntegratedOverUndecidedTransactions(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program)
	w.send(home, "add", "e1", 1)
	h.deliver()
	h.settle()
	w.put(home, put("x", 1))
	e := w.logs[home][len(w.logs[home])-1]
	if err := h.core.Integrate(e); err == nil {
		t.Error("no error")
	}
	h.decide()
	h.run()
	wantValue(t, h, "count", "1")
	wantValue(t, h, "x", "1")
}

// A saved state and the log after it make up the space, whenever the state was saved.
func TestI7_CheckpointAndLogTailReloadTheSameState(t *testing.T) {
	p := func() *Program { return relay(t).set().sum("out", "base").Program }
	for at := range 6 {
		t.Run(fmt.Sprint("saved after ", at), func(t *testing.T) {
			w := newWorld(t)
			h := w.owner("w1", p())
			h.observe("out")
			for i := range 5 {
				if i == at {
					h.checkpoint()
				}
				w.send(home, "set", fmt.Sprint("s", i), map[string]any{"base": i})
				w.send(home, "start", fmt.Sprint("e", i), nil)
				h.run()
			}
			again := w.host("w2", p())
			for _, doc := range []string{"base", "out", "log"} {
				wantValue(t, again, doc, h.value(doc))
			}
			if again.core.Seq() != h.core.Seq() || again.core.LaneDone() != h.core.LaneDone() {
				t.Errorf("loaded at %d, lane %d; was at %d, lane %d", again.core.Seq(), again.core.LaneDone(), h.core.Seq(), h.core.LaneDone())
			}
			again.takeOver()
			again.run()
			if got := len(w.receipts(home)); got != 25 {
				t.Errorf("%d receipts, want 25: something was handled again", got)
			}
		})
	}
}

// A restart without saved observations runs each observed computation once, and nothing else; nothing
// changes.
func TestI7_ARestartRunsObservedNodesAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", chain(t).Program)
	h.observe("b")
	w.send(home, "set", "e1", map[string]any{"base": 3})
	h.run()
	again := w.owner("w2", chain(t).Program)
	commits := len(w.logs[home])
	again.observe("b")
	again.run()
	if len(w.logs[home]) != commits {
		t.Errorf("%d commits for a restart", len(w.logs[home])-commits)
	}
	if again.runs["a"] != 1 || again.runs["b"] != 1 || again.runs["c"]+again.runs["spare"] != 0 {
		t.Errorf("runs %v", again.runs)
	}
}

func TestIntegrateRefusesUnreadableCommits(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", counter(t).Program)
	for _, data := range []string{"", "nonsense", `{"v":99,"sp":"home","rt":"x","cur":{}}`} {
		if err := h.core.Integrate(model.LogEntry{Space: home, Seq: 99, Data: []byte(data)}); err == nil {
			t.Errorf("%q was integrated", data)
		}
	}
}
