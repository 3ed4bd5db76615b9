package docs_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Columns of the tables in limits.md.
const (
	colLimit = iota
	colFigure
	colSetting
	colBeyond
	colPlace
	columns
)

func TestLimits_FiguresAreThoseOfTheSource(t *testing.T) {
	all := limitRows(t)
	compared := 0
	for _, row := range all {
		if row[colPlace] == "-" {
			continue
		}
		compared++
		place := strings.Trim(row[colPlace], "`")
		is, err := figures(place)
		if err != nil {
			t.Errorf("%q: %v; did it move? docs/limits.md must follow", row[colLimit], err)
			continue
		}
		says, err := parseFigure(row[colFigure])
		if err != nil {
			t.Errorf("%q: %v", row[colLimit], err)
			continue
		}
		if !slices.Contains(is, says) {
			t.Errorf("%q: docs/limits.md says %s, and %s is %v", row[colLimit], row[colFigure], place, is)
		}
	}
	if compared < len(all)*3/4 {
		t.Errorf("of %d limits only %d have a place in the source", len(all), compared)
	}
}

// notLimits are exported constants whose names look like limits, and what they are instead.
var notLimits = map[string]string{
	"bus.DefaultPrefix":            "a name",
	"bus/embedded.DefaultStoreDir": "a directory",
}

func TestLimits_NoneThatIsExportedIsMissing(t *testing.T) {
	text := read(t, "limits.md")
	name := regexp.MustCompile(`^(Max|Min|Default)[A-Z]`)
	for _, dir := range packages(t) {
		s, err := load(dir)
		if err != nil {
			t.Fatal(err)
		}
		for c := range s.constants { // any order: each is looked up
			place := dir + "." + c
			if dir == "." {
				place = "settle." + c
			}
			if name.MatchString(c) && notLimits[place] == "" && !strings.Contains(text, "`"+place+"`") {
				t.Errorf("%s has no row in docs/limits.md: say what it bounds, and what happens beyond it", place)
			}
		}
	}
}

func limitRows(t *testing.T) [][]string {
	t.Helper()
	text := read(t, "limits.md")
	all := rows(text)
	if len(all) < 20 {
		t.Fatalf("docs/limits.md has %d limits", len(all))
	}
	for _, row := range all {
		if len(row) != columns {
			t.Fatalf("a row of docs/limits.md has %d columns, not %d: %q", len(row), columns, row)
		}
	}
	return all
}

// packages returns the directories of those that other modules can import.
func packages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		dir, _ := filepath.Rel("..", p)
		switch base := d.Name(); {
		case dir == ".":
		case base == "internal" || base == "docs" || base == "testdata" || base == "examples" || base == "cmd" || base == "test" || base == "bench" || strings.HasPrefix(base, "."):
			return fs.SkipDir
		}
		if _, err := load(filepath.ToSlash(dir)); err == nil {
			dirs = append(dirs, filepath.ToSlash(dir))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

var figureForm = regexp.MustCompile(`^([\d,]+(?:\.\d+)?)(?: ([A-Za-z]+))?`)

// parseFigure reads "64 letters", "512 KiB", "25 ms", "100,000".
func parseFigure(text string) (float64, error) {
	m := figureForm.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("the figure %q does not begin with a number", text)
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		return 0, err
	}
	switch m[2] {
	case "KiB":
		n *= 1 << 10
	case "MiB":
		n *= 1 << 20
	case "GiB":
		n *= 1 << 30
	case "ms":
		n *= float64(time.Millisecond)
	case "s":
		n *= float64(time.Second)
	case "min":
		n *= float64(time.Minute)
	case "h":
		n *= float64(time.Hour)
	case "days":
		n *= float64(24 * time.Hour)
	}
	return n, nil
}

func TestParseFigure(t *testing.T) {
	for text, want := range map[string]float64{"64 letters": 64, "512 KiB": 512 << 10, "25 ms": 25e6, "100,000": 1e5, "7 days": 7 * 24 * 3600e9, "1.5 s": 1.5e9} {
		if got, err := parseFigure(text); err != nil || got != want {
			t.Errorf("%s is %v, not %v: %v", text, got, want, err)
		}
	}
}
