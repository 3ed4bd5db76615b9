package docs_test

import (
	"fmt"
	"strings"
	"testing"
)

// The page has each of the rows E1 to E23, in order. A feature that is there has a test that exists, and what is missing is named.
func TestComparison_EachRowIsShownByATest(t *testing.T) {
	all := rows(read(t, "comparison.md"))
	if len(all) != 23 {
		t.Fatalf("there are %d rows, want E1 to E23", len(all))
	}
	there := 0
	for i, row := range all {
		if len(row) != 5 || row[0] != fmt.Sprintf("E%d", i+1) {
			t.Fatalf("row %d is %q", i+1, row)
		}
		shown := named.FindAllStringSubmatch(row[4], -1)
		for _, m := range shown {
			dir := m[1]
			if dir == "settle" {
				dir = "."
			}
			if !one(testsOf(t, dir), m[2], m[3] != "") {
				t.Errorf("%s: there is no test %s%s in %s", row[0], m[2], m[3], dir)
			}
		}
		switch row[2] {
		case "yes":
			there++
			if len(shown) == 0 {
				t.Errorf("%s is said to be there, and no test shows it", row[0])
			}
		case "partly", "open":
			if !strings.Contains(row[3], "no") {
				t.Errorf("%s is %s; say what is missing", row[0], row[2])
			}
		default:
			t.Errorf("%s is %q; use yes, partly or open", row[0], row[2])
		}
	}
	if there < 22 {
		t.Errorf("%d rows are there, fewer than before", there)
	}
}
