package settletest

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/space"
)

// isDerived reports whether only computations write a place.
func isDerived[T any](place Place[T]) bool {
	switch any(place).(type) {
	case interface {
		Compute(*settle.Program, func(*settle.View) (T, error), ...settle.Option)
	}, interface{ Node(key string) string }:
		return true
	}
	return false
}

// underived explains that no computation of the program writes a document, and which documents they
// do write; "" if one does.
func (s *Space) underived(doc string) string {
	var docs []string
	for _, n := range s.s.Structure().Nodes() {
		docs = append(docs, writtenBy(n)...)
	}
	if slices.Contains(docs, doc) {
		return ""
	}
	text := fmt.Sprintf(": no computation of program %s derives %s; register it with Compute", s.s.Program().Name, doc)
	slices.Sort(docs)
	docs = slices.DeleteFunc(slices.Compact(docs), s.s.Program().HoldsTasks) // requests for inputs
	if len(docs) > 0 {
		text += ". It derives " + list(docs)
	}
	return text
}

// writtenBy returns the documents that a computation writes.
func writtenBy(n space.NodeInfo) (docs []string) {
	if n.Kind != space.Computation {
		return nil
	}
	if n.Output != "" {
		docs = append(docs, n.Output)
	}
	for _, a := range n.Places() {
		docs = append(docs, a.Doc)
	}
	return docs
}
