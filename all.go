package settle

import (
	"iter"

	"github.com/settlehq/settle/model"
)

// All returns the spaces whose names begin as a pattern says, "lot-*", or "*" for all spaces. It panics if the pattern is not valid.
//
//	var lots = settle.All("lot-*")
//
// A computation or handler reads which there are (model.Spaces.Names) and what they have (Cell.Across); package spaces sends them an event.
func All(pattern string) model.Spaces {
	s, err := model.SpacesOf(pattern)
	must(err)
	return s
}

// Across iterates over the value in each of several spaces, in the order of their names, where there is one. A computation depends on
// which spaces there are, and on the value in each; a document that is derived there is computed because it is read here.
//
//	for lot, bid := range highest.Across(v, settle.All("lot-*")) { ... }
func (p place[T]) Across(r Reader, spaces model.Spaces) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		// All are read before the first is handed out: the documents that have not arrived are fetched together.
		names := spaces.Names(r)
		values := make([]Value, len(names))
		for i, name := range names {
			there := p
			there.space = name
			values[i] = there.read(r)
		}
		for i, name := range names {
			there := p
			there.space = name
			if v, ok := there.decode(r, values[i]); ok && !yield(name, v) {
				return
			}
		}
	}
}
