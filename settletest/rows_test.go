package settletest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

var (
	prices  = settle.NewRows[int64]("prices")
	doubles = settle.NewDerivedRows[int64]("doubles")
)

func doubling() *settle.Program {
	p := settle.NewProgram("doubling")
	doubles.Compute(p, settle.Each(prices, func(v *settle.View, price settle.Row[int64]) (int64, error) {
		return 2 * price.Get(v), nil
	}))
	return p
}

// The runs of a row are counted by its key, whatever characters it has, even before the row has a node.
func TestExpectRuns_OfAnUnobservedRowIsZero(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "two words", "/x.y", strings.Repeat("long", 40)} {
		s := settletest.New(t, doubling()).Space("s")
		prices.Set(s, key, 1)
		s.ExpectRuns(doubles.Node(key), 0)
		settletest.Expect(s, doubles.At(key), 2)
		s.ExpectRuns(doubles.Node(key), 1)
		prices.Set(s, "b", 1)
		s.ExpectRuns(doubles.Node("b"), 0) // the row is new, and no longer observed
		prices.Set(s, key, 2)
		s.ExpectRuns(doubles.Node(key), 1)
	}
}

// A list of the keys, the number of rows and the node that makes a node per row depend on the set of keys alone; what
// iterates over the rows depends on all of them.
func TestC25_ListsReadTheKeysOfTheirRowsAlone(t *testing.T) {
	t.Parallel()
	p := doubling()
	list := settle.NewDerived[[]string]("list")
	list.Compute(p, func(v *settle.View) ([]string, error) { return prices.Keys(v), nil })
	number := settle.NewDerived[int]("number")
	number.Compute(p, func(v *settle.View) (int, error) { return prices.Len(v), nil })
	sum := settle.NewDerived[int64]("sum")
	sum.Compute(p, func(v *settle.View) (sum int64, err error) {
		for _, price := range prices.All(v) {
			sum += price
		}
		return sum, nil
	})
	s := settletest.New(t, p).Space("s")
	settletest.Watch(s, list)
	settletest.Watch(s, number)
	settletest.Watch(s, sum)
	settletest.Watch(s, doubles)
	s.Mark()
	runs := func(what string, keys, rows int) {
		t.Helper()
		t.Log(what)
		s.ExpectRuns("list", keys)
		s.ExpectRuns("number", keys)
		s.ExpectRuns("doubles", keys)
		s.ExpectRuns("sum", rows)
		s.Mark()
	}
	prices.Set(s, "a", 1)
	prices.Set(s, "b", 2)
	runs("two rows", 2, 2)
	prices.Set(s, "a", 10)
	runs("a row has changed", 0, 1)
	prices.Set(s, "c", 3)
	runs("a row has come", 1, 1)
	prices.Delete(s, "b")
	runs("a row is gone", 1, 1)
	settletest.Expect(s, list, []string{"a", "c"})
	settletest.Expect(s, number, 2)
	settletest.Expect(s, sum, 13)
}

// To expect runs of a row that does not exist, once all rows have run, is a mistake in the test.
func TestExpectRuns_OfAMissingRowFailsTheTest(t *testing.T) {
	t.Parallel()
	for node, want := range map[string]string{
		"doubles--b": "has no node doubles--b; it has doubles, doubles--a",
		"trebles--a": "has no node trebles--a",
	} {
		failing(t, func(tb *recorder) {
			s := settletest.New(tb, doubling()).Space("s")
			prices.Set(s, "a", 1)
			settletest.Expect(s, doubles.At("a"), 2)
			s.ExpectRuns(node, 0)
		}).wantFailure(want)
	}
}

