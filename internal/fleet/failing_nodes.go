package fleet

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/status"
)

// FailingNodes returns the spaces with computations that are needed and fail, as the workers report them: those that have for longest first. spaces and
// nodes are the numbers of all, also of those that workers do not name.
func (f *Fleet) FailingNodes() (list []status.FailingNodes, spaces, nodes int) {
	for i := range f.Workers {
		if g := f.Workers[i].Figures; g != nil {
			list = append(list, g.FailingNodes...)
			spaces += g.FailingSpaceCount
			nodes += g.FailingNodeCount
		}
	}
	slices.SortStableFunc(list, func(a, b status.FailingNodes) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space))
	})
	return list, spaces, nodes
}

// FailingNodesText returns a clause with the computations of a space that fail, the spaces that read what follows from them, and the error of the first.
func FailingNodesText(s *status.FailingNodes) string {
	text := display.Count(s.Count, "computation") + " fail"
	if s.Count == 1 {
		text = "a computation fails"
	}
	switch len(s.Readers) {
	case 0:
	case 1:
		text += ", and space " + s.Readers[0] + " reads what follows"
	default:
		text += ", and " + display.Count(s.ReaderCount, "space") + " read what follows"
	}
	for i := range s.Nodes[:min(len(s.Nodes), 1)] {
		text += ": " + s.Nodes[i].Node + ": " + display.FirstLine(s.Nodes[i].Error)
	}
	return text
}
