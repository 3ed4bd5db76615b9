package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Default sets the value that conditions read where a document of the space has none: that of an object for the fields that the
// document lacks. It is to be called before Register.
func (s *Set) Default(doc string, v model.Value) { s.defaults[doc] = v }

// readWithDefault reads a value of a document for a condition.
func (s *Set) readWithDefault(tx *space.Tx, doc string, path ...string) model.Value {
	v, def := tx.Get(doc, path...), s.defaults[doc]
	for _, key := range path {
		if def.Kind() != model.KindObject {
			return v
		}
		def = def.Get(key)
	}
	if v.IsAbsent() && !def.IsAbsent() {
		for i := range path { // the default of a field counts if there are objects around the field
			if around := tx.GetShallow(doc, path[:i]...); !around.IsAbsent() && around.Kind() != model.KindObject {
				return v
			}
		}
	}
	return v.WithDefaults(def)
}

// defaultsVersion is part of the version of the nodes that evaluate conditions, "" if there are no defaults.
func (s *Set) defaultsVersion() string {
	if len(s.defaults) == 0 {
		return ""
	}
	h := sha256.New()
	for _, doc := range slices.Sorted(maps.Keys(s.defaults)) {
		fmt.Fprintf(h, "%s %s\n", doc, s.defaults[doc])
	}
	return " " + hex.EncodeToString(h.Sum(nil)[:hashBytes])
}
