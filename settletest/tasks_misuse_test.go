package settletest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// Mistakes with tasks are reported at the call, or when the program is built.
func TestTasks_MisuseIsReported(t *testing.T) {
	t.Parallel()
	other := settle.NewAction[int, int]("other")
	elsewhere := settle.NewInput[int]("else")
	p := warehouse(shipFor5)
	do := settle.NewStream[string]("do")
	do.Handle(p, func(tx *settle.Tx, what string) error {
		switch what {
		case "write":
			tx.Set("ship", "mine")
		case "wants":
			tx.Delete("price-wanted", "tea")
		case "unknown":
			other.Start(tx, "k", 1)
		case "unknown input":
			elsewhere.Refresh(tx, "k")
		case "read input":
			elsewhere.Get(tx, "k")
		case "no key":
			ship.Start(tx, "", "")
		case "another input":
			ship.Start(tx, "k", "a")
			ship.Start(tx, "k", "b")
		case "forget":
			ship.Start(tx, "k", "a")
			ship.Forget(tx, "k")
		case "started input":
			tx.StartTask("price", "k", 1)
		}
		return nil
	})
	s := settletest.New(t, p).Space("w")
	for what, want := range map[string]string{
		"write":         "this document holds the tasks of ship; start, cancel or forget those",
		"wants":         "this document holds the tasks of price",
		"unknown":       "start task \"k\" of other: program warehouse has no action or input of that name; register it with Perform or External",
		"unknown input": "refresh \"k\" of input else: program warehouse has no action or input of that name; register it with Fetch",
		"read input":    "read \"k\" of input else: program warehouse has no action or input of that name; register it with Fetch",
		"no key":        "it must have between 1 and 256",
		"another input": `it is pending with another input: "a", then "b"`,
		"forget":        "it is pending; cancel it first",
		"started input": "it is an input: it can be wanted, not started",
	} {
		if rc := settletest.Send(s, do, what); !strings.Contains(rc.Error, want) {
			t.Errorf("%s: %q, want %q", what, rc.Error, want)
		}
	}
	if got := settletest.PendingTasks(s, ship); len(got) != 0 {
		t.Errorf("pending are %v", got)
	}
	for want, add := range map[string]func(p *settle.Program){
		"holds the tasks of action ship": func(p *settle.Program) {
			settle.NewDerived[int]("ship").Compute(p, func(*settle.View) (int, error) { return 0, nil })
		},
		"has a handler already": func(p *settle.Program) {
			settle.NewRequest[int, int]("ship").Handle(p, func(*settle.Tx, int) (int, error) { return 0, nil })
		},
		"action ship is performed already": func(p *settle.Program) { ship.External(p) },
		"input price is performed already": func(p *settle.Program) {
			price.Fetch(p, func(context.Context, string) (Price, error) { return Price{}, nil })
		},
		"has a Done function already": func(p *settle.Program) {
			ship.Done(p, func(*settle.Tx, settle.Task[string, int64]) error { return nil })
		},
	} {
		p := warehouse(shipFor5)
		add(p)
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A computation that reads an undeclared input fails the test at the read.
func TestTasks_ReadingAnUndeclaredInputFailsTheTest(t *testing.T) {
	t.Parallel()
	failing(t, func(tb *recorder) {
		p := settle.NewProgram("cafe")
		offer.Compute(p, func(v *settle.View) (string, error) { return fmt.Sprint(price.Get(v, "tea").Value), nil })
		settletest.Watch(settletest.New(tb, p).Space("s"), offer)
	}).wantFailure(`read "tea" of input price: program cafe has no action or input of that name; register it with Fetch`)
}

// Finished tasks are kept for a day, at most a thousand of them.
func TestTasks_AreForgottenADayAfterTheirEnd(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, warehouse(shipFor5), settletest.WithoutValidator())
	s := w.Space("w")
	for i := range 1300 {
		settletest.Call(s, order, fmt.Sprint("o", i))
		s.Perform()
	}
	count := func() (n int) {
		for range ship.All(s) {
			n++
		}
		return n
	}
	if n := count(); n < 1000 || n > 1070 {
		t.Errorf("%d are kept", n)
	}
	w.Advance(25 * time.Hour)
	for i := range 64 {
		settletest.Call(s, order, fmt.Sprint("p", i))
	}
	if n := count(); n > 128 {
		t.Errorf("%d tasks are kept after a day", n)
	}
	settletest.Expect(s, owed, 6500)
}

// The failure reminds the test's author that tasks are not performed automatically.
func TestTasks_AFailedExpectationNamesPendingTasks(t *testing.T) {
	t.Parallel()
	r := failing(t, func(tb *recorder) {
		s := settletest.New(tb, warehouse(shipFor5)).Space("w")
		settletest.Call(s, order, "tea")
		settletest.Expect(s, owed, 5)
	})
	r.wantFailure("tasks of ship are pending, these are: tea", "Perform, Complete and GiveUp")
}
