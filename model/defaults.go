package model

import (
	"slices"
	"strings"
)

// WithDefaults returns v with the fields of def that it lacks, also in the objects inside; def itself if v is absent. A value of
// another kind than an object, also a link, replaces its default.
func (v Value) WithDefaults(def Value) Value {
	if v.IsAbsent() || def.IsAbsent() {
		if v.IsAbsent() {
			return def
		}
		return v
	}
	if v.Kind() != KindObject || def.Kind() != KindObject || v.IsLink() {
		return v
	}
	var added []Field // sorted by key, as the fields of the default are
	for k, d := range def.All() {
		have := v.Get(k)
		if full := have.WithDefaults(d); have.IsAbsent() || have.Kind() == KindObject && !Equal(have, full) {
			added = append(added, Field{Key: k, Value: full})
		}
	}
	if added == nil {
		return v
	}
	fields := slices.Clone(added)
	for k, have := range v.All() {
		if _, found := slices.BinarySearchFunc(added, k, func(f Field, k string) int { return strings.Compare(f.Key, k) }); !found {
			fields = append(fields, Field{Key: k, Value: have})
		}
	}
	return Object(fields...)
}
