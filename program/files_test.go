package program_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

// write creates a directory with files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files { // any order: they are different files
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAProgramIsItsFileAndWhatThatLoads(t *testing.T) {
	dir := write(t, map[string]string{
		"cart.star":      `load("lib/price.star", "price")`,
		"lib/price.star": `load("lib/tax.star", "tax")` + "\n" + `load("missing.star", "x")`,
		"lib/tax.star":   `tax = 1`,
		"other.star":     `x = 1`,
		"cart_test.star": `load("cart.star", "y")`,
		"broken.star":    `def (`,
		"up.star":        `load("../secret.star", "y")`,
	})
	for file, want := range map[string]string{
		"cart.star":   "cart.star lib/price.star lib/tax.star",
		"broken.star": "broken.star",
		"up.star":     "up.star",
	} {
		s, err := program.Read("p", filepath.Join(dir, file))
		if got := strings.Join(slices.Sorted(maps.Keys(s.Files)), " "); err != nil || got != want || s.Entry != file {
			t.Errorf("%s: %s, %v; want %s", file, got, err, want)
		}
	}
	if _, err := program.Read("p", filepath.Join(dir, "cart_test.star")); err == nil {
		t.Error("tests were read as a program")
	}
	found, err := program.Programs(dir)
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	if got := strings.Join(found, " "); err != nil || got != "broken.star cart.star other.star up.star" {
		t.Errorf("programs %s, %v", got, err)
	}
}

func TestAFileThatIsLoadedIsNoProgramOfItsOwn(t *testing.T) {
	dir := write(t, map[string]string{"a.star": `load("b.star", "x")`, "b.star": "x = 1"})
	found, err := program.Programs(dir)
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != "a.star" {
		t.Errorf("programs %v, %v", found, err)
	}
}

func TestADiffNamesTheStreamsThatAreGone(t *testing.T) {
	for want, after := range map[string][]string{
		"no node has new code (0)": {"page", "join", "new"},
		"no node has new code (0); 1 stream gone: page; its events will be refused":          {"join"},
		"no node has new code (0); 2 streams gone: join, page; their events will be refused": nil,
	} {
		if got := program.Compare(nil, nil).WithStreams([]string{"join", "page"}, after).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestADiffSaysWhatRunsAgain(t *testing.T) {
	nodes := func(pairs ...string) (all []star.Node) {
		for _, p := range pairs {
			id, code, _ := strings.Cut(p, "=")
			all = append(all, star.Node{ID: id, Fingerprint: code})
		}
		return all
	}
	for _, test := range []struct {
		before, after []star.Node
		want          string
	}{
		{nodes("a=1", "b=1", "c=1"), nodes("a=1", "b=2", "c=2"), "2 of 3 nodes have new code and run again; 1 unchanged"},
		{nodes("a=1"), nodes("a=2"), "1 of 1 nodes has new code and runs again; 0 unchanged"},
		{nodes("a=1", "b=1"), nodes("b=1", "c=1"), "1 new; 1 gone; 1 unchanged"},
		{nodes("a=1"), nodes("a=1"), "no node has new code (1)"},
		{nil, nodes("a=1"), "1 new; 0 unchanged"},
	} {
		if got := program.Compare(test.before, test.after).String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
