//go:build !race

package sim

import "testing"

// The race detector has goroutines that are ready in the same instant run in random order, so
// there is no replay with it.

// TestASeedIsAReplay: the same seed tells the same story, in whichever process.
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
