package settletest_test

import (
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
	settle.EachRow(p, doubles, prices, func(v *settle.View, price settle.Row[int64]) (int64, error) {
		return 2 * price.Get(v), nil
	})
	return p
}

// The runs of a row are counted by its key, whatever that is, and before the row has a node.
func TestExpectRuns_OfARowThatNobodyHasLookedAtIsNone(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "two words", "/x.y", strings.Repeat("long", 40)} {
		s := settletest.New(t, doubling()).Space("s")
		prices.Set(s, key, 1)
		s.ExpectRuns(doubles.Node(key), 0)
		settletest.Expect(s, doubles.At(key), 2)
		s.ExpectRuns(doubles.Node(key), 1)
		prices.Set(s, "b", 1)
		s.ExpectRuns(doubles.Node("b"), 0) // it is new, and nobody looks any more
		prices.Set(s, key, 2)
		s.ExpectRuns(doubles.Node(key), 1)
	}
}

// A row that there is not, once all are there, is a mistake in the test.
func TestExpectRuns_OfARowThatIsNotThereIsAMistake(t *testing.T) {
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
