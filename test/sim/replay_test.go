//go:build !race

package sim

import "testing"

// The race detector runs goroutines that are ready in the same instant in random order, so a replay is
// impossible with it.

// TestASeedIsAReplay: the same seed produces the same story in any process.
func TestASeedIsAReplay(t *testing.T) {
	sample := part{Ranges: seedRanges(min(*seedsFlag, 100)), Hashes: true}
	both := inChildren(t, sample, sample)
	for seed, hash := range both[0].Hashes { // any order: each on its own
		if other := both[1].Hashes[seed]; other != hash {
			t.Errorf("seed %d tells two stories: %s and %s", seed, hash, other)
		}
	}
	if len(both[0].Hashes) != len(sample.all()) {
		t.Errorf("%d stories, want %d", len(both[0].Hashes), len(sample.all()))
	}
}
