package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/status"
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
