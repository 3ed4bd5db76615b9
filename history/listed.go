package history

import (
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// Listed is a document in a list.
type Listed struct {
	Name  string
	Value model.Value
	// Revision is the log sequence of the last change.
	Revision uint64
	// Derived is set if the document is known to be derived. Its value may then be older than what it is derived from.
	Derived bool
}

// List returns a page of the documents that exist and whose names begin with a prefix, in the order of their names.
func (c *Contents) List(prefix string, page model.Page) []Listed {
	var names []string
	for _, name := range c.DocIDs() {
		if strings.HasPrefix(name, prefix) && !c.Doc(name).Value.IsAbsent() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = page.Of(names)
	entries := make([]Listed, len(names))
	for i, name := range names {
		d := c.Doc(name)
		_, derived := slices.BinarySearch(c.Derived, name)
		entries[i] = Listed{Name: name, Value: d.Value, Revision: d.Seq, Derived: derived}
	}
	return entries
}
