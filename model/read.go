package model

import (
	"errors"
	"time"
)

// DocumentRef names a document of a space.
type DocumentRef struct {
	Space    string `json:"space"`
	Document string `json:"document"`
}

// ReadRequest asks a process for confirmed documents of spaces that it serves.
type ReadRequest struct {
	Documents []DocumentRef
	// Current brings the documents up to date first: their spaces are loaded, derived documents are observed
	// for the duration of the request, and the answer reflects everything that was in the log at the time of
	// the request. Otherwise the answer is the present state, and nothing is loaded, read or computed: this
	// is for callers that observe the documents already.
	Current bool
	// Wait is how long a current read waits for pending work. After that the answer is the present value,
	// with the reason why it is not current.
	Wait time.Duration
}

// DocumentState is a document as the owner of its space knows it.
type DocumentState struct {
	Value    Value  // absent if there is no such document
	Revision uint64 // log sequence of the commit that set the value, 0 if there is none
	// Stale, if not "", is the reason why the value is not current: its inputs did not settle in time, a node
	// fails, or no process serves the space.
	Stale string
	// Passing reports that Stale is a transient problem: something has yet to run, to be confirmed, or to
	// answer.
	Passing bool
}

// ErrElsewhere reports that a space is not served by the process that was asked, at least not now: ask the
// present owner of the space.
var ErrElsewhere = errors.New("the space is not served here at the moment")

// ErrNoProgram reports that a space runs no program, so none of its derived documents can be computed.
var ErrNoProgram = errors.New("the space has no program to run")
