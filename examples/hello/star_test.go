package main

import (
	"os"
	"testing"

	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/program/startest"
)

// The same program as a file, with its own test.
func TestCounterStar(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for _, name := range []string{"counter.star", "counter_test.star"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	source := star.Source{Name: "counter", Entry: "counter.star", Files: files}
	results, err := startest.Run(t.Context(), source, "counter_test.star", star.TestOptions{})
	if err != nil || len(results) != 1 {
		t.Fatalf("%d tests, %v", len(results), err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}
