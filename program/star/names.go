package star

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/internal/shape"
)

// Document is a document of the spaces of a program that its files name.
type Document struct {
	Name string
	// Derived is set if a computation derives it.
	Derived bool
}

// Documents returns the documents that cells name and computations derive, by name. Others may be named when a function runs.
func (p *Program) Documents() []Document { return slices.Clone(p.documents) }

// noteDocument notes that a cell of the own space was declared.
func (inst *instance) noteDocument(name string) {
	if inst.load != nil && !slices.Contains(inst.cells, name) {
		inst.cells = append(inst.cells, name)
	}
}

// addDocuments collects the documents of an instance.
func (p *Program) addDocuments(inst *instance) {
	derived := map[string]bool{}
	for _, name := range inst.cells {
		derived[name] = false
	}
	for _, n := range p.nodes {
		if n.Output != "" {
			derived[n.Output] = true
		}
	}
	for name, is := range derived { // any order: they are sorted below
		p.documents = append(p.documents, Document{name, is})
	}
	slices.SortFunc(p.documents, func(a, b Document) int { return cmp.Compare(a.Name, b.Name) })
}

// PayloadType returns the type of the payloads of a stream, nil if its handler has no schema.
func (p *Program) PayloadType(stream string) *shape.Type { return p.payloads[stream] }
