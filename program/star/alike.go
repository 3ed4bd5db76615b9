package star

import (
	"math"

	"go.starlark.net/starlark"
)

// alike counts the keys of a run that hash alike: integers whose lower 32 bits are the same,
// floats between the same integers, tuples of such. A dict or set is searched through all of
// them for each, so that each costs more than the one before. Texts are not looked at: they
// are the keys of most programs, and have to be written out to hash alike.
type alike struct {
	met   map[number]struct{}
	count map[uint32]int
}

// number tells keys apart.
type number struct {
	kind byte
	bits uint64
}

// numberOf is what tells a key apart, and false for one that nothing hashes like, or that is
// not counted.
func numberOf(k starlark.Value) (number, bool) {
	switch k := k.(type) {
	case starlark.Int:
		i, ok := k.Int64()
		return number{'i', uint64(i)}, ok && i != int64(int32(i))
	case starlark.Float:
		return number{'f', math.Float64bits(float64(k))}, true
	case starlark.Tuple:
		n := number{'t', 14695981039346656037}
		for _, e := range k {
			of, ok := numberOf(e)
			if !ok {
				h, _ := e.Hash()
				of.bits = uint64(h)
			}
			n.bits = (n.bits ^ of.bits) * 1099511628211
			n.bits ^= n.bits >> 29
		}
		return n, true
	}
	return number{}, false
}

// chargeAlike counts a key that hashes like others.
func (l *level) chargeAlike(k starlark.Value) error {
	n, ok := numberOf(k)
	if !ok {
		return nil
	}
	h, err := k.Hash()
	if err != nil {
		return nil //nolint:nilerr // who uses it as a key is told
	}
	if l.alike.met == nil {
		l.alike = alike{map[number]struct{}{}, map[uint32]int{}}
	}
	if _, met := l.alike.met[n]; !met {
		l.alike.met[n] = struct{}{}
		l.alike.count[h]++
		if err := l.charge(1, entryBytes); err != nil {
			return err
		}
	}
	if c := l.alike.count[h]; c >= 16 {
		return l.charge(c/8, 0)
	}
	return nil
}
