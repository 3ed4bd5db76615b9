package space

import (
	"time"

	"github.com/settlehq/settle/model"
)

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

	// Changed is told of each document that gets a new value, by whatever way, and
	// Invalidated then of each node that has more reason to run because of it.
	Changed     func(ChangeInfo)
	Invalidated func(InvalidInfo)
	// Ordered is told of the work set of an iteration, in the order in which it will
	// be looked at, and Skipped of each node in it that does not run at its turn.
	Ordered func(nodes []string)
	Skipped func(SkipInfo)
	// Gated is told of each node that a pass holds back for not converging.
	Gated func(GateInfo)
}

// HandleInfo describes one attempt to handle an event.
type HandleInfo struct {
	Event *model.Event
	// Tx is the transaction's number, 0 if the attempt was given up because
	// something that the handler read was not up to date or not there yet.
	Tx      uint64
	Receipt *model.Receipt // nil if the attempt was given up
	// Waits is what an attempt that was given up waits for: a document, own or
	// foreign. It is "" if it waits for room in a commit.
	Waits string
	// Sends are the events that the handling emitted.
	Sends []model.Send
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
	// What follows is set at RunEnd.

	// Changed says whether the run changed the output document, and Tx is the
	// transaction that did.
	Changed bool
	Tx      uint64
	// Waits is the foreign document that the run met before it was here.
	Waits string
	// Crowded says that there was no room for the run's output in the open group; it
	// runs again when there is.
	Crowded bool
	Err     error
}

// ChangeInfo describes how one document changed.
type ChangeInfo struct {
	Doc           string // @space/document for one of another space
	Before, After model.Value
	// Node is the node whose run made the change, "" if it was none.
	Node string
}

// InvalidInfo says why a node is invalid.
type InvalidInfo struct {
	Node string
	// Cause is the address that the node read and that changed.
	Cause string
	// Live says whether anybody needs the node now. One that is dormant stays as it
	// is (I2).
	Live bool
}

// SkipInfo is a node that did not run at its turn, and how it stood.
type SkipInfo struct {
	Node   string
	Status Status
	Live   bool
}

// GateInfo is a node that must wait.
type GateInfo struct {
	Node   string
	Until  time.Duration
	Streak int // how many passes in a row it has exhausted
}

// PassInfo counts what a pass did.
type PassInfo struct {
	Events     int // handled
	Runs       int // of computations and effects
	Iterations int
}
