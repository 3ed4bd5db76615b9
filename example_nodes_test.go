package settle_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// A computation derives a document while it is observed, and again when something that it has read
// has changed.
func ExampleNewDerived() {
	celsius := settle.NewCell[float64]("celsius")
	fahrenheit := settle.NewDerived[float64]("fahrenheit")

	p := settle.NewProgram("weather")
	fahrenheit.Compute(p, func(v *settle.View) (float64, error) {
		c, ok := celsius.Lookup(v)
		if !ok {
			return 0, settle.NoValue // the document does not exist then
		}
		return c*9/5 + 32, nil
	})

	rome := settletest.New(settletest.Must, p).Space("rome")
	celsius.Set(rome, 20)
	celsius.Set(rome, 30)
	fmt.Println(rome.Runs("fahrenheit"), "runs: not observed")
	seen := settletest.Watch(rome, fahrenheit)
	celsius.Set(rome, 100)
	celsius.Set(rome, 100)
	fmt.Println(rome.Runs("fahrenheit"), "runs:", seen.Values())
	// Output:
	// 0 runs: not observed
	// 2 runs: [86 212]
}

// A part of a derived document is a dependency of its own: its readers do not run when other parts
// change.
func ExamplePart() {
	type Sum struct {
		Count int64 `json:"count"`
		Total int64 `json:"total"`
	}
	numbers := settle.NewCell[[]int64]("numbers")
	sum := settle.NewDerived[Sum]("sum")
	count := settle.Part[int64](sum, "count")
	parity := settle.NewDerived[string]("parity")

	p := settle.NewProgram("numbers")
	sum.Compute(p, func(v *settle.View) (s Sum, err error) {
		for _, n := range numbers.Get(v) {
			s.Count, s.Total = s.Count+1, s.Total+n
		}
		return s, nil
	})
	parity.Compute(p, func(v *settle.View) (string, error) {
		return []string{"even", "odd"}[count.Get(v)%2], nil
	})

	s := settletest.New(settletest.Must, p).Space("s")
	settletest.Watch(s, parity)
	numbers.Set(s, []int64{1, 2, 3})
	numbers.Set(s, []int64{4, 5, 6})
	fmt.Println(parity.Get(s), sum.Get(s).Total, "sum:", s.Runs("sum"), "parity:", s.Runs("parity"))
	// Output:
	// odd 15 sum: 3 parity: 2
}

// Each row is derived by a node of its own. The whole document can be watched.
func ExampleEach() {
	type Order struct {
		Price, Count int64
	}
	orders := settle.NewRows[Order]("orders")
	totals := settle.NewDerivedRows[int64]("totals")

	p := settle.NewProgram("shop")
	totals.Compute(p, settle.Each(orders, func(v *settle.View, order settle.Row[Order]) (int64, error) {
		o := order.Get(v)
		return o.Price * o.Count, nil
	}))

	w := settletest.New(settletest.Must, p)
	shop := w.Space("shop")
	for i := range int64(1000) {
		orders.Set(shop, fmt.Sprintf("order-%d", i), Order{Price: i, Count: 1})
	}
	shop.Watch("totals")

	shop.Mark()
	orders.Set(shop, "order-7", Order{Price: 7, Count: 6})
	fmt.Println(totals.Get(shop, "order-7"), "by", shop.Ran())

	shop.Mark()
	orders.Delete(shop, "order-8")
	fmt.Println(totals.Len(shop), "rows by", shop.Ran())
	// Output:
	// 42 by [totals--order-7]
	// 999 rows by [totals]
}

// Node returns the name of the node of a key, to count the runs of its row.
func ExampleDerivedRows_Node() {
	pages := settle.NewRows[string]("pages") // by address
	lengths := settle.NewDerivedRows[int]("lengths")
	p := settle.NewProgram("site")
	lengths.Compute(p, settle.Each(pages, func(v *settle.View, page settle.Row[string]) (int, error) {
		return len(page.Get(v)), nil
	}))

	s := settletest.New(settletest.Must, p).Space("site")
	pages.Set(s, "/about", "about page")
	s.ExpectRuns(lengths.Node("/about"), 0) // not observed yet
	settletest.Expect(s, lengths.At("/about"), 10)
	s.ExpectRuns(lengths.Node("/about"), 1)
	fmt.Println(lengths.Node("about"), lengths.Node("/about"))
	// Output:
	// lengths--about lengths---key-oter9tc82u05esb2qvv8ukafis
}

