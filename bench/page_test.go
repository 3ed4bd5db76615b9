//go:build !counts

package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/settlehq/settle/bench/harness"
)

// The page is what the record gives: a figure that is edited by hand, or a record that is not in the page, is an error. While
// there is no record, there are no figures.
func TestPage_IsGeneratedFromTheRecord(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	r, err := harness.Read(recordFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if strings.Contains(string(text), beginMark) {
			t.Error("docs/performance.md has figures, and bench has no results.json")
		}
	case err != nil:
		t.Error(err)
	case withTables(string(text), r) != string(text):
		t.Error("docs/performance.md is not what bench/results.json gives; in bench, go run . page writes it")
	}
}

// The tables are added to a page that has none, and are replaced the next time.
func TestPage_TablesAreAddedAndReplaced(t *testing.T) {
	before := "# Performance\n\nText.\n"
	one := withTables(before, &harness.Record{When: "one"})
	two := withTables(one, &harness.Record{When: "two"})
	if !strings.HasPrefix(two, before) || strings.Count(two, beginMark) != 1 || strings.Contains(two, "Measured on one") || !strings.Contains(two, "Measured on two") {
		t.Errorf("the page is\n%s", two)
	}
	if withTables(two, &harness.Record{When: "two"}) != two {
		t.Error("the same record gives another page")
	}
}

// A loss is printed as a win is, with its spread, and an engine that was not run with the reason.
func TestPage_PrintsLossesAndWhatWasNotRun(t *testing.T) {
	figure := func(engine string, rates ...float64) *harness.Figure {
		f := &harness.Figure{Part: "events", Site: "one server", Shape: "W1", Case: "some", Engine: engine, Unit: "events"}
		for _, v := range rates {
			f.Rounds = append(f.Rounds, &harness.Round{Units: 1, PerSecond: v, CPU: 1e6 / v})
		}
		return f
	}
	missing := figure("Temporal")
	missing.NotRun = "there is no server"
	text := generate(&harness.Record{Figures: []*harness.Figure{figure("by hand", 100, 100, 200), figure("Settle", 50, 60, 150), figure("ordered", 200, 150, 250), missing}})
	for _, want := range []string{"| Settle | 60 | **0.60** (0.50 to 0.75) |", "| ordered | 200 | **1.50** (1.25 to 2.00) |", "| Temporal | not run: there is no server |", "| by hand | 100 | 1 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}
