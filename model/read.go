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

// ReadRequest asks a process for documents of spaces that it serves, as their log has them.
type ReadRequest struct {
	Documents []DocumentRef
	// Current brings the documents up to date first: their spaces are loaded, what is computed is
	// observed meanwhile, and the answer reflects everything that was in the log at the time of the
	// request. Otherwise the answer is the present state, which nothing is loaded, read or computed for:
	// it is for callers that observe the documents already.
	Current bool
	// Wait is how long a current read waits for pending work. Then the answer is the present value,
	// with the reason why it is not current.
	Wait time.Duration
}

// DocumentState is a document as the owner of its space knows it.
type DocumentState struct {
	Value    Value  // absent if there is no such document
	Revision uint64 // log sequence of the commit that set the value, 0 if there is none
	// Stale, if not "", is why the value is not current: its inputs did not come to rest in time, a
	// node fails, or no process serves the space.
	Stale string
	// Passing reports that Stale names a transient problem: something has yet to run, to be
	// confirmed, or to answer.
	Passing bool
}

// ErrElsewhere reports that a space is not served by the process that was asked, or not now: ask the
// present owner of the space.
var ErrElsewhere = errors.New("the space is not served here at the moment")

// ErrNoProgram reports that a space runs no program, so none of its derived documents can be
// computed.
var ErrNoProgram = errors.New("the space has no program to run")