// Rows, derived ones included, are expected and watched as a map. No rows are an empty map, whether the
// document exists or not.
func TestExpect_RowsAreAMap(t *testing.T) {
	t.Parallel()
	s := settletest.New(t, doubling()).Space("s")
	settletest.Expect(s, prices, nil)
	settletest.Expect(s, doubles, map[string]int64{})
	seen := settletest.Watch(s, doubles)
	prices.Set(s, "a", 1)
	prices.Set(s, "b", 2)
	settletest.Expect(s, prices, map[string]int64{"a": 1, "b": 2})
	settletest.Expect(s, doubles, map[string]int64{"a": 2, "b": 4})
	settletest.Expect(s, doubles.At("b"), 4)
	settletest.ExpectKeys(s, doubles, "b", "a")
	prices.Delete(s, "a")
	prices.Delete(s, "b")
	settletest.Expect(s, doubles, map[string]int64{})
	settletest.ExpectKeys(s, prices)
	if got := fmt.Sprint(seen.Values()); got != "[map[] map[a:2] map[a:2 b:4] map[b:4] map[]]" {
		t.Errorf("the watch received %s", got)
	}
	if got := seen.Last(); len(got) != 0 {
		t.Errorf("seen last: %v", got)
	}
}

// Expect reads rows of another space where they are.
func TestExpect_RowsOfAnotherSpace(t *testing.T) {
	t.Parallel()
	w := settletest.New(t, doubling())
	prices.Set(w.Space("there"), "a", 3)
	settletest.Expect(w.Space("here"), doubles.In("there"), map[string]int64{"a": 6})
	settletest.ExpectKeys(w.Space("here"), doubles.In("there"), "a")
}

// A link is compared by the place that it points to: a document, a part of one, or one of another space.
func TestExpect_LinksAreComparedByTheirTarget(t *testing.T) {
	t.Parallel()
	type pair struct {
		Whole settle.Ref[map[string]int64] `json:"whole"`
		Row   settle.Ref[int64]            `json:"row"`
		None  settle.Ref[int64]            `json:"none"`
	}
	all := settle.NewCell[map[string]int64]("prices")
	links := settle.NewCell[pair]("links")
	s := settletest.New(t, doubling()).Space("s")
	want := pair{Whole: all.Ref(), Row: doubles.At("a").In("there").Ref()}
	links.Set(s, want)
	settletest.Expect(s, links, want)
	settletest.Expect(s, settle.Field[settle.Ref[int64]](links, "row"), want.Row)
}

// A failed expectation names the rows that differ, those that exist, and a missing document.
func TestExpect_NamesTheRowsThatDiffer(t *testing.T) {
	t.Parallel()
	for want, expect := range map[string]func(s *settletest.Space){
		"@s/doubles is not what is wanted\n    /a\n        got   2\n        want  3\n    /c\n        got   nothing\n        want  5": func(s *settletest.Space) {
			settletest.Expect(s, doubles, map[string]int64{"a": 3, "b": 4, "c": 5})
		},
		"@s/doubles/c is not what is wanted\n    got   0\n    want  5\n    nothing is at \"c\"; there are \"a\", \"b\"": func(s *settletest.Space) {
			settletest.Expect(s, doubles.At("c"), 5)
		},
		"@s/doubles is not what is wanted\n    not there   \"c\", \"d\"\n    not wanted  \"a\"": func(s *settletest.Space) {
			settletest.ExpectKeys(s, doubles, "d", "b", "c")
		},
		"there is no such document": func(s *settletest.Space) {
			settletest.Expect(s, settle.NewRows[int64]("cards"), map[string]int64{"a": 1})
		},
		"there is no such document: no computation of program doubling derives total; register it with Compute. It derives \"doubles\"": func(s *settletest.Space) {
			settletest.Expect(s, settle.NewDerived[int64]("total"), 3)
		},
		"no computation of program doubling derives totals": func(s *settletest.Space) {
			settletest.Expect(s, settle.NewDerivedRows[int64]("totals").At("a"), 3)
		},
		"there is no such document: no computation of program doubling derives totals": func(s *settletest.Space) {
			settletest.Expect(s, settle.NewDerivedRows[int64]("totals"), map[string]int64{"a": 3})
		},
		"read prices: /a: an integer is here": func(s *settletest.Space) {
			settletest.Expect(s, settle.NewRows[string]("prices"), map[string]string{"a": "1"})
		},
	} {
		failing(t, func(tb *recorder) {
			s := settletest.New(tb, doubling()).Space("s")
			prices.Set(s, "a", 1)
			prices.Set(s, "b", 2)
			expect(s)
		}).wantFailure(want)
	}
}
