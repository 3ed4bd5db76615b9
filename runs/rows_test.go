package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Rows of testdata/rows.txt for which a scenario, which has one run in one space, is no natural form.

func TestLimit_ARunThatDoesNotEndFailsAlone(t *testing.T) {
	w := small(t, "    x = inc(n)\n    while x > 4:\n        if x == 4: inc(x)\n    return x")
	w.start("q", `{"n":1}`)
	w.start("r", `{"n":9}`)
	w.perform()
	if got := w.outcome("r"); !strings.HasPrefix(got, "error LimitError: ") {
		t.Error(got)
	}
	if got := w.outcome("q"); got != "2" {
		t.Error(got)
	}
	w.start("p", `{"n":2}`)
	w.perform()
	if got := w.outcome("p"); got != "3" {
		t.Error(got)
	}
	w.clean()
}

// Of many timers with the same time, so many fire in a transaction as it has room for, and the others in the next ones.
func TestTimers_FireInBoundedTransactions(t *testing.T) {
	w := small(t, "    xs = parallel([late(i) for i in range(n)])\n    return sum(xs)\ndef late(i):\n    sleep(\"1h\")\n    return i")
	w.start("r", `{"n":600}`)
	steps := func() int {
		text, _ := w.s.Value(Doc("r")).Get("head").AsString()
		at, err := parseHead(text)
		if err != nil {
			t.Fatal(err)
		}
		return at.n
	}
	before := steps()
	w.advance(time.Hour)
	if got, most := w.outcome("r"), steps()-before; got != "179700" || most != 3 {
		t.Errorf("%s after %d transactions, want 179700 after 3", got, most)
	}
	w.clean()
}

func TestReplay_ARecordThatIsMissingIsAnError(t *testing.T) {
	w := small(t, "    x = inc(n)\n    return inc(x)")
	w.start("r", "{}")
	w.start("q", "{}")
	page := w.s.Value(pageDoc("r", 0))
	write := func(do func(tx *space.Tx)) {
		t.Helper()
		if err := w.s.Write(func(tx *space.Tx) error {
			do(tx)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	write(func(tx *space.Tx) { tx.Delete(pageDoc("r", 0)) })
	again := func() {
		t.Helper()
		if err := w.Restart(); err != nil {
			t.Fatal(err)
		}
		w.s, _ = w.Space("s")
	}
	again()
	rc := w.sent(StreamSignal, "", `{"run":"r","signal":"go"}`)
	if rc.Outcome != model.Failed || !strings.Contains(rc.Error, "run r: record 0 is not kept") {
		t.Errorf("%s %s", rc.Outcome, rc.Error)
	}
	if w.outcome("r") != "running" {
		t.Error(w.outcome("r"))
	}
	write(func(tx *space.Tx) { tx.Set(pageDoc("r", 0), page) })
	w.perform()
	if w.outcome("r") != "5" || w.outcome("q") != "5" {
		t.Error(w.outcome("r"), w.outcome("q"))
	}
	w.TakeProblems() // the failed event
	w.clean()
}
