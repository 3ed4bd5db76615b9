package space

import "github.com/settlehq/settle/model"

// Trace is a set of functions that are told what the space does (P10). All of
// them are optional, a nil one costs a branch, and none may change anything.
//
// HandleStart is the one that answers: the trace context it returns is recorded
// in the transaction and travels with what the handler sends. That context is an
// input like the time; no decision depends on it.
type Trace struct {
	HandleStart func(ev *model.Event) model.Trace
	HandleEnd   func(HandleInfo)
	RunStart    func(RunInfo)
	RunEnd      func(RunInfo)
	PassEnd     func(PassInfo)
}

// HandleInfo describes one attempt to handle an event.
type HandleInfo struct {
	Event *model.Event
	// Tx is the transaction's number, 0 if the attempt was given up because
	// something that the handler read was not up to date or not there yet.
	Tx      uint64
	Receipt *model.Receipt // nil if the attempt was given up
	// Stack is where the handler panicked, nil if it did not.
	Stack []byte
	// Trace is what HandleStart returned.
	Trace model.Trace
}

// RunInfo describes one run of a node.
type RunInfo struct {
	Node   string
	Kind   NodeKind
	Causes []string
	// Changed says whether the run changed the output document. Set at RunEnd.
	Changed bool
	Err     error
}

// PassInfo counts what a pass did.
type PassInfo struct {
	Events     int // handled
	Runs       int // of computations and effects
	Iterations int
}
