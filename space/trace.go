package space

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// Trace is a set of functions that are called as the space works (P10). All of them are optional, and a nil
// one costs a branch. They observe: none may change anything.
//
// Only HandleStart and Sends have results: the trace context that HandleStart returns is recorded in the transaction and travels
// with the handler's sends, unless Sends returns another for these. That context is an input like the time; no decision depends on it.
type Trace struct {
	HandleStart func(ev *model.Event) model.Trace
	// Sends returns the trace context that travels with what the transaction of an event sends. of is that of the transaction. It is called if there are
	// sends.
	Sends     func(ev *model.Event, of model.Trace) model.Trace
	HandleEnd func(HandleInfo)
	// Later is called for each event of the lane that has to wait for its time.
	Later    func(LaterInfo)
	RunStart func(RunInfo)
	// RunBegan is a cheaper RunStart, without the names of causes.
	RunBegan func(node string, kind NodeKind)
	RunEnd   func(RunInfo)
	PassEnd  func(PassInfo)
	// PreviewBegan and PreviewEnd are called around a call of a node's function whose result only the handler that is running reads: it reads what
	// follows from its own writes.
	PreviewBegan func(node string)
	PreviewEnd   func(node string)

	// Changed is called for each document that gets a new value, from whatever source, and then Invalidated
	// for each node that has another cause to run.
	Changed     func(ChangeInfo)
	Invalidated func(InvalidInfo)
	// Iteration is called when a pass begins another sweep, and Skipped for each due node that may not run at
	// its turn.
	Iteration func(n int)
	Skipped   func(SkipInfo)
	// Gated is called for each node that a pass holds back because it does not converge.
	Gated func(GateInfo)
	// Echo is called when the breaker trips for a node that answers another runtime's writes with its own,
	// and when the breaker is cleared.
	Echo func(EchoInfo)
	// Round is called when a circle over several spaces has turned for so long that its pace is limited, and when it has come to rest: in one
	// of the spaces on it.
	Round func(RoundInfo)
	// Rejected is called for each handling that a refusal has undone, once the reason is known.
	Rejected func(RejectInfo)
	// Violated is called for a computation or handler that is not idempotent (Config.CheckIdempotency).
	Violated func(Violation)
	// Unsettled is called when a pass has to defer nodes that do not converge, and again only after a pass
	// that deferred none.
	Unsettled func(nodes []string)
	// Program is called when the space begins to run another program (see Space.Change).
	Program func(ProgramInfo)
	// TaskStarted is called when a handler starts a task, or a transaction requests a value of an input. The transaction may be undone.
	TaskStarted func(action, key string)
	// Notes fills in HandleInfo.Notes.
	Notes bool
}

// HandleInfo describes one attempt to handle an event.
type HandleInfo struct {
	Event *model.Event
	// Tx is the transaction's number, 0 if the attempt was abandoned because one of its reads was not up to
	// date or not available yet.
	Tx      uint64
	Receipt *model.Receipt // nil if the attempt was abandoned
	// Waits is the document, own or foreign, that an abandoned attempt waits for. It is "" if the attempt
	// waits for room in a commit.
	Waits string
	// Err is the transient error of an attempt that will be retried, and Until the time of the retry, if
	// known.
	Err   error
	Until time.Duration
	// Rejection is the class of the error, including one in the receipt; 0 if there is none.
	Rejection Rejection
	// Writes are the writes of the attempt, Sends its events.
	Writes []model.Write
	Sends  []model.Send
	// Stack is the stack of a panic, nil if there was none.
	Stack []byte
	// Trace is what HandleStart returned.
	Trace model.Trace
	// Notes are what the handler has noted, see Tx.Note.
	Notes []Note
}

// Note is what a library that stands on a space reports about a transaction, for traces and metrics. It decides nothing.
type Note struct {
	Kind NoteKind
	// Name says more, such as the step of a workflow.
	Name string
}

// NoteKind is a kind of Note. There are few of them, and they are constants.
type NoteKind string

// LaterInfo describes an event of the lane that came before its time.
type LaterInfo struct {
	Stream, Event string
	// NotBefore is that time, in milliseconds since 1970.
	NotBefore int64
	// Tx is the number of the transaction that stores the event until then.
	Tx uint64
}

// RunInfo describes one run of a node.
type RunInfo struct {
	Node string
	Kind NodeKind
	// Causes are the addresses whose change made the node run. They are named if RunStart is installed, or
	// the run makes a transaction.
	Causes []string
	// The fields below are set at RunEnd.

	// Changed reports whether the run changed the output document, and Tx is the transaction that did.
	Changed bool
	Tx      uint64
	// Writes are the run's writes to the log, its output included.
	Writes []model.Write
	// Waits is the foreign document that the run read before it had arrived.
	Waits string
	// TooDeep reports that the run was abandoned, because it would have nested too many runs of nodes that it read for the
	// first time; the node runs again in the next sweep, after them.
	TooDeep bool
	// NoRoom reports that the open group had no room for the run's output; the node runs again when there is
	// room.
	NoRoom bool
	Err    error
	// Stack is the stack of a panic, nil if there was none.
	Stack []byte
}

