package space

import (
	"fmt"
	"slices"
	"strings"
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
	// Later is told of each event of the lane that is to wait for its time.
	Later    func(LaterInfo)
	RunStart func(RunInfo)
	// RunBegan is told less than RunStart, and costs less: no causes are named.
	RunBegan func(node string, kind NodeKind)
	RunEnd   func(RunInfo)
	PassEnd  func(PassInfo)

	// Changed is told of each document that gets a new value, by whatever way, and
	// Invalidated then of each node that has more reason to run because of it.
	Changed     func(ChangeInfo)
	Invalidated func(InvalidInfo)
	// Iteration is told when a pass goes through what is due, once more, and Skipped of
	// each node that is due and may not run at its turn.
	Iteration func(n int)
	Skipped   func(SkipInfo)
	// Gated is told of each node that a pass holds back for not converging.
	Gated func(GateInfo)
	// Echo is told when the breaker trips for a node that answers another runtime's
	// writes with its own, and when it lets go.
	Echo func(EchoInfo)
	// Rejected is told of each handling that a refusal has undone, when it is known why.
	Rejected func(RejectInfo)
	// Violated is told of a computation or handler that is not idempotent
	// (Config.CheckIdempotency).
	Violated func(Violation)
	// Unsettled is told when a pass had to defer nodes for want of convergence, once until
	// a pass has not.
	Unsettled func(nodes []string)
	// Durable is told when the space becomes durable (see Space.Durable) and when it
	// ceases to be.
	Durable func(bool)
	// Program is told when the space has begun to run another program (see Space.Change).
	Program func(ProgramInfo)
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
	// Err is the transient error that it ended in, if it is to be tried again, and Until
	// when, if there is a time.
	Err   error
	Until time.Duration
	// Rejection is the class of the error, of that in the receipt too; 0 if there is none.
	Rejection Rejection
	// Writes are what the handling wrote, Sends the events that it emitted.
	Writes []model.Write
	Sends  []model.Send
	// Stack is where the handler panicked, nil if it did not.
	Stack []byte
	// Trace is what HandleStart returned.
	Trace model.Trace
}

// LaterInfo describes an event of the lane that came before its time.
type LaterInfo struct {
	Stream, Event string
	// NotBefore is the time, in milliseconds since 1970.
	NotBefore int64
	// Tx is the number of the transaction by which it waits.
	Tx uint64
}

// RunInfo describes one run of a node.
type RunInfo struct {
	Node string
	Kind NodeKind
	// Causes are the addresses whose change made the node run. They are named if
	// RunStart is installed, or the run makes a transaction.
	Causes []string
	// What follows is set at RunEnd.

	// Changed says whether the run changed the output document, and Tx is the
	// transaction that did.
	Changed bool
	Tx      uint64
	// Writes are what the run wrote to the log, its output included.
	Writes []model.Write
	// Waits is the foreign document that the run met before it was here.
	Waits string
	// Crowded says that there was no room for the run's output in the open group; it
	// runs again when there is.
	Crowded bool
	Err     error
	// Stack is where the function panicked, nil if it did not.
	Stack []byte
}

// ChangeInfo describes how one document changed.
type ChangeInfo struct {
	Doc           string // @space/document for one of another space
	Before, After model.Value
	// Node is the node whose run made the change, "" if it was none, and Group the change
	// group of the transaction.
	Node  string
	Group string
}

// InvalidInfo says why a node is invalid.
type InvalidInfo struct {
	Node string
	// Cause is the address that the node read and that changed.
	Cause string
	// Live says whether the node is needed now. One that is dormant stays as it
	// is (I2).
	Live bool
}

// SkipInfo is a node that did not run at its turn, and how it stood.
type SkipInfo struct {
	Node   string
	Status Status
	Live   bool
	// Until is when its gate opens; 0 if its budget is used up.
	Until time.Duration
}

// EchoInfo is a node and a document that it and another runtime write in answer to
// each other.
type EchoInfo struct {
	Node, Doc string
	// Until is till when the node is held back; Cleared says why it no longer is.
	Until   time.Duration
	Cleared string
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

// Stats counts what a space has done since this runtime took it in.
type Stats struct {
	Handled, Failed, Refusals uint64 // events, by outcome, when that is confirmed
	Parked                    uint64 // attempts given up until something is up to date
	Refused                   uint64 // appends refused
	Deferred                  uint64 // nodes gated for not converging
	NodeErrors                uint64 // runs that returned an error
	Runs                      uint64 // of computations and effects
	Attempts                  uint64 // at handling events that were not given up, undone ones included
	Unconverged               uint64 // events that met conflicts for longer than the window
	// Handlings that a refusal has undone: for a conflict, for a receipt that another
	// runtime has made, and with the transaction that had sent the event.
	Conflicts, KnownReceipts, LostOrigins uint64

	OutsideWrites uint64 // writes of nodes to what they have not declared
	Resumed       uint64 // nodes that an observation has saved a run, or told why not
	Compared      uint64 // reads whose value had to be looked at for that
	Violations    uint64 // runs that were found not to be idempotent

	// What the work was. Matched counts the readers that were compared with a change,
	// Filtered those of them that it did not concern (value-gating), Visits the nodes
	// looked at in ordering, liveness and preflight, IndexWrites the reads that were
	// entered or taken out, Echoes the runs that answered another runtime's writes.
	Matched, Filtered, Visits, IndexWrites, Echoes uint64
}

// ProgramInfo says what a change of the program has come to, in nodes: those that stay as
// they are, those that stay and whose code is another, those that are new or have another
// shape, those that are gone, and those that run again because they make nodes.
type ProgramInfo struct {
	Name, Version string
	// Before is the version until now.
	Before                           string
	Kept, Changed, New, Gone, Makers int
}

// Violation is a computation that is not idempotent: run again over the same documents,
// it came to something else (seed 001 section 4.2). A scheduler may run it at any time,
// so its result would depend on chance. Likewise a handler: an attempt may be undone and made
// again, and only one of them takes effect.
type Violation struct {
	Node string
	// Stream and Event are set instead for a handler.
	Stream, Event string
	// Differences are the places of which the runs made different things.
	Differences []Difference
	// Moved says that what the node reads was changed by its own writes: it feeds itself,
	// and how often it runs is how far it gets.
	Moved bool
}

// OfSecond returns the differences at places of which the second run made something: what a
// repetition would have added or replaced, without what it left out.
func (v Violation) OfSecond() []Difference {
	return slices.DeleteFunc(slices.Clone(v.Differences), func(d Difference) bool { return d.Second.IsAbsent() })
}

func (v Violation) String() string {
	var parts []string
	for _, d := range v.Differences {
		parts = append(parts, fmt.Sprintf("%s: %s, then %s", d.Place, d.First, d.Second))
	}
	who := "node " + v.Node
	if v.Node == "" {
		who = "the handler of " + v.Stream
	}
	line := fmt.Sprintf("%s is not idempotent: %s", who, strings.Join(parts, "; "))
	if v.Moved {
		line += "; it reads what it has written itself"
	}
	return line
}

// Difference is a place of which two runs made different things. One of them is absent if
// only the other run made something of it. Of a handler it may be "result", or a send
// ("send 1 to SPACE/STREAM").
type Difference struct {
	Place         string
	First, Second model.Value
}
