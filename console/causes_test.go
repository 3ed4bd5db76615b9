package console

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/history"
)

// A computation that fails is named by the title of its space and of its document, and by its row, instead of a space that is well and a document that
// nothing reads. One that is tried again is held back as nodes on a circle are, and is on none.
func TestCauses_AFailedComputation(t *testing.T) {
	p := office(nil)
	index, rate := settle.NewDerived[int]("index"), settle.NewDerived[int]("rate")
	index.Compute(p, func(*settle.View) (int, error) { return 0, settle.Transient(errors.New("the vault is empty")) })
	rate.Compute(p, func(v *settle.View) (int, error) {
		if count.Get(v) < 0 {
			return 0, errors.New("the count is below zero")
		}
		return count.Get(v), nil
	})
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.send("mint", "add", "a1", 1)
	w.watches("mint", "index")
	w.names("/spaces/mint", "mint: index failed: the vault is empty", "could not be computed: the vault is empty")
	w.names("/spaces/mint/documents/index", "index could not be computed: the vault is empty")
	if text := visible(bodies.FindString(w.want("/spaces/mint", 200))); strings.Contains(text, "converge") {
		t.Errorf("a node that fails is shown as one on a circle: %s", text)
	}
	w.send("bank", "add", "b1", 2)
	w.watches("bank", "rate")
	w.until("/spaces/bank/documents/rate", "rate is 2")
	w.send("bank", "add", "b2", -5)
	w.names("/spaces/bank/documents/rate", "rate could not be computed again: the count is below zero")
	w.names("/spaces/bank", "bank: rate failed: the count is below zero")
}

// The space of a task that was given up is not well: its title says what the overview does.
func TestCauses_ASpaceWhoseTaskWasGivenUp(t *testing.T) {
	p := office(nil)
	a := settle.NewAction[int, int]("sail")
	a.Perform(p, func(context.Context, string, int) (int, error) { return 0, errors.New("the port is closed") }, settle.Attempts(1))
	p.Handle("depart", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		a.Start(tx, ev.ID, 1)
		return settle.Value{}, nil
	})
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.send("pier", "depart", "o1", nil)
	w.names(w.clicks("pier"), "pier: task o1 of action sail was given up after 1 attempt: the port is closed")
	w.names("/", "0 spaces are well")
}

// The title of a space on a circle names the way round, also if it leads through other spaces.
func TestCauses_ACircleIsNamedByTheTitleOfItsSpace(t *testing.T) {
	p := office(nil)
	a, b := settle.NewDerived[int]("a"), settle.NewDerived[int]("b")
	a.Compute(p, func(v *settle.View) (int, error) { return b.Get(v) + 1, nil })
	b.Compute(p, func(v *settle.View) (int, error) { return a.Get(v) + 1, nil })
	depth := settle.NewDerived[int]("depth")
	depth.Compute(p, func(v *settle.View) (int, error) {
		other := map[string]string{"left": "right", "right": "left"}[v.Space()]
		if other == "" {
			return 0, nil
		}
		return depth.In(other).Get(v) + 1, nil
	})
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	for _, space := range []string{"ring", "left", "right"} {
		w.send(space, "add", "a1", 1)
		w.until("/spaces/"+space+"/events/add/a1", "a1 was handled")
	}
	w.watches("ring", "b")
	w.names(w.clicks("ring"), "ring does not converge: ", " -&gt; ")
	w.watches("left", "depth")
	w.names("/spaces/left", "left does not converge: left/depth -&gt; right/depth -&gt; left/depth")
}