// ChangeInfo describes how one document changed.
type ChangeInfo struct {
	Doc           string // @space/document for a foreign one
	Before, After model.Value
	// Node is the node whose run made the change, "" if there is none, and Group the change group of the
	// transaction.
	Node  string
	Group string
}

// InvalidInfo is the reason why a node is invalid.
type InvalidInfo struct {
	Node string
	// Cause is the address that the node read and that changed.
	Cause string
	// Live reports whether the node is needed now. A dormant one stays invalid (I2).
	Live bool
}

// SkipInfo describes a node that did not run at its turn.
type SkipInfo struct {
	Node   string
	Status Status
	Live   bool
	// Until is when its gate opens; 0 if its budget is exhausted.
	Until time.Duration
}

// EchoInfo describes a node and another runtime that write a document in answer to each other.
type EchoInfo struct {
	Node, Doc string
	// Until is the time until which the node is held back; Cleared is the reason why the episode ended.
	Until   time.Duration
	Cleared string
}

// RoundInfo describes a circle that leads through derived documents of several spaces.
type RoundInfo struct {
	// Docs are the documents on the way round, "SPACE/DOCUMENT", each read in the space of the next one, and the last in that of the first.
	// There are at most model.MaxTrail; a longer circle shows a part of it.
	Docs  []string
	Steps uint64 // see model.Trail
	// Until is the time until which the next step is held back.
	Until time.Duration
	// Over is set at the end of the episode.
	Over bool
}

// GateInfo describes a node that must wait.
type GateInfo struct {
	Node   string
	Until  time.Duration
	Streak int // exhausted passes in a row
}

// PassInfo counts the work of a pass.
type PassInfo struct {
	Events     int // handled
	Runs       int // of computations and effects
	Iterations int
}

// Stats counts the work of a space since this runtime loaded it.
type Stats struct {
	Handled, Failed, Refusals uint64 // events, by outcome, once confirmed
	Parked                    uint64 // attempts abandoned until something is up to date
	Refused                   uint64 // appends refused
	Deferred                  uint64 // nodes held back because they did not converge
	NodeErrors                uint64 // runs that returned an error
	Runs                      uint64 // of computations and effects
	Previews                  uint64 // calls of computations for handlers that read what follows from their own writes
	Attempts                  uint64 // at handling events, including undone ones but not abandoned ones
	Unconverged               uint64 // events that met conflicts for longer than the window
	// Handlings that a refusal has undone: because of a conflict, because another runtime had made the
	// receipt, and together with the transaction that had sent the event.
	Conflicts, KnownReceipts, LostOrigins uint64

	OutsideWrites uint64 // writes by nodes to places that they have not declared
	Resumed       uint64 // nodes that an observation has resumed, as clean or invalid
	Compared      uint64 // reads whose value had to be compared to resume a node
	Violations    uint64 // runs that were found not to be idempotent

	// The amount of work. Matched counts the readers that were compared with a change, Filtered those of them
	// that it did not concern (value-gating), Visits the nodes visited in ordering, liveness and preflight,
	// IndexWrites the reads that were indexed or unindexed, Echoes the runs that answered another runtime's
	// writes, Rounds the values of other spaces that were held back because they follow from this one in a circle.
	Matched, Filtered, Visits, IndexWrites, Echoes, Rounds uint64
}

// ProgramInfo has the results of a change of the program, in numbers of nodes: those that are unchanged,
// those with other code, those that are new or have another shape, those that were removed, and those that
// run again because they make nodes.
type ProgramInfo struct {
	Name, Version string
	// Before is the previous version.
	Before                           string
	Kept, Changed, New, Gone, Makers int
}

// Violation describes a computation that is not idempotent: run again over the same documents, it had another
// result. A scheduler may run it at any time, so its result would depend on chance. The same holds for a
// handler: an attempt may be undone and repeated, and only one of them takes effect.
type Violation struct {
	Node string
	// Stream and Event are set instead for a handler.
	Stream, Event string
	// Differences are the places with different results.
	Differences []Difference
	// Runs are the numbers of two runs of the node, if the violation was found by comparing them in the history of runs
	// (inspect.Recorder), and not by a repetition.
	Runs [2]uint64
	// Moved reports that the node's own writes have changed its reads: it feeds itself, and its progress
	// depends on the number of runs.
	Moved bool
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
	if v.Runs[1] != 0 {
		line += fmt.Sprintf("; its runs %d and %d have read the same and written that", v.Runs[0], v.Runs[1])
		if len(parts) == 0 {
			line = fmt.Sprintf("%s is not idempotent: its runs %d and %d have read the same and written different values", who, v.Runs[0], v.Runs[1])
		}
	}
	if v.Moved {
		line += "; it reads what it has written itself"
	}
	return line
}

// Difference is a place with different results in two runs. One of them is absent if only the other run wrote
// it. For a handler the place may be "result", or a send ("send 1 to SPACE/STREAM").
type Difference struct {
	Place         string
	First, Second model.Value
}
