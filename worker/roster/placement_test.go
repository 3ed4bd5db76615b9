package roster

import (
	"fmt"
	"math"
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

func TestDivide_EveryPartitionHasOneOwnerAndNoMemberMoreThanItsShare(t *testing.T) {
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
				continue // it must move
			}
			total++
			if before[p] != after[p] {
				moved++
			}
		}
	}
	if moved*5 > total {
		t.Errorf("%d of %d partitions moved although their owner stayed", moved, total)
	}
	t.Logf("%d of %d partitions moved although their owner stayed", moved, total)
}

func TestDivide_WithoutMembers(t *testing.T) {
	for p, owner := range Divide(3, nil) {
		if owner != "" {
			t.Errorf("partition %d belongs to %q", p, owner)
		}
	}
}

// Workers of different versions must compute the same division. Otherwise they would take partitions from
// each other during an upgrade of the fleet.
func TestDivide_Golden(t *testing.T) {
	members := []model.Member{{ID: "w1"}, {ID: "w2", Weight: 2}, {ID: "w3", Weight: 0.5}}
	want := []string{"w1", "w1", "w2", "w1", "w2", "w2", "w3", "w3", "w2", "w2", "w2", "w1"}
	if got := Divide(12, members); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestDivide_AJoinOrLeaveMovesLittleMoreThanItsShare(t *testing.T) {
	for _, n := range []int{8, 32, 64, 128} {
		extra, total, worst := 0, 0, 0.0
		for size := 2; size <= 12; size++ {
			for out := range size {
				var members []model.Member
				for i := range size {
					members = append(members, model.Member{ID: fmt.Sprintf("w%d", i)})
				}
				with := Divide(n, members)
				gone := members[out].ID
				without := Divide(n, slices.Delete(slices.Clone(members), out, out+1))
				moved := 0
				for p := range n {
					if with[p] != without[p] && with[p] != gone {
						moved++
					}
				}
				extra, total = extra+moved, total+n
				worst = max(worst, float64(moved)/float64(n))
			}
		}
		t.Logf("%d partitions: %.1f%% move although their owner stays, at worst %.1f%%", n, 100*float64(extra)/float64(total), 100*worst)
		if share := float64(extra) / float64(total); share > 0.10 || math.IsNaN(share) {
			t.Errorf("%d partitions: %.1f%% move although their owner stays", n, 100*share)
		}
	}
}
