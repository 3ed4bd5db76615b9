package settletest

import (
	"fmt"
	"slices"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/space/inspect"
)

// isDerived reports whether a place is written by computations only.
func isDerived[T any](place Place[T]) bool {
	switch any(place).(type) {
	case interface {
		Compute(*settle.Program, func(*settle.View) (T, error), ...settle.Option)
	}, interface{ Node(key string) string }:
		return true
	}
	return false
}

// underived explains that no computation of the program writes a document, and lists the documents that
// computations do write; "" if one does.
func (s *Space) underived(doc string) string {
	var docs []string
	for _, n := range s.s.Inspect().Nodes() {
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
func writtenBy(n inspect.Node) (docs []string) {
	if n.Kind != space.Computation.String() {
		return nil
	}
	for _, w := range n.Writes {
		docs = append(docs, w.Doc)
	}
	return docs
}
