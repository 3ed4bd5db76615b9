package settle

import (
	"iter"

	"github.com/settlehq/settle/model"
)

// Spaces are all spaces whose names match a pattern. See All.
type Spaces struct{ pattern string }

// All returns the spaces whose names begin as a pattern says, "lot-*", or "*" for all spaces. It panics if the pattern is not valid.
//
//	var lots = settle.All("lot-*")
//
// A computation or handler reads which there are (Spaces.Names) and what they have (Cell.Across); a client sends them an event
// (Client.SendAll).
func All(pattern string) Spaces {
	must(model.CheckPattern("spaces", pattern))
	return Spaces{pattern}
}

// Pattern returns the pattern.
func (s Spaces) Pattern() string { return s.pattern }

// Matches reports whether a space is one of them, by its name.
func (s Spaces) Matches(space string) bool { return model.MatchesPattern(s.pattern, space) }

// Names returns the names of those that exist, in order, as the worker knows them: it learns of a new space within seconds. A
// computation depends on which there are.
func (s Spaces) Names(r Reader, page ...Page) []string {
	return pageOf(page).Of(r.GetFrom(s.pattern, model.SpacesDoc).Keys())
}

// Across iterates over the value in each of several spaces, in the order of their names, where there is one. A computation depends on
// which spaces there are, and on the value in each; a document that is derived there is computed because it is read here.
//
//	for lot, bid := range highest.Across(v, settle.All("lot-*")) { ... }
func (p place[T]) Across(r Reader, spaces Spaces) iter.Seq2[string, T] {
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
