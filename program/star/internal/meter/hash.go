package meter

import (
	"math"

	"go.starlark.net/starlark"
)

// hashCounts counts the keys of a run by hash. Keys of equal hash are easy to make: integers whose
// lower 32 bits are the same, floats between the same integers, tuples of such. A dict or set
// compares a new key with all of equal hash, so each key costs more than the one before. Strings are
// not counted: they are the keys of most programs, and equal hashes of strings have to be searched for.
type hashCounts struct {
	seen  map[keyIdentity]struct{}
	count map[uint32]int
}

// keyIdentity distinguishes keys of one hash.
type keyIdentity struct {
	kind byte
	bits uint64
}

// identityOf returns the identity of a key, and false for a key that is not counted.
func identityOf(k starlark.Value) (keyIdentity, bool) {
	switch k := k.(type) {
	case starlark.Int:
		i, ok := k.Int64()
		return keyIdentity{'i', uint64(i)}, ok && i != int64(int32(i))
	case starlark.Float:
		return keyIdentity{'f', math.Float64bits(float64(k))}, true
	case starlark.Tuple:
		n := keyIdentity{'t', 14695981039346656037}
		for _, e := range k {
			of, ok := identityOf(e)
			if !ok {
				h, _ := e.Hash()
				of.bits = uint64(h)
			}
			n.bits = (n.bits ^ of.bits) * 1099511628211
			n.bits ^= n.bits >> 29
		}
		return n, true
	}
	return keyIdentity{}, false
}

// add counts a key, and returns how many different keys have its hash and whether it is the first of its
// identity.
func (h *hashCounts) add(k starlark.Value) (same int, first bool) {
	n, ok := identityOf(k)
	if !ok {
		return 0, false
	}
	hash, err := k.Hash()
	if err != nil {
		return 0, false // the dict or set reports it
	}
	if h.seen == nil {
		*h = hashCounts{map[keyIdentity]struct{}{}, map[uint32]int{}}
	}
	if _, seen := h.seen[n]; !seen {
		h.seen[n] = struct{}{}
		h.count[hash]++
		first = true
	}
	return h.count[hash], first
}
