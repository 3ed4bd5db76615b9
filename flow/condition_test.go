package flow_test

import (
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/settletest"
)

type stock struct {
	Left int    `json:"left"`
	At   string `json:"at"`
}

var (
	inStock  = settle.NewCell[stock]("stock")
	left     = settle.Field[int](inStock, "left")
	isLarge  = settle.NewDerived[bool]("is_large")
	someword = settle.NewCell[string]("word").Or("none")
)

type seen struct {
	First stock
	Left  int
	Large bool
	Late  string
	Word  string
}

// A workflow in Go waits for conditions of cells, of their fields, and of derived documents.
func TestUntil_WaitsForDocuments(t *testing.T) {
	p := settle.NewProgram("stock")
	settle.NewStream[stock]("set").Handle(p, func(tx *settle.Tx, s stock) error {
		inStock.Set(tx, s)
		return nil
	})
	runs := 0
	isLarge.Compute(p, func(v *settle.View) (bool, error) {
		runs++
		return left.Get(v) > 100, nil
	})
	w := flow.New(p)
	flow.Define(w, "watch", "1", func(b *flow.Builder, in flow.Value[request]) flow.Value[seen] {
		first := flow.Until(b, inStock, func(s stock) bool { return s.At == "Riga" })
		n := flow.Map(b, in, func(r request) int { return r.N })
		more := flow.UntilWith(b, n, left, func(n, left int) bool { return left > n })
		large := flow.Until(b, isLarge, func(is bool) bool { return is })
		none := flow.Until(b, isLarge, func(is bool) bool { return !is }) // its value is false
		late := flow.TryUntil(b, inStock, func(s stock) bool { return s.At == "Oslo" }, time.Hour)
		word := flow.TryUntilWith(b, n, someword, func(n int, w string) bool { return n == 3 && w == "none" }, time.Hour)
		out := flow.Map2(b, first, more, func(s stock, n int) seen { return seen{First: s, Left: n} })
		out = flow.Map2(b, out, large, func(s seen, is bool) seen { s.Large = is; return s })
		out = flow.Map2(b, out, none, func(s seen, is bool) seen { s.Large = s.Large && !is; return s })
		out = flow.Map2(b, out, late, func(s seen, o flow.Outcome[stock]) seen { s.Late = o.Error.Type; return s })
		return flow.Map2(b, out, word, func(s seen, o flow.Outcome[string]) seen { s.Word = o.Value; return s })
	})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	s := settletest.New(t, p).Space("s")
	s.Call("workflow-start", map[string]any{"workflow": "watch", "run": "r", "args": request{3}})
	set := func(n int, at string) { s.Call("set", stock{n, at}) }
	set(1, "Oslo")
	set(2, "Riga")
	s.Expect("run_r", "running", "state")
	if runs != 0 {
		t.Error("the derived document was computed before the run waits for it")
	}
	set(4, "Riga")
	if runs == 0 {
		t.Error("the derived document was not computed, and the run waits for it")
	}
	s.World().Restart()
	set(200, "Riga")
	set(5, "Riga")
	s.Advance(time.Hour)
	s.Expect("run_r", seen{First: stock{2, "Riga"}, Left: 4, Large: true, Late: "TimeoutError", Word: "none"}, "result")
	runs = 0
	set(300, "Riga")
	if runs != 0 {
		t.Error("the derived document was computed after the run has ended")
	}
}

func TestUntil_IsAboutTheOwnSpace(t *testing.T) {
	w := flow.New(settle.NewProgram("p"))
	flow.Define(w, "w", "1", func(b *flow.Builder, _ flow.Value[request]) flow.Value[stock] {
		return flow.Until(b, inStock.In("other"), func(stock) bool { return true })
	})
	if err := w.Register(); err == nil {
		t.Error("there is no error")
	}
}
