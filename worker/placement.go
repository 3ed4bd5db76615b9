package worker

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"github.com/settlehq/settle/model"
)

// Place returns the member that a partition belongs to, by weighted rendezvous
// hashing: every member computes the same answer from the same list, and when a
// member comes or goes, only the partitions that it gains or held move. "" if
// there are no members.
func Place(partition int, members []model.Member) string {
	best, bestScore := "", math.Inf(-1)
	for _, m := range members {
		score := score(m, partition)
		if score > bestScore || score == bestScore && m.ID < best {
			best, bestScore = m.ID, score
		}
	}
	return best
}

// score is -w/ln(u) for a uniform u in (0,1) that depends on member and partition
// alone: the member with the highest score wins with probability proportional to
// its weight.
func score(m model.Member, partition int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.ID + "/" + strconv.Itoa(partition)))
	u := (float64(mix(h.Sum64())>>11) + 0.5) / (1 << 53)
	w := m.Weight
	if w == 0 {
		w = 1
	}
	return -w / math.Log(u)
}

// mix spreads the bits of an FNV sum, whose high bits hardly differ for strings
// that differ in their last characters (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// partitionsOf lists the partitions, of n, that belong to a member.
func partitionsOf(id string, n int, members []model.Member) []int {
	var mine []int
	for p := range n {
		if Place(p, members) == id {
			mine = append(mine, p)
		}
	}
	return slices.Clip(mine)
}
