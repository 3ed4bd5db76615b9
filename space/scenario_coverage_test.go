package space

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// rowTable is testdata/rows.txt: the behaviours that the scheduler is to have.
type rowTable struct {
	ids   []string
	title map[string]string
}

func readRows(t *testing.T) *rowTable {
	t.Helper()
	data, err := os.ReadFile("testdata/rows.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := &rowTable{title: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		id, title, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || id == "#" {
			continue
		}
		if rows.title[id] != "" {
			t.Errorf("rows.txt has %s twice", id)
		}
		rows.ids = append(rows.ids, id)
		rows.title[id] = title
	}
	return rows
}

var rowID = regexp.MustCompile(`^[A-Z][0-9][0-9]$`)

// titles is what the command case prints: the rows that the case shows. Other words
// name a case that no row asks for.
func (r *rowTable) titles(d *datadriven.TestData) string {
	var b strings.Builder
	for _, a := range d.CmdArgs {
		switch {
		case !rowID.MatchString(a.Key):
			fmt.Fprintln(&b, "ok")
		case r.title[a.Key] == "":
			fmt.Fprintf(&b, "error: testdata/rows.txt has no row %s\n", a.Key)
		default:
			fmt.Fprintf(&b, "%s %s\n", a.Key, r.title[a.Key])
		}
	}
	return b.String()
}

// TestCoverage holds testdata/COVERAGE.md against the scenarios. With -rewrite it
// writes the table.
func TestCoverage(t *testing.T) {
	want := coverage(readRows(t), coveredRows(t))
	const path = "testdata/COVERAGE.md"
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s does not say what the scenarios cover (%v); run go test ./space -run TestCoverage -rewrite", path, err)
	}
}

// coveredRows finds the scenario files of each row.
func coveredRows(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(ownScenarios + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string][]string{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		for line := range strings.Lines(string(data)) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "case" {
				continue
			}
			for _, id := range words[1:] {
				if rowID.MatchString(id) && !slices.Contains(by[id], name) {
					by[id] = append(by[id], name)
				}
			}
		}
	}
	return by
}

func coverage(rows *rowTable, by map[string][]string) string {
	var b strings.Builder
	n := 0
	for _, id := range rows.ids {
		if len(by[id]) > 0 {
			n++
		}
	}
	fmt.Fprintf(&b, `# Which scenario shows which behaviour

The rows are those of rows.txt; a scenario file covers a row if it has a case of that
name. %d of %d rows are covered, the others are open. This file is generated:
go test ./space -run TestCoverage -rewrite.

| row | behaviour | scenario |
|---|---|---|
`, n, len(rows.ids))
	for _, id := range rows.ids {
		where := strings.Join(by[id], ", ")
		if where == "" {
			where = "open"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", id, rows.title[id], where)
	}
	return b.String()
}
