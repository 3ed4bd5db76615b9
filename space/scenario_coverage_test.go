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
// the scheduler, each with its title; testdata/not_applicable.txt, those that do not apply, each with the
// reason; testdata/otherwise.txt, those that are decided otherwise, each with the number of the decision and what holds
// instead; and testdata/analogue.txt, those that are shown by something that corresponds, each with what that is and,
// if its tests have other names, one of them as FILE#TEST.
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
// a row. An id that is not a row is an error, which -rewrite does not accept.
func (r *rowTable) titles(d *datadriven.TestData) (string, error) {
	var b strings.Builder
	for _, a := range d.CmdArgs {
		switch {
		case !rowID.MatchString(a.Key):
			fmt.Fprintln(&b, "ok")
		case !r.has(a.Key):
			return "", fmt.Errorf("testdata/rows.txt has no row %s", a.Key)
		default:
			fmt.Fprintf(&b, "%s %s\n", a.Key, r.text[a.Key])
		}
	}
	return b.String(), nil
}

// TestCoverage compares testdata/COVERAGE.md with the scenarios, the Go tests and not_applicable.txt. With
// -rewrite it writes the table.
func TestCoverage(t *testing.T) {
	v := verdicts{readRows(t), readTable(t, "not_applicable.txt"), readTable(t, "otherwise.txt"), readTable(t, "analogue.txt"), proofs{}}
	v.by.addScenarios(t)
	v.by.addTests(t, "..")
	v.check(t)
	want := v.table()
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

// verdicts are what is known of each row.
type verdicts struct {
	rows, not, otherwise, analogue *rowTable
	by                             proofs
}

// check finds rows that do not exist, contradictions, and rows without a decision.
func (v *verdicts) check(t *testing.T) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(v.by)) {
		if !v.rows.has(id) {
			t.Errorf("rows.txt has no row %s, which %s shows", id, v.by[id][0])
		}
		if v.not.has(id) {
			t.Errorf("not_applicable.txt has %s, and %s shows it", id, strings.Join(v.by[id], ", "))
		}
	}
	for name, list := range map[string]*rowTable{"not_applicable": v.not, "otherwise": v.otherwise, "analogue": v.analogue} { // any order: each on its own
		for _, id := range list.ids {
			switch {
			case !v.rows.has(id):
				t.Errorf("%s.txt has a row %s, which rows.txt does not have", name, id)
			case list != v.not && v.not.has(id) || list != v.otherwise && v.otherwise.has(id):
				t.Errorf("%s has two verdicts", id)
			}
		}
	}
	for _, id := range v.otherwise.ids {
		number, _, _ := strings.Cut(v.otherwise.text[id], " ")
		if found, err := filepath.Glob("../docs/adr/" + number + "-*.md"); err != nil || len(found) != 1 {
			t.Errorf("otherwise.txt: %s names the decision %s, which docs/adr does not have", id, number)
		}
	}
	for _, id := range v.analogue.ids {
		v.checkAnalogue(t, id)
	}
	if open := v.open(); complete && len(open) > 0 {
		t.Errorf("%d rows have no verdict:\n  %s", len(open), strings.Join(open, "\n  "))
	}
}

func (v *verdicts) checkAnalogue(t *testing.T, id string) {
	t.Helper()
	place, _, _ := strings.Cut(v.analogue.text[id], " ")
	file, test, named := strings.Cut(place, "#")
	if !named {
		if len(v.by[id]) == 0 {
			t.Errorf("analogue.txt: %s names no test, and no case or test has its name", id)
		}
		return
	}
	data, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(file)))
	if err != nil || !strings.Contains(string(data), "func "+test+"(") {
		t.Errorf("analogue.txt: %s names %s of %s, which is not there", id, test, file)
	}
}

func (v *verdicts) open() []string {
	var open []string
	for _, id := range v.rows.ids {
		if v.of(id) == "open" {
			open = append(open, id+" "+v.rows.text[id])
		}
	}
	return open
}

// of returns the verdict on a row.
func (v *verdicts) of(id string) string {
	switch {
	case v.otherwise.has(id):
		return "decided otherwise"
	case v.analogue.has(id):
		return "shown by analogue"
	case v.not.has(id):
		return "does not apply"
	case len(v.by[id]) > 0:
		return "shown"
	}
	return "open"
}

// why returns what stands behind the verdict on a row.
func (v *verdicts) why(id string) string {
	var parts []string
	switch {
	case v.otherwise.has(id):
		number, text, _ := strings.Cut(v.otherwise.text[id], " ")
		parts = append(parts, "docs/adr/"+number+": "+text)
	case v.analogue.has(id):
		parts = append(parts, v.analogue.text[id])
	case v.not.has(id):
		parts = append(parts, v.not.text[id])
	}
	if len(v.by[id]) > 0 {
		parts = append(parts, strings.Join(v.by[id], ", "))
	}
	return strings.Join(parts, " | ")
}

func (v *verdicts) table() string {
	var table strings.Builder
	count := map[string]int{}
	for _, id := range v.rows.ids {
		verdict := v.of(id)
		count[verdict]++
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", id, v.rows.text[id], verdict, strings.ReplaceAll(v.why(id), " | ", "; "))
	}
	return fmt.Sprintf(`# Which test shows which behaviour

The rows are those of rows.txt. *Shown*: a case or test of the row's name asserts what the row says; a word is a file of
scenarios that has such a case, and a Go test stands with its file. *Shown by analogue*: the row is about something that
Settle does not have, and what corresponds to it is tested (analogue.txt). *Decided otherwise*: Settle behaves in another
way, for the reason in the decision (otherwise.txt). *Does not apply*: with the reason (not_applicable.txt). Of %d rows %d
are shown, %d are shown by analogue, %d are decided otherwise, %d do not apply, and %d are open. This file is generated:
go test ./space -run TestCoverage -rewrite.

| row | behaviour | verdict | shown by, or the reason |
|---|---|---|---|
%s`, len(v.rows.ids), count["shown"], count["shown by analogue"], count["decided otherwise"], count["does not apply"], count["open"], table.String())
}
