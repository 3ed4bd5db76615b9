package settle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// Or gives each reader a value of its own: a reader does not see the changes that another makes to its value.
func TestOr_GivesEachReaderAValueOfItsOwn(t *testing.T) {
	counts := settle.NewCell[map[string]int]("counts").Or(map[string]int{})
	count := settle.NewStream[string]("count")
	p := settle.NewProgram("p")
	count.Handle(p, func(tx *settle.Tx, what string) error {
		counts.Update(tx, func(m *map[string]int) { (*m)[what]++ })
		return nil
	})
	w := settletest.New(t, p)
	a, b := w.Space("a"), w.Space("b")
	settletest.Send(a, count, "x")
	settletest.Send(b, count, "y")
	if got := fmt.Sprint(counts.Get(a), counts.Get(b), counts.Get(w.Space("c"))); got != "map[x:1] map[y:1] map[]" {
		t.Errorf("there is %s", got)
	}
}

func TestOr_RefusesWhatCannotBeEncoded(t *testing.T) {
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, "the value that stands for x") {
			t.Errorf("the panic says %s", r)
		}
	}()
	settle.NewCell[map[string]any]("x").Or(map[string]any{"f": func() {}})
}

type checked struct {
	N int `json:"n"`
}

func (c checked) Check() error {
	if c.N < 0 {
		return errors.New("n is negative")
	}
	return nil
}

// A payload that is a pointer is checked, too, and that there is none is no panic.
func TestStream_APayloadThatIsAPointerIsChecked(t *testing.T) {
	do := settle.NewStream[*checked]("do")
	p := settle.NewProgram("p")
	do.Handle(p, func(*settle.Tx, *checked) error { return nil })
	s := settletest.New(t, p).Space("s")
	for want, payload := range map[string]*checked{
		"":                                      {N: 1},
		"payload of do: n is negative":          {N: -1},
		"payload of do: there is none to check": nil,
	} {
		if r := settletest.Send(s, do, payload); !strings.HasPrefix(r.Error, want) || (r.Error == "") != (want == "") {
			t.Errorf("%v: the receipt says %q, and not %q", payload, r.Error, want)
		}
	}
}

// Rows that another version has left in another form are not taken for none, or what was derived
// from them would be removed.
func TestRows_WhatIsNoObjectIsAnError(t *testing.T) {
	rows := settle.NewRows[int]("rows")
	do := settle.NewStream[string]("do")
	p := settle.NewProgram("p")
	do.Handle(p, func(tx *settle.Tx, what string) error {
		tx.Set("rows", []int{4, 5})
		switch what {
		case "keys":
			rows.Keys(tx)
		case "len":
			rows.Len(tx)
		case "all":
			for range rows.All(tx) {
				t.Error("a row")
			}
		}
		return nil
	})
	s := settletest.New(t, p).Space("s")
	for _, what := range []string{"keys", "len", "all"} {
		if r := settletest.Send(s, do, what); r.Error != "read rows: an object of rows is wanted; this is of kind array" {
			t.Errorf("%s: the receipt is %s, %q", what, r.Outcome, r.Error)
		}
	}
}

// A document that another version has left in another form becomes one of derived rows.
func TestEachRow_TakesOverADocumentOfAnotherForm(t *testing.T) {
	rows := settle.NewRows[int]("rows")
	twice := settle.NewDerivedRows[int]("twice")
	for _, form := range []any{7, "text", []int{1, 2}, map[string]int{"gone": 3}, nil} {
		set := settle.NewTrigger("set")
		old, p := settle.NewProgram("p"), settle.NewProgram("p")
		set.Handle(old, func(tx *settle.Tx) error {
			tx.Set("twice", form)
			rows.Set(tx, "a", 1)
			return nil
		})
		twice.Compute(p, settle.Each(rows, func(v *settle.View, row settle.Row[int]) (int, error) { return 2 * row.Get(v), nil }))
		now := old
		w := settletest.New(t, func(string) *settle.Program { return now })
		s := w.Space("s")
		settletest.Send(s, set)
		now = p
		w.Restart()
		s.Expect("twice", map[string]int{"a": 2})
	}
}

