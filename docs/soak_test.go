package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/settlehq/settle/test/chaos/soak"
)

// The table of the long run matches its record.
func TestDurability_TheTableOfTheLongRunIsThatOfItsBook(t *testing.T) {
	pieces, err := soak.Read("../test/chaos/soak.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("durability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- soak -->\n")
	table, _, found := strings.Cut(rest, "<!-- /soak -->")
	if want := soak.Report(pieces, soak.Full); !found || table != want {
		t.Errorf("docs/durability.md has between its two marks\n%s\nput there what `go run ./test/chaos soak --report` prints:\n%s", table, want)
	}
	for _, p := range pieces {
		if !p.Sound() {
			t.Errorf("the piece of %v, %s, seed %d, at %s, is not sound: %v", p.At, p.Profile, p.Seed, p.Commit, p.Violations)
		}
	}
}
