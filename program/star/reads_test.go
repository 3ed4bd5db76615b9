package star

import (
	"strings"
	"testing"
)

func TestMadeByReads_NamesSpacesAndPatterns(t *testing.T) {
	p := compiled(t, "made_by_reads(\"hall\", \"shelf-*\")\nmade_by_reads(\"door\")\ncompute(\"n\", lambda: 1)\n").Space()
	for name, want := range map[string]bool{"hall": true, "shelf-1": true, "door": true, "hal": false, "halls": false, "shelf": false} { // any order: each on its own
		if p.IsMadeByReads(name) != want {
			t.Errorf("a read creates %s: %v", name, !want)
		}
	}
	for text, want := range map[string]string{ // any order: each on its own
		`made_by_reads()`:               "name the spaces that a read creates",
		`made_by_reads(names = "hall")`: "name the spaces that a read creates",
		`made_by_reads(1)`:              "int is no string",
		`made_by_reads("a b")`:          "a b",
		`made_by_reads("*-b*")`:         "*-b",
	} {
		if _, err := Compile(source(text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
