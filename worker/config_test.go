package worker

import (
	"math"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
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

// Workers of different versions must divide the partitions alike, or they take
// them from each other as long as a fleet is being upgraded.
func TestDivide_Golden(t *testing.T) {
	members := []model.Member{{ID: "w1"}, {ID: "w2", Weight: 2}, {ID: "w3", Weight: 0.5}}
	want := []string{"w1", "w1", "w2", "w1", "w2", "w2", "w3", "w3", "w2", "w2", "w2", "w1"}
	if got := Divide(12, members); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
