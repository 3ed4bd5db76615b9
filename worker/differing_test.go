package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker/host"
)

// A node is reported with the number of spaces in which it is not idempotent, until these are loaded again. A worker names twenty.
func TestDiffering_NodesAreReportedUntilTheirSpacesAreLoadedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d differing
		first, end := context.WithCancel(t.Context())
		d.add(first, "b", "dice", "it differs in b")
		d.add(t.Context(), "c", "dice", strings.Repeat("ä", 1000))
		check := func(when, want string) {
			t.Helper()
			var f status.Figures
			d.describe(&f)
			got := fmt.Sprint(f.DifferingCount)
			for i := range f.Differing {
				n := &f.Differing[i]
				got += fmt.Sprintf("; %s in %d, %s: %.15s (%d)", n.Node, n.Spaces, n.Space, n.Text, len(n.Text))
			}
			if got != want {
				t.Errorf("%s:\n%s, want\n%s", when, got, want)
			}
		}
		check("two spaces", "1; dice in 2, b: it differs in b (15)")
		end()
		d.add(t.Context(), "b", "dice", "again in b") // found after it was loaded again, before the end of the first load is noticed
		synctest.Wait()
		check("loaded again and found again", "1; dice in 2, b: again in b (10)")
		only, end := context.WithCancel(t.Context())
		d.add(only, "b", "dice", "once more")
		end()
		synctest.Wait()
		check("loaded again", "1; dice in 1, c: "+strings.Repeat("ä", 15)+" (300)")
		for i := range 30 {
			d.add(only, "b", fmt.Sprintf("n%02d", i), "")
		}
		synctest.Wait()
		check("those of a space that has left", "1; dice in 1, c: "+strings.Repeat("ä", 15)+" (300)")
		for i := range 30 {
			d.add(t.Context(), "b", fmt.Sprintf("n%02d", i), "")
		}
		var f status.Figures
		if d.describe(&f); len(f.Differing) != 20 || f.DifferingCount != 31 || f.Differing[19].Node != "n18" {
			t.Errorf("%d of %d: %+v", len(f.Differing), f.DifferingCount, f.Differing)
		}
	})
}

// Of a space, a hundred nodes are logged and remembered, however many there are: the rows of a document are nodes, too. All are counted.
func TestDiffering_OfASpaceAHundredNodesAreRemembered(t *testing.T) {
	e := &engine{cfg: &Config{}, tally: new(tally)}
	c := &core{engine: e, of: &host.Access{Ctx: t.Context(), Space: "s"}}
	logged := 0
	for i := range 300 {
		if !c.differs(&space.ErrorInfo{Node: fmt.Sprint("row-", i%150), Err: &space.IdempotencyError{}}) {
			logged++
		}
	}
	var f status.Figures
	e.differing.describe(&f)
	if logged != 100 || f.DifferingCount != 100 || e.tally.differing.Load() != 300 {
		t.Errorf("%d are logged, %d remembered, %d counted", logged, f.DifferingCount, e.tally.differing.Load())
	}
	if c.differs(&space.ErrorInfo{Node: "row-1", Err: errors.New("another error")}) {
		t.Error("another error is taken for one of these")
	}
}
