package settle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// What makes no sense at a call fails the transaction, with words, and nothing of it is kept.
func TestMisuse_ACallFailsItsTransaction(t *testing.T) {
	note := settle.NewCell[string]("note")
	count := settle.NewCell[int]("count")
	derived := settle.NewDerived[int]("derived")
	do := settle.NewStream[string]("do")
	calls := map[string]func(tx *settle.Tx){
		"write to another space":    func(tx *settle.Tx) { note.In("other").Set(tx, "x") },
		"delete in another space":   func(tx *settle.Tx) { note.In("other").Delete(tx) },
		"read what is of no type":   func(tx *settle.Tx) { tx.Set("count", "many"); count.Get(tx) },
		"write what is derived":     func(tx *settle.Tx) { tx.Set("derived", 7) },
		"peek at another space":     func(tx *settle.Tx) { note.In("other").Peek(tx) },
		"send to what is no name":   func(tx *settle.Tx) { do.Send(tx, settle.To("o/ther"), "x") },
		"send what is no JSON":      func(tx *settle.Tx) { tx.Set("note", func() {}) },
		"go on after something bad": func(tx *settle.Tx) { note.In("other").Set(tx, "x"); note.Set(tx, "y") },
	}
	wants := map[string]string{
		"write to another space":    "write @other/note: a space is changed by itself only; send it an event",
		"delete in another space":   "send it an event",
		"read what is of no type":   `read count: a string is here; an integer is wanted`,
		"write what is derived":     "change what that reads instead",
		"peek at another space":     "can be read only with Get",
		"send to what is no name":   `space "o/ther"`,
		"send what is no JSON":      "write note",
		"go on after something bad": "send it an event",
	}
	p := settle.NewProgram("p")
	derived.Compute(p, func(*settle.View) (int, error) { return 1, nil })
	do.Handle(p, func(tx *settle.Tx, what string) error {
		note.Set(tx, "begun")
		calls[what](tx)
		return nil
	})
	for what := range calls {
		t.Run(what, func(t *testing.T) {
			s := settletest.New(t, p).Space("s")
			r := settletest.Send(s, do, what)
			if r.Outcome != model.Failed || !strings.Contains(r.Error, wants[what]) {
				t.Errorf("the receipt is %s, %q, without %q", r.Outcome, r.Error, wants[what])
			}
			if note.Exists(s) {
				t.Errorf("the note says %q", note.Get(s))
			}
		})
	}
}

// A draft writes what its node was registered with, and nothing else.
func TestMisuse_ADraftWritesWhatItsNodeWasRegisteredWith(t *testing.T) {
	in, out, other := settle.NewCell[int]("in"), settle.NewCell[int]("out"), settle.NewCell[int]("other")
	p := settle.NewProgram("p").ComputeInto("copy", func(d *settle.Draft) error {
		out.Set(d, in.Get(d))
		other.Set(d, in.Get(d))
		return nil
	}, []settle.Place{out})
	w := settletest.New(t, p, settletest.AllowErrors("copy"))
	s := w.Space("s")
	in.Set(s, 1)
	if out.Get(s) != 0 || other.Get(s) != 0 {
		t.Error("something was written")
	}
	if ps := w.Problems(); len(ps) == 0 || !strings.Contains(ps[0].String(), "name it in ComputeInto or Materialize") {
		t.Errorf("the problems are %v", ps)
	}
}

// A row has any key, and each its node.
func TestEachRow_AnyKeyHasANodeOfItsOwn(t *testing.T) {
	rows := settle.NewRows[int]("rows")
	twice := settle.NewDerivedRows[int]("twice")
	p := settle.NewProgram("p")
	twice.Compute(p, settle.Each(rows, func(v *settle.View, row settle.Row[int]) (int, error) {
		if row.Get(v) < 0 {
			return 0, settle.NoValue
		}
		return 2 * row.Get(v), nil
	}))
	s := settletest.New(t, p).Space("s")
	seen := settletest.Watch(s, settle.NewCell[map[string]int]("twice"))
	keys := []string{"a", "a-b", "", "two words", "é", "a.b", strings.Repeat("long", 40), strings.Repeat("long", 41), "-key-0"}
	want := map[string]int{}
	for i, key := range keys {
		rows.Set(s, key, i)
		want[key] = 2 * i
	}
	settletest.Expect(s, settle.NewCell[map[string]int]("twice"), want)
	for i, key := range keys {
		s.Mark()
		rows.Set(s, key, i+100)
		if ran := s.Ran(); len(ran) != 1 {
			t.Errorf("for row %q ran %v", key, ran)
		}
		if got := twice.Get(s, key); got != 2*(i+100) {
			t.Errorf("row %q is %d", key, got)
		}
	}
	rows.Set(s, "a", -1)
	if twice.Exists(s, "a") {
		t.Error("a row of no value is there")
	}
	rows.Delete(s, "é")
	if twice.Exists(s, "é") || twice.Len(s) != len(keys)-2 {
		t.Errorf("left are %v", twice.Keys(s))
	}
	if len(seen.Values()) == 0 {
		t.Error("nothing was seen")
	}
}

// Of a thousand rows one that changes makes one run, also after a restart.
func TestEachRow_AThousandRowsOneChangeOneRun(t *testing.T) {
	rows := settle.NewRows[int]("rows")
	twice := settle.NewDerivedRows[int]("twice")
	sum := settle.NewDerived[int]("sum")
	p := settle.NewProgram("p")
	twice.Compute(p, settle.Each(rows, func(v *settle.View, row settle.Row[int]) (int, error) { return 2 * row.Get(v), nil }))
	sum.Compute(p, func(v *settle.View) (n int, err error) {
		for _, row := range twice.All(v) {
			n += row
		}
		return n, nil
	})
	w := settletest.New(t, p)
	s := w.Space("s")
	all := map[string]int{}
	for i := range 1000 {
		all[fmt.Sprint("row-", i)] = 1
	}
	s.Set("rows", all)
	settletest.Watch(s, sum)
	if got := sum.Get(s); got != 2000 || s.Runs("sum") > 2 { // once before there are children
		t.Fatalf("the sum is %d after %d runs", got, s.Runs("sum"))
	}
	w.Restart()
	s.Mark()
	rows.Set(s, "row-500", 2)
	if got := sum.Get(s); got != 2002 {
		t.Errorf("the sum is %d", got)
	}
	if ran := strings.Join(s.Ran(), " "); ran != "twice--row-500 sum" {
		t.Errorf("ran: %s", ran)
	}
}

// A cell is a name: what it reads and writes is what the dynamic interface does.
func TestCell_IsANameForWhatAnyClientSees(t *testing.T) {
	c := settle.NewCell[order]("order")
	count := settle.Field[int64](c, "count")
	s := settletest.New(t, settle.NewProgram("p")).Space("s")
	if _, ok := c.Lookup(s); ok || c.Exists(s) || count.Or(3).Get(s) != 3 {
		t.Error("something is there")
	}
	c.Set(s, order{Item: "pear", Count: 2})
	count.Update(s, func(n *int64) { *n++ })
	s.Expect("order", map[string]any{"item": "pear", "count": 3, "tags": map[string]bool{}})
	if link := c.Ref().To(); !model.Equal(link.Value(), count.Ref().To().Value()) && link.Doc != "order" {
		t.Errorf("the link is %v", link)
	}
	c.Delete(s)
	if c.Exists(s) {
		t.Error("it is still there")
	}
}