// Derived rows are read one by one, or all together.
func ExampleNewDerivedRows() {
	words := settle.NewRows[string]("words")
	lengths := settle.NewDerivedRows[int]("lengths")
	longest := settle.NewDerived[string]("longest")

	p := settle.NewProgram("words")
	lengths.Compute(p, settle.Each(words, func(v *settle.View, word settle.Row[string]) (int, error) {
		return len(word.Get(v)), nil
	}))
	longest.Compute(p, func(v *settle.View) (key string, err error) {
		most := 0
		for k, n := range lengths.All(v) {
			if n > most {
				key, most = k, n
			}
		}
		return key, nil
	})

	s := settletest.New(settletest.Must, p).Space("s")
	words.Set(s, "a", "fig")
	words.Set(s, "b", "banana")
	fmt.Println(longest.Get(s), lengths.Get(s, "a"))
	// Output:
	// b 3
}

// A computation of several documents: observing any of them runs it.
func ExampleProgram_ComputeInto() {
	scores := settle.NewRows[int]("scores")
	best := settle.NewCell[string]("best")
	worst := settle.NewCell[string]("worst")

	p := settle.NewProgram("quiz").ComputeInto("extremes", func(d *settle.Draft) error {
		names := scores.Keys(d)
		if len(names) == 0 {
			return nil
		}
		slices.SortFunc(names, func(a, b string) int { return scores.Get(d, b) - scores.Get(d, a) })
		best.Set(d, names[0])
		worst.Set(d, names[len(names)-1])
		return nil
	}, []settle.Place{best, worst})

	quiz := settletest.New(settletest.Must, p).Space("quiz")
	for name, score := range map[string]int{"ann": 3, "bob": 1, "cy": 2} {
		scores.Set(quiz, name, score)
	}
	fmt.Println(quiz.Runs("extremes"), "runs")
	fmt.Println(best.Get(quiz), worst.Get(quiz))
	// Output:
	// 0 runs
	// ann bob
}

// A materializer maintains an index: where it writes is known only while it runs, so it runs
// without being observed.
func ExampleProgram_Materialize() {
	tags := settle.NewRows[[]string]("tags")          // by note
	notes := settle.NewRows[map[string]bool]("notes") // by tag

	p := settle.NewProgram("notes").Materialize("by-tag", func(d *settle.Draft) error {
		index := map[string]map[string]bool{}
		for note, ts := range tags.All(d) {
			for _, tag := range ts {
				if index[tag] == nil {
					index[tag] = map[string]bool{}
				}
				index[tag][note] = true
			}
		}
		for _, tag := range notes.Keys(d) {
			if index[tag] == nil {
				notes.Delete(d, tag)
			}
		}
		for tag, found := range index {
			notes.Set(d, tag, found)
		}
		return nil
	}, []settle.Place{notes})

	s := settletest.New(settletest.Must, p).Space("s")
	tags.Set(s, "milk", []string{"shop", "today"})
	tags.Set(s, "bread", []string{"shop"})
	fmt.Println(notes.Keys(s), notes.Get(s, "shop"))
	tags.Set(s, "milk", []string{"shop"})
	fmt.Println(notes.Keys(s))
	// Output:
	// [shop today] map[bread:true milk:true]
	// [shop]
}

