package roster

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"github.com/settlehq/settle/model"
)

// Divide returns, for each of n partitions, the member that it belongs to, by
// weighted rendezvous hashing with bounded loads. Every member computes the same
// result from the same list; nothing if there are no members.
//
// Plain rendezvous hashing is fair for many partitions. With eight of them and two
// workers it sometimes gives everything to one of them, so each member takes at
// most its share, rounded up: the pairs of partition and member are processed
// from the highest score down, and a member that has its share is skipped.
// When a member comes or goes, the partitions that it gains or held move, and few others do.
func Divide(n int, members []model.Member) []string {
	pairs := rank(n, members)
	room := shares(n, members)
	owner := make([]string, n)
	for _, c := range pairs {
		if owner[c.partition] == "" && room[c.member] > 0 {
			owner[c.partition] = members[c.member].ID
			room[c.member]--
		}
	}
	return owner
}

// candidate is a member for a partition; both are indices.
type candidate struct {
	partition, member int
	score             float64
}

// rank returns all candidates, best first. Ties are ordered by name, so that the order of the
// list of members does not matter.
func rank(n int, members []model.Member) []candidate {
	pairs := make([]candidate, 0, n*len(members))
	for i := range members {
		for p := range n {
			pairs = append(pairs, candidate{p, i, score(members[i], p)})
		}
	}
	slices.SortFunc(pairs, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(b.score, a.score),
			cmp.Compare(a.partition, b.partition),
			cmp.Compare(members[a.member].ID, members[b.member].ID))
	})
	return pairs
}

// shares returns how many of n partitions each member takes at most.
func shares(n int, members []model.Member) []int {
	total := 0.0
	for _, m := range members {
		total += weight(m)
	}
	out := make([]int, len(members))
	for i, m := range members {
		out[i] = int(math.Ceil(float64(n) * weight(m) / total))
	}
	return out
}

func weight(m model.Member) float64 {
	if m.Weight <= 0 {
		return 1
	}
	return m.Weight
}

// score is -w/ln(u) for a uniform u in (0,1) that depends on member and partition
// only: without a bound, the member with the highest score would win with
// probability proportional to its weight.
func score(m model.Member, partition int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.ID + "/" + strconv.Itoa(partition)))
	u := (float64(mix(h.Sum64())>>11) + 0.5) / (1 << 53)
	return -weight(m) / math.Log(u)
}

// mix spreads the bits of an FNV sum, whose high bits hardly differ for strings
// that differ in their last characters (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Rank is a member's rank in the division of a partition.
type Rank struct {
	Member string  `json:"member"`
	Score  float64 `json:"score"`
	// Full reports that the member has its share of partitions for which it scores higher.
	Full bool `json:"full"`
	// Owner reports that the member owns the partition.
	Owner bool `json:"owner"`
}

// Explain returns the ranking behind the owner of a partition, of n: the members, the highest
// score first. The first that is not full is the owner.
func Explain(partition, n int, members []model.Member) []Rank {
	owner := make([]string, n)
	room := shares(n, members)
	var out []Rank
	for _, c := range rank(n, members) {
		m := members[c.member].ID
		free := room[c.member] > 0
		takes := owner[c.partition] == "" && free
		if takes {
			owner[c.partition] = m
			room[c.member]--
		}
		if c.partition == partition {
			out = append(out, Rank{Member: m, Score: c.score, Full: !free, Owner: takes})
		}
	}
	return out
}
