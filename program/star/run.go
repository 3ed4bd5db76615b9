package star

import (
	"github.com/settlehq/settle/model"
)

// Run is one run of a function of a program: what it has been charged, and the documents that it reads
// and writes.
type Run struct {
	Meter
	// docs is nil while the program is loaded.
	docs documents
	// kind and id name the node, handler or test that runs, for errors.
	kind, id string
	// handles is set for the run of a handler, which may write everywhere.
	handles  bool
	missing  *place // what was read last, if nothing is there
	lastText string // the text that was read last
}

// documents is what places read and write through: a transaction, or the documents of a test.
type documents interface {
	Space() string
	Get(doc string, path ...string) model.Value
	GetShallow(doc string, path ...string) model.Value
	GetFrom(space, doc string, path ...string) model.Value
	Peek(doc string, path ...string) model.Value
	Set(doc string, v any, path ...string)
	Delete(doc string, path ...string)
	Declares(doc string, path ...string) bool
	Err() error
}

// Current is the run under way on one instance of a program. The places of the instance read and write
// through it, so that reading `stats.departures` needs no lookup.
type Current struct {
	Run *Run // nil while none is
	// remembered counts the places that places remember.
	remembered int
}