// A place whose type is a link is read as the link, and not as the document that it leads to: the reader
// depends on the link, and on nothing behind it.
func TestRef_APlaceThatIsALinkIsReadItself(t *testing.T) {
	people := settle.NewRows[string]("people")
	first := settle.NewCell[settle.Ref[string]]("first")
	ranks := settle.NewRows[settle.Ref[string]]("ranks")
	leads := settle.NewDerived[string]("leads")
	turn := settle.NewRequest[string, string]("turn")
	p := settle.NewProgram("p")
	leads.Compute(p, func(v *settle.View) (string, error) {
		return fmt.Sprint(first.Get(v), ranks.Get(v, "1"), ranks.At("1").Exists(v), first.Exists(v)), nil
	})
	turn.Handle(p, func(tx *settle.Tx, key string) (string, error) {
		was := fmt.Sprint(first.Get(tx), ranks.At("1").Peek(tx))
		first.Set(tx, people.At(key).Ref())
		ranks.Set(tx, "1", people.At(key).Ref())
		return was, nil
	})
	w := settletest.New(t, p)
	s := w.Space("s")
	seen := settletest.Watch(s, leads)
	people.Set(s, "ann", "Ann")
	settletest.Call(s, turn, "ann")
	s.Mark()
	people.Set(s, "ann", "Anna")
	s.ExpectRuns("leads", 0)
	none, ann, bob := settle.Ref[string]{}, people.At("ann").Ref(), people.At("bob").Ref()
	if got, want := settletest.Call(s, turn, "bob"), fmt.Sprint(ann, ann); got != want {
		t.Errorf("the handler has read %s, want %s", got, want)
	}
	want := fmt.Sprint([]string{
		fmt.Sprint(none, none, false, false), fmt.Sprint(ann, ann, true, true), fmt.Sprint(bob, bob, true, true),
	})
	if got := fmt.Sprint(seen.Values()); got != want {
		t.Errorf("seen: %s, want %s", got, want)
	}
	settletest.Expect(s, first, bob)
	settletest.Expect(s, ranks, map[string]settle.Ref[string]{"1": bob})
	settletest.Expect(w.Space("t"), ranks.At("1").In("s"), bob)
	ranks.Set(s, "2", none)
	settletest.Expect(s, ranks.At("2"), none)
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, "a link that is a whole document is read with Get, in its space") {
			t.Errorf("it says %s", r)
		}
	}()
	first.In("s").Get(settletest.New(settletest.Must, p).Space("t"))
}

// A trigger takes an event of any client: what it carries is not looked at beyond its form, and nothing
// is stored as its result.
func TestTrigger_HasNoPayloadAndNoResult(t *testing.T) {
	ring := settle.NewTrigger("ring")
	rung := settle.NewCell[int]("rung")
	p := settle.NewProgram("p")
	ring.Handle(p, func(tx *settle.Tx) error {
		rung.Update(tx, func(n *int) { *n++ })
		if rung.Get(tx) == 3 {
			return errors.New("that is enough")
		}
		return nil
	})
	s := settletest.New(t, p).Space("s")
	for _, payload := range []any{nil, settle.Value{}} {
		if rc := s.Send("ring", payload); rc.Outcome != model.Handled || !rc.Result.IsAbsent() {
			t.Errorf("an event with %v is %s, with %s: %s", payload, rc.Outcome, rc.Result, rc.Error)
		}
	}
	if rc := s.Send("ring", map[string]int{"n": 1}); rc.Error != "payload of ring: /n: there is no such field; there are no fields" {
		t.Errorf("an event with a payload is %s: %s", rc.Outcome, rc.Error)
	}
	if rc := settletest.Send(s, ring); rc.Error != "that is enough" {
		t.Errorf("the event is %s: %s", rc.Outcome, rc.Error)
	}
	if o := ring.Outgoing(settle.To("s"), settle.ID("r-1")); o.Space != "s" || o.Stream != "ring" || o.Payload != nil {
		t.Errorf("the event to send is %+v", o)
	}
}