// A wrong value several nodes away, in another space, is on the page of what was computed of it, with the link that leads there.
func TestCauses_WhatAValueComesFrom(t *testing.T) {
	p := office(nil)
	rate, tax, total := settle.NewDerived[int]("rate"), settle.NewDerived[int]("tax"), settle.NewDerived[int]("total")
	rate.Compute(p, func(v *settle.View) (int, error) { return count.In("treasury").Get(v), nil })
	tax.Compute(p, func(v *settle.View) (int, error) { return rate.Get(v) * 2, nil })
	total.Compute(p, func(v *settle.View) (int, error) { return tax.Get(v) + count.Get(v), nil })
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.send("treasury", "add", "t1", 16)
	w.until("/spaces/treasury/documents/count", "count is 16")
	w.send("ann", "add", "a1", 3)
	w.watches("ann", "total")
	w.until("/spaces/ann/documents/total", "total is 35")
	text := visible(bodies.FindString(w.until("/spaces/ann/documents/total", "@treasury/count 16")))
	for _, words := range []string{"reads count 3 tax 32", "those come from rate 16 @treasury/count 16"} {
		if !strings.Contains(text, words) {
			t.Errorf("the page does not say %q: %s", words, text)
		}
	}
	w.names(w.clicks("Spaces", "ann", "total", "@treasury/count"), "count is 16", "add", "t1")
}

// Events that send each other in a circle are shown once, as one.
func TestCauses_EventsThatSendEachOther(t *testing.T) {
	ref := func(name string) history.EventRef {
		return history.EventRef{Space: name[:1], Stream: name[1:], Event: "e"}
	}
	chain := func(names string) (refs []history.EventRef) {
		for name := range strings.FieldsSeq(names) {
			refs = append(refs, ref(name))
		}
		return refs
	}
	for _, c := range []struct {
		names, circle string
		shown, more   int
	}{
		{"", "", 0, 0},
		{"ax by cz", "", 3, 0},
		{"ax by ax by", "", 4, 0}, // twice is no habit
		{"ax by ax by ax by", "y of b → x of a → y of b", 2, 4},
		{"cz ax by ax by ax by ax", "y of b → x of a → y of b", 3, 5},
		{"cz ax ax ax", "x of a → x of a", 2, 2},
		{"ax ax ax cz", "", 4, 0}, // it has begun elsewhere, and the beginning is shown
	} {
		got := (&eventData{Tree: &history.Tree{CausedBy: chain(c.names)}}).Causes()
		if got.Circle != c.circle || len(got.Shown) != c.shown || got.More != c.more {
			t.Errorf("%s: %q, %d shown and %d more", c.names, got.Circle, len(got.Shown), got.More)
		}
	}
}

// The page of an event that a circle of events has sent names the circle.
func TestCauses_TheCircleOfAnEvent(t *testing.T) {
	p := office(nil)
	p.Handle("ring", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		n, _ := ev.Payload.AsInt()
		if n > 0 {
			tx.Send("hall", "echo", n-1)
		}
		return settle.Value{}, nil
	})
	p.Handle("echo", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		n, _ := ev.Payload.AsInt()
		tx.Send("porch", "ring", n)
		return settle.Value{}, nil
	})
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.send("porch", "ring", "r1", 6)
	w.names(w.clicks("Spaces", "porch", "ring"), "Caused by echo of hall ring of porch", "more of the same", "These events send each other again and again: ring of porch → echo of hall → ring of porch")
}

// A visitor that may not see the whole deployment is led to pages that it may see, and is not told that no dead letter matches.
func TestCauses_WhatAVisitorMayNotSee(t *testing.T) {
	w := start(t, 1, gateway.Config{Principals: principals(t, `alice ,"read":["a/*"]`, `bob ,"read":["*/*"]`)})
	w.fill("a", "b")
	w.send("b", "nothing", "n1", nil)
	read := func(name, page string) string {
		_, text := w.get(page, "Authorization", "Bearer "+name)
		return text
	}
	w.eventually("bob sees the dead letter", func() bool { return strings.Contains(visible(read("bob", "/dead")), "1 event of nothing failed") })
	if text := visible(read("alice", "/dead")); !strings.Contains(text, "Open dead letters are in spaces that you may not read") || strings.Contains(text, "Show all") {
		t.Errorf("alice sees %s", text)
	}
	if main := bodies.FindString(read("alice", "/")); link(main, "Spaces") != "/spaces" || link(main, "Overview") != "" {
		t.Errorf("alice is led to %s", main)
	}
	w.send("a", "nothing", "n2", nil)
	w.eventually("alice sees the one of a", func() bool {
		text := visible(read("alice", "/dead"))
		return strings.Contains(text, "1 event of nothing failed") && strings.Contains(text, "1 more letter of spaces that you may not read")
	})
}
