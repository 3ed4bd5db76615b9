package star_test

import (
	"testing"

	"github.com/settlehq/settle/program/star"
)

// What runs use is added up, over all programs that share a count: a longer run counts more, and each step counts as the bytes that it stands for.
func TestUsage_CountsWhatRunsHaveUsed(t *testing.T) {
	var all star.Usage
	uses := func(text string) uint64 {
		t.Helper()
		before, _ := all.Read()
		_, err := star.Compile(star.Source{Name: "p", Entry: "p.star", Files: map[string]string{"p.star": text}}, star.Options{Usage: &all})
		if err != nil {
			t.Fatal(err)
		}
		steps, bytes := all.Read()
		if bytes < 32*steps {
			t.Errorf("%d steps and %d bytes", steps, bytes)
		}
		return steps - before
	}
	short, long := uses("x = [i for i in range(10)]"), uses("x = [i for i in range(1000)]")
	if short == 0 || long < short+1000 {
		t.Errorf("a short run has %d steps, a long one %d", short, long)
	}
}
