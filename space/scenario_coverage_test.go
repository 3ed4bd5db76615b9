package space

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// complete makes an open row an error.
const complete = true

// rowTable is a file of lines that begin with the id of a row: testdata/rows.txt, the required behaviours of
// the scheduler, each with its title; and testdata/not_applicable.txt, those that do not apply, each with the
// reason.
type rowTable struct {
	ids  []string
	text map[string]string
}

var rowID = regexp.MustCompile(`^[A-Z][0-9][0-9]$`)

func readRows(t *testing.T) *rowTable { return readTable(t, "rows.txt") }

func readTable(t *testing.T, name string) *rowTable {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	rows := &rowTable{text: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, text, _ := strings.Cut(line, " ")
		switch {
		case !rowID.MatchString(id) || text == "":
			t.Errorf("%s: %q is not the id of a row and a text", name, line)
		case strings.Contains(text, "|"):
			t.Errorf("%s: the text of %s cannot stand in a table: it has a '|'", name, id)
		case rows.has(id):
			t.Errorf("%s has %s twice", name, id)
		default:
			rows.ids = append(rows.ids, id)
			rows.text[id] = text
		}
	}
	return rows
}

func (r *rowTable) has(id string) bool { return r.text[id] != "" }

// titles returns what the command case prints: the rows that the case shows. Other words name a case without
// a row.
func (r *rowTable) titles(d *datadriven.TestData) string {
	var b strings.Builder
	for _, a := range d.CmdArgs {
		switch {
		case !rowID.MatchString(a.Key):
			fmt.Fprintln(&b, "ok")
		case !r.has(a.Key):
			fmt.Fprintf(&b, "error: testdata/rows.txt has no row %s\n", a.Key)
		default:
			fmt.Fprintf(&b, "%s %s\n", a.Key, r.text[a.Key])
		}
	}
	return b.String()
}

// TestCoverage compares testdata/COVERAGE.md with the scenarios, the Go tests and not_applicable.txt. With
// -rewrite it writes the table.
func TestCoverage(t *testing.T) {
	rows, not := readRows(t), readTable(t, "not_applicable.txt")
	by := proofs{}
	by.addScenarios(t)
	by.addTests(t, "..")
	by.check(t, rows, not)
	want := coverage(rows, not, by)
	const path = "testdata/COVERAGE.md"
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s does not say what the tests cover (%v); run go test ./space -run TestCoverage -rewrite", path, err)
	}
}

// proofs are the tests of each row: names of scenario files, and Go tests with their files.
type proofs map[string][]string

func (by proofs) add(id, where string) {
	if !slices.Contains(by[id], where) {
		by[id] = append(by[id], where)
	}
}

func (by proofs) addScenarios(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(ownScenarios + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
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
				if rowID.MatchString(id) {
					by.add(id, name)
				}
			}
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)

// addTests finds the Go tests below root, the root of the module, whose names begin with rows.
func (by proofs) addTests(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && notOfThisModule(path):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		for _, m := range testFunc.FindAllSubmatch(data, -1) {
			for _, id := range rowsOfTest(string(m[1])) {
				by.add(id, filepath.ToSlash(rel)+" "+string(m[1]))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// notOfThisModule reports whether go test ./... skips the directory.
func notOfThisModule(dir string) bool {
	base := filepath.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// The invariants are I1 to I11. The last two resemble rows, but row I01 is written with a zero.
var invariant = regexp.MustCompile(`^I([1-9]|10|11)$`)

// rowsOfTest returns the rows with which the name of a test begins: TestA01_B02_Title, or TestI3_A01_Title if
// it is about an invariant, too.
func rowsOfTest(name string) []string {
	var ids []string
	for _, word := range strings.Split(strings.TrimPrefix(name, "Test"), "_") {
		switch {
		case invariant.MatchString(word):
		case rowID.MatchString(word):
			ids = append(ids, word)
		default:
			return ids
		}
	}
	return ids
}

func TestRowsOfTest(t *testing.T) {
	for name, want := range map[string]string{
		"TestA01_Title":          "A01",
		"TestA01_B02_Title":      "A01 B02",
		"TestI3_A01_Title":       "A01",
		"TestA01_I11_B02_Title":  "A01 B02",
		"TestI01_Title":          "I01",
		"TestI10_Title":          "",
		"TestTitle_A01":          "",
		"TestA01Title":           "",
		"TestA01_Title_B02_More": "A01",
	} {
		if got := strings.Join(rowsOfTest(name), " "); got != want {
			t.Errorf("%s is of the rows %q, want %q", name, got, want)
		}
	}
}

// check finds rows that do not exist, contradictions, and rows without a decision.
func (by proofs) check(t *testing.T, rows, not *rowTable) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(by)) {
		if !rows.has(id) {
			t.Errorf("rows.txt has no row %s, which %s shows", id, by[id][0])
		}
		if not.has(id) {
			t.Errorf("not_applicable.txt has %s, and %s shows it", id, strings.Join(by[id], ", "))
		}
	}
	for _, id := range not.ids {
		if !rows.has(id) {
			t.Errorf("not_applicable.txt has a row %s, which rows.txt does not have", id)
		}
	}
	if open := openRows(rows, not, by); complete && len(open) > 0 {
		t.Errorf("%d rows have neither a test nor a line in not_applicable.txt:\n  %s", len(open), strings.Join(open, "\n  "))
	}
}

func openRows(rows, not *rowTable, by proofs) []string {
	var open []string
	for _, id := range rows.ids {
		if len(by[id]) == 0 && !not.has(id) {
			open = append(open, id+" "+rows.text[id])
		}
	}
	return open
}

func coverage(rows, not *rowTable, by proofs) string {
	var table strings.Builder
	covered := 0
	for _, id := range rows.ids {
		where := "open"
		switch {
		case len(by[id]) > 0:
			covered++
			where = strings.Join(by[id], ", ")
		case not.has(id):
			where = "does not apply: " + not.text[id]
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", id, rows.text[id], where)
	}
	return fmt.Sprintf(`# Which test shows which behaviour

The rows are those of rows.txt. A word is a file of scenarios that has a case of the row's
name; a Go test has the row in its own name and stands with its file; what does not apply
has its reason in not_applicable.txt. Of %d rows %d are covered, %d do not apply, and %d
are open. This file is generated: go test ./space -run TestCoverage -rewrite.

| row | behaviour | shown by |
|---|---|---|
%s`, len(rows.ids), covered, len(not.ids), len(openRows(rows, not, by)), table.String())
}
