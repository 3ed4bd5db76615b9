package model

import (
	"hash/maphash"
	"slices"
)

// interned caches keys, and the key sets of objects, that were read before. Documents repeat them: a list of
// flights has the same ten keys in every element, and a thousand spaces have the same list in a thousand
// documents. Sharing them saves most of the allocations of parsing and a good part of the heap, and lets
// Equal compare one pointer instead of ten keys.
//
// Both tables have a fixed size and overwrite old entries, so keys that are ids do no harm. An entry is only
// a hint: it is compared before it is used.
type interned struct {
	names [256]pair[string]
	sets  [64]pair[[]string]
}

// pair holds the two newest entries with the same hash: even with a few dozen keys, some pairs would keep
// evicting each other.
type pair[T any] struct{ newer, older T }

func (p *pair[T]) add(x T) { p.newer, p.older = x, p.newer }

const (
	maxInternedName = 64 // bytes
	maxInternedSet  = 32 // keys
)

var internSeed = maphash.MakeSeed()

// key returns name as a string, and its hash.
func (t *interned) key(name []byte) (string, uint64) {
	h := maphash.Bytes(internSeed, name)
	slot := &t.names[h%uint64(len(t.names))]
	if slot.newer == string(name) {
		return slot.newer, h
	}
	if slot.older == string(name) {
		return slot.older, h
	}
	s := string(name)
	if len(s) <= maxInternedName {
		slot.add(s)
	}
	return s, h
}

// keys returns the keys of sorted members.
func (t *interned) keys(members []member) []string {
	h := uint64(len(members))
	for i := range members {
		h = h*31 + members[i].hash
	}
	slot := &t.sets[h%uint64(len(t.sets))]
	if keysOf(slot.newer, members) {
		return slot.newer
	}
	if keysOf(slot.older, members) {
		return slot.older
	}
	keys := newKeys(len(members))
	for i := range members {
		keys[i] = members[i].key
	}
	if len(keys) <= maxInternedSet && !tooLong(keys) {
		slot.add(keys)
	}
	return keys
}

// keysOf reports whether keys are the keys of members.
func keysOf(keys []string, members []member) bool {
	if len(keys) != len(members) {
		return false
	}
	for i := range members {
		if keys[i] != members[i].key {
			return false
		}
	}
	return true
}

func tooLong(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return len(k) > maxInternedName })
}
