package runs

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

// rowTable has lines that begin with the number of a row: testdata/rows.txt, the required behaviours, each with its
// title; and testdata/verdicts.txt, the rows that no scenario shows, each with a verdict.
type rowTable struct {
	ids  []string
	text map[string]string
}

const allRows = 84

var rowID = regexp.MustCompile(`^[0-9]+$`)

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
		case !rowID.MatchString(id) || text == "" || strings.Contains(text, "|"):
			t.Errorf("%s: %q is not the number of a row and a text without a '|'", name, line)
		case rows.text[id] != "":
			t.Errorf("%s has %s twice", name, id)
		default:
			rows.ids = append(rows.ids, id)
			rows.text[id] = text
		}
	}
	return rows
}

// titles returns what the command case prints: the rows that the case shows. Other words name a case without a row.
func (r *rowTable) titles(d *datadriven.TestData) string {
	var b strings.Builder
	for _, a := range d.CmdArgs {
		switch text := r.text[a.Key]; {
		case !rowID.MatchString(a.Key):
			fmt.Fprintln(&b, "ok")
		case text == "":
			fmt.Fprintf(&b, "error: testdata/rows.txt has no row %s\n", a.Key)
		default:
			fmt.Fprintf(&b, "%s %s\n", a.Key, text)
		}
	}
	return b.String()
}

// shownBy returns the scenario files of each row.
func shownBy(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(scenarioDir + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string][]string{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(data), "# ") {
			t.Errorf("%s does not begin with a comment on why the case is hard", path)
		}
		name := filepath.Base(path)
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

// verdicts are the words that a line of verdicts.txt has behind its number, and whether a place stands behind them: a
// test as FILE:NAME, or a document as FILE or FILE#SECTION.
var verdicts = map[string]bool{"analogue": true, "otherwise": true, "not-applicable": false, "open": false}

// verdictOf returns a line of verdicts.txt as the table has it.
func verdictOf(t *testing.T, id, text string) string {
	t.Helper()
	kind, rest, _ := strings.Cut(text, " ")
	hasPlace, known := verdicts[kind]
	if !known || rest == "" {
		t.Errorf("verdicts.txt, %s: %q is no verdict and a reason", id, text)
	}
	place, reason := "", rest
	if hasPlace {
		place, reason, _ = strings.Cut(rest, " ")
		checkPlace(t, id, place)
	}
	if reason == "" {
		t.Errorf("verdicts.txt, %s: there is no reason", id)
	}
	switch kind {
	case "analogue":
		return "analogue: " + place + ". " + reason
	case "otherwise":
		return "decided otherwise: " + place + ". " + reason
	case "open":
		return "open: " + reason
	}
	return "not applicable: " + reason
}

// checkPlace checks that a test or a section of a document exists.
func checkPlace(t *testing.T, id, place string) {
	t.Helper()
	file, test, isTest := strings.Cut(place, ":")
	file, section, _ := strings.Cut(file, "#")
	data, err := os.ReadFile(filepath.Join("..", file))
	switch {
	case err != nil:
		t.Errorf("verdicts.txt, %s: %v", id, err)
	case isTest && !strings.Contains(string(data), "\nfunc "+test+"("):
		t.Errorf("verdicts.txt, %s: %s has no test %s", id, file, test)
	case section != "" && !slices.Contains(sections(string(data)), section):
		t.Errorf("verdicts.txt, %s: %s has no section %s", id, file, section)
	}
}

// sections returns the names under which the sections of a document can be linked.
func sections(doc string) (list []string) {
	for line := range strings.Lines(doc) {
		if title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); is && strings.HasPrefix(line, "#") {
			list = append(list, strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-"))
		}
	}
	return list
}

// TestCoverage compares testdata/COVERAGE.md with the scenarios and verdicts.txt. With -rewrite it writes the table.
func TestCoverage(t *testing.T) {
	rows, other, by := readRows(t), readTable(t, "verdicts.txt"), shownBy(t)
	if len(rows.ids) != allRows {
		t.Errorf("rows.txt has %d rows, want %d", len(rows.ids), allRows)
	}
	for id := range by {
		if rows.text[id] == "" {
			t.Errorf("%s shows row %s, which rows.txt does not have", by[id][0], id)
		}
	}
	for _, id := range other.ids {
		if rows.text[id] == "" || by[id] != nil {
			t.Errorf("verdicts.txt has row %s, which does not exist or is shown by %s", id, by[id])
		}
	}
	counts := map[string]int{}
	var table strings.Builder
	for _, id := range rows.ids {
		verdict := strings.Join(by[id], ", ")
		switch text := other.text[id]; {
		case verdict != "":
			counts["shown"]++
		case text == "":
			t.Errorf("row %s has no scenario and no line in verdicts.txt", id)
		default:
			kind, _, _ := strings.Cut(text, " ")
			counts[kind]++
			verdict = verdictOf(t, id, text)
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", id, rows.text[id], verdict)
	}
	want := fmt.Sprintf(coverageHead, allRows, counts["shown"], counts["analogue"], counts["otherwise"], counts["not-applicable"], counts["open"]) + table.String()
	const path = "testdata/COVERAGE.md"
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is not the coverage of the tests (%v); run go test ./runs -run TestCoverage -rewrite", path, err)
	}
}

const coverageHead = `# Which test shows which behaviour

The rows are those of rows.txt. A file is one of rows/ with a case that shows the row; all other verdicts are lines
of verdicts.txt. Of %d rows %d are shown by scenarios and %d by an analogous test, %d are decided otherwise, %d do not
apply, and %d are open. This file is generated: go test ./runs -run TestCoverage -rewrite.

| row | behaviour | verdict |
|---|---|---|
`
