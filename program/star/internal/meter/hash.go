package meter

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"
)

// maxKeyValues is how many values a tuple that is a key may have, those in inner tuples included.
const maxKeyValues = 1000

// chargeKey counts the hashing of a key, and refuses a tuple that is too large for one.
func (m *Meter) ChargeKey(k starlark.Value) error {
	switch k := k.(type) {
	case starlark.String:
		if len(k) > TextStep {
			return m.Charge(1+len(k)/TextStep, 0)
		}
	case starlark.Tuple:
		room := maxKeyValues
		if err := m.chargeTuple(k, &room); err != nil {
			return err
		}
		return m.chargeCollisions(k)
	case starlark.Int, starlark.Float:
		return m.chargeCollisions(k)
	}
	return nil
}

func (m *Meter) chargeTuple(t starlark.Tuple, room *int) error {
	if *room -= len(t) + 1; *room < 0 {
		return fmt.Errorf("a tuple of more than %d values cannot be a key", maxKeyValues)
	}
	if err := m.Charge(1+len(t), 0); err != nil {
		return err
	}
	for _, e := range t {
		if inner, ok := e.(starlark.Tuple); ok {
			if err := m.chargeTuple(inner, room); err != nil {
				return err
			}
		} else if err := m.ChargeKey(e); err != nil {
			return err
		}
	}
	return nil
}

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

// chargeCollisions counts the comparing of a key with the keys of the same hash.
func (m *Meter) chargeCollisions(k starlark.Value) error {
	n, ok := identityOf(k)
	if !ok {
		return nil
	}
	h, err := k.Hash()
	if err != nil {
		return nil //nolint:nilerr // the dict or set reports it
	}
	if m.keys.seen == nil {
		m.keys = hashCounts{map[keyIdentity]struct{}{}, map[uint32]int{}}
	}
	if _, seen := m.keys.seen[n]; !seen {
		m.keys.seen[n] = struct{}{}
		m.keys.count[h]++
		if err := m.Charge(1, EntryBytes); err != nil {
			return err
		}
	}
	if c := m.keys.count[h]; c >= 16 {
		return m.Charge(c/8, 0)
	}
	return nil
}
