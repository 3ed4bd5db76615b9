package worker

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see there
	"github.com/settlehq/settle/model"
)

func fleet(t *rapid.T) []model.Member {
	var out []model.Member
	for i := range rapid.IntRange(1, 12).Draw(t, "members") {
		out = append(out, model.Member{ID: fmt.Sprintf("w%d", i), Weight: float64(rapid.IntRange(0, 3).Draw(t, "weight"))})
	}
	return out
}

func TestDivide_EveryPartitionHasOneOwner_AndNobodyMoreThanItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, members := rapid.IntRange(1, 64).Draw(t, "n"), fleet(t)
		count := map[string]int{}
		for p, owner := range Divide(n, members) {
			if owner == "" {
				t.Fatalf("partition %d has no owner", p)
			}
			count[owner]++
		}
		most := shares(n, members)
		for i, m := range members {
			if count[m.ID] > most[i] {
				t.Fatalf("%s has %d of %d partitions, its share is %d", m.ID, count[m.ID], n, most[i])
			}
		}
	})
}

func TestDivide_IsTheSameForEveryMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, members := rapid.IntRange(1, 64).Draw(t, "n"), fleet(t)
		other := rapid.Permutation(members).Draw(t, "order")
		if a, b := Divide(n, members), Divide(n, other); !slices.Equal(a, b) {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

func TestDivide_WhenAMemberLeaves_MostOthersKeepWhatTheyHave(t *testing.T) {
	const n = 64
	moved, total := 0, 0
	for size := 2; size <= 12; size++ {
		var members []model.Member
		for i := range size {
			members = append(members, model.Member{ID: fmt.Sprintf("w%d", i)})
		}
		before, after := Divide(n, members), Divide(n, members[1:])
		for p := range n {
			if before[p] == members[0].ID {
				continue // it has to move
			}
			total++
			if before[p] != after[p] {
				moved++
			}
		}
	}
	if moved*5 > total {
		t.Errorf("%d of %d partitions moved though their owner stayed", moved, total)
	}
	t.Logf("%d of %d partitions moved though their owner stayed", moved, total)
}

func TestDivide_NobodyIsThere(t *testing.T) {
	for p, owner := range Divide(3, nil) {
		if owner != "" {
			t.Errorf("partition %d belongs to %q", p, owner)
		}
	}
}
