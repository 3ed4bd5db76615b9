package star

import (
	"cmp"
	"fmt"
	"maps"
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
	for name, f := range inst.forms { // any order: they go to a map
		if f != nil {
			if p.versions == nil {
				p.versions = map[string]docVersion{}
			}
			p.versions[name] = docVersion{f.Chain.Version(), f.Rows}
		}
	}
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

// Unreadable is a document that a later program may have written in a version that an earlier one does not read.
type Unreadable struct {
	Document string `json:"document"`
	// Rows reports that its rows have versions, and not the document.
	Rows bool `json:"rows,omitzero"`
	// Written is the version of the later program, and Known that of the earlier one.
	Written int `json:"written"`
	Known   int `json:"known"`
}

// Unreadable returns the documents which p has named in a later version than before has, in the order of their names. It does not know what is stored,
// nor documents that are only named inside a function.
func (p *Program) Unreadable(before *Program) []Unreadable {
	var out []Unreadable
	for _, name := range slices.Sorted(maps.Keys(p.versions)) {
		if known := max(before.versions[name].number, 1); known < p.versions[name].number {
			out = append(out, Unreadable{name, p.versions[name].rows, p.versions[name].number, known})
		}
	}
	return out
}

// String names the document and both versions.
func (u Unreadable) String() string {
	what := "document " + u.Document
	if u.Rows {
		what = "the rows of document " + u.Document
	}
	return fmt.Sprintf("%s in version %d (it reads versions up to %d)", what, u.Written, u.Known)
}

// Counted returns how `settle upgrades` names the document and its version.
func (u Unreadable) Counted() string {
	if u.Rows {
		return fmt.Sprintf("%s/*=%d", u.Document, u.Written)
	}
	return fmt.Sprintf("%s=%d", u.Document, u.Written)
}

// docVersion is the version in which a program writes a document, or its rows.
type docVersion struct {
	number int
	rows   bool
}