// An effect observes documents, and so makes their computations run. This one logs.
func ExampleProgram_Effect() {
	level := settle.NewCell[int]("level")
	full := settle.NewDerived[bool]("full")

	p := settle.NewProgram("tank")
	full.Compute(p, func(v *settle.View) (bool, error) { return level.Get(v) >= 100, nil })
	p.Effect("gauge", func(v *settle.View) error {
		v.Log("the tank", "full", full.Get(v))
		return nil
	})

	tank := settletest.New(settletest.Must, p).Space("tank")
	for _, l := range []int{20, 40, 100, 120} {
		level.Set(tank, l)
	}
	fmt.Println("full:", tank.Runs("full"), "gauge:", tank.Runs("gauge"))
	// Output:
	// full: 5 gauge: 2
}

// After an error the derived document keeps its value; the node runs again when something that it
// read changes.
func ExampleDerived_Compute() {
	input := settle.NewCell[string]("input")
	first := settle.NewDerived[string]("first")

	p := settle.NewProgram("words")
	first.Compute(p, func(v *settle.View) (string, error) {
		word, _, ok := strings.Cut(input.Get(v), " ")
		if !ok {
			return "", errors.New("there is no space in it")
		}
		return word, nil
	})

	w := settletest.New(settletest.Must, p, settletest.AllowErrors("first"))
	s := w.Space("s")
	input.Set(s, "one two")
	seen := settletest.Watch(s, first)
	for _, text := range []string{"three", "four five"} {
		input.Set(s, text)
	}
	fmt.Println(seen.Values(), len(w.Problems()), "error")
	// Output:
	// [one four] 1 error
}

// A debounced node waits until nothing that it reads has changed for a while.
func ExampleDebounce() {
	text := settle.NewCell[string]("text")
	words := settle.NewDerived[int]("words")

	p := settle.NewProgram("editor")
	words.Compute(p, func(v *settle.View) (int, error) {
		return len(strings.Fields(text.Get(v))), nil
	}, settle.Debounce(300*time.Millisecond))

	w := settletest.New(settletest.Must, p)
	s := w.Space("s")
	seen := settletest.Watch(s, words)
	for _, t := range []string{"a", "a b", "a b c"} {
		text.Set(s, t)
		w.Advance(100 * time.Millisecond)
	}
	w.Advance(time.Second)
	fmt.Println(seen.Values())
	// Output:
	// [0 3]
}

// A debounced node whose inputs change continuously still runs periodically.
func ExampleMaxWait() {
	text := settle.NewCell[string]("text")
	words := settle.NewDerived[int]("words")

	p := settle.NewProgram("editor")
	words.Compute(p, func(v *settle.View) (int, error) {
		return len(strings.Fields(text.Get(v))), nil
	}, settle.Debounce(300*time.Millisecond), settle.MaxWait(time.Second))

	w := settletest.New(settletest.Must, p)
	s := w.Space("s")
	seen := settletest.Watch(s, words)
	for range 25 {
		text.Set(s, text.Get(s)+" a")
		w.Advance(100 * time.Millisecond)
	}
	fmt.Println(seen.Values())
	// Output:
	// [0 10 20]
}

// A throttled node runs at once, and then not again for a while.
func ExampleThrottle() {
	count := settle.NewCell[int]("count")
	shown := settle.NewDerived[int]("shown")

	p := settle.NewProgram("counter")
	shown.Compute(p, func(v *settle.View) (int, error) { return count.Get(v), nil }, settle.Throttle(time.Second))

	w := settletest.New(settletest.Must, p)
	s := w.Space("s")
	seen := settletest.Watch(s, shown)
	for i := range 30 {
		count.Set(s, i)
		w.Advance(100 * time.Millisecond)
	}
	fmt.Println(len(seen.Values()), "of 30 shown")
	// Output:
	// 4 of 30 shown
}

// An effect of a change group ignores the writes of transactions of the group.
func ExampleChangeGroup() {
	text := settle.NewCell[string]("text")
	typed := settle.NewStream[string]("typed")
	pasted := settle.NewStream[string]("pasted")

	p := settle.NewProgram("editor")
	typed.Handle(p, func(tx *settle.Tx, s string) error {
		tx.Group("editor")
		text.Set(tx, s)
		return nil
	})
	pasted.Handle(p, func(tx *settle.Tx, s string) error {
		text.Set(tx, s)
		return nil
	})
	p.Effect("redraw", func(v *settle.View) error { text.Get(v); return nil }, settle.ChangeGroup("editor"))

	s := settletest.New(settletest.Must, p).Space("s")
	s.Mark()
	settletest.Call(s, typed, "a")
	fmt.Println(s.Runs("redraw"))
	settletest.Call(s, pasted, "ab")
	fmt.Println(s.Runs("redraw"))
	// Output:
	// 0
	// 1
}

