package worker

import (
	"math"
	"testing"

	"github.com/settlehq/settle/space"
)

func noPrograms(string) (*space.Program, error) { return nil, nil }

func TestConfig_AWeightThatIsNoShareIsRefused(t *testing.T) {
	for _, weight := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := New(nil, Config{ID: "w", Programs: noPrograms, Weight: weight}); err == nil {
			t.Errorf("weight %v was accepted", weight)
		}
	}
}
