// Package value is the programs' view of documents: a Place stands for a location in a document and
// reads or writes it when it is used, a View is an object or array that was read, and ToModel and
// FromModel convert between values of the language and of documents. It ensures that values that leave a
// run stay within the limits of the run. It has no operators and no builtins; package interp has them.
package value

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/space"
)

// Run is one run of a function of a program: what it has been charged, and the documents that it reads
// and writes.
type Run struct {
	meter.Meter
	// Docs is nil while the program is loaded.
	Docs Documents
	// Name names the node, handler or test that runs, for errors.
	Name func() string
	// Handles is true in a handler, which may write every document of its space.
	Handles bool
	// Upgrades is set while the run upgrades a document.
	Upgrades bool
	upgraded []upgraded
	Missing  *space.Address // the place that was read last, if it does not exist
	LastText string         // the string that was read last, for the hints of tests
}

// Documents is the interface through which places read and write: a transaction, or the documents of a
// test.
type Documents interface {
	Space() string
	Get(doc string, path ...string) model.Value
	GetShallow(doc string, path ...string) model.Value
	GetFrom(space, doc string, path ...string) model.Value
	Peek(doc string, path ...string) model.Value
	Link(doc string, path ...string) (model.Link, bool)
	Set(doc string, v any, path ...string)
	Delete(doc string, path ...string)
	Declares(doc string, path ...string) bool
	// StoredVersion returns the version of what is stored at a path, of another space if one is named.
	StoredVersion(space, doc string, path ...string) int
	Err() error
	Fail(err error)
}

// Begin forgets what the last run has upgraded.
func (run *Run) Begin() { run.Upgrades, run.upgraded = false, run.upgraded[:0] }

// Current is the run under way on one instance of a program. The places of the instance read and write
// through it, so that reading `stats.departures` needs no lookup.
type Current struct {
	Run *Run // nil while none is
	// remembered counts the places that are kept as children of others.
	remembered int
}