// A volatile document is derived but not stored: it is computed again after a restart.
func ExampleVolatile() {
	x := settle.NewCell[int]("x")
	square := settle.NewDerived[int]("square")
	result := settle.NewDerived[int]("result")

	p := settle.NewProgram("p")
	square.Compute(p, func(v *settle.View) (int, error) { return x.Get(v) * x.Get(v), nil }, settle.Volatile())
	result.Compute(p, func(v *settle.View) (int, error) { return square.Get(v) + 1, nil })

	w := settletest.New(settletest.Must, p)
	s := w.Space("s")
	x.Set(s, 3)
	fmt.Println(result.Get(s))
	w.Restart()
	s.Mark()
	x.Set(s, 4)
	fmt.Println(result.Get(s), s.Ran())
	// Output:
	// 10
	// 17 [square result]
}

// Nodes that name their version do not run again when the executable changes.
func ExampleVersion() {
	x := settle.NewCell[int]("x")
	double := settle.NewDerived[int]("double")
	program := func(version string, factor int) *settle.Program {
		p := settle.NewProgram("p")
		double.Compute(p, func(v *settle.View) (int, error) { return factor * x.Get(v), nil }, settle.Version(version))
		return p
	}

	running := program("1", 2)
	w := settletest.New(settletest.Must, func(string) *settle.Program { return running })
	s := w.Space("s")
	x.Set(s, 21)
	settletest.Watch(s, double)
	for _, next := range []*settle.Program{program("1", 2), program("2", 3)} {
		s.Mark()
		running = next
		w.Restart()
		fmt.Println(double.Get(s), "after", s.Runs("double"), "runs")
	}
	// Output:
	// 42 after 0 runs
	// 63 after 1 runs
}

// A declared read puts the first run of a node after the nodes that write there.
func ExampleExpects() {
	a := settle.NewCell[int]("a")
	b := settle.NewDerived[int]("b")

	p := settle.NewProgram("p")
	p.Effect("show", func(v *settle.View) error { b.Get(v); return nil }, settle.Expects(b))
	b.Compute(p, func(v *settle.View) (int, error) { return a.Get(v) + 1, nil })

	s := settletest.New(settletest.Must, p).Space("s")
	fmt.Println(s.Ran())
	// Output:
	// [b show]
}

// An effect whose runs are slow is debounced for that, unless it is exempted.
func ExampleNoAutoDebounce() {
	x := settle.NewCell[int]("x")
	p := settle.NewProgram("p").Effect("slow", func(v *settle.View) error { x.Get(v); return nil }, settle.NoAutoDebounce())

	s := settletest.New(settletest.Must, p).Space("s")
	x.Set(s, 1)
	fmt.Println(s.Runs("slow"))
	// Output:
	// 2
}

// One binary has two ways to compute a price, and something outside of it selects one. The version
// tells a restarting worker that its documents were computed by other code.
func ExampleProgram_Version() {
	price := settle.NewCell[int]("price")
	shown := settle.NewDerived[int]("shown")
	factor := 1
	pricing := func(string) *settle.Program {
		by := factor
		p := settle.NewProgram("pricing").Version(fmt.Sprint("factor-", by))
		shown.Compute(p, func(v *settle.View) (int, error) { return by * price.Get(v), nil })
		return p
	}
	w := settletest.New(settletest.Must, pricing)
	shop := w.Space("shop")
	price.Set(shop, 10)
	fmt.Println(shown.Get(shop))

	factor = 2
	w.Restart()
	fmt.Println(shown.Get(shop))
	// Output:
	// 10
	// 20
}
