package host

import (
	"context"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/status"
)

// Program is what spaces run. A space changes its program when two values compare as different.
type Program interface {
	// NewCore makes the core of a space from its confirmed state r, which was loaded from st.
	NewCore(of *Access, st model.SpaceState, r *replica.Replica) (Core, error)
	// Label returns the name and the version of the program, for the log.
	Label() (name, version string)
	// MadeByReads reports whether a read or a watch creates a space, as an event does.
	MadeByReads(space string) bool
	// LimitError returns the error of code that has not returned within its limit.
	LimitError(o *Overrun) error
}

// Access is what a core may use of its host. All functions may be called from any goroutine.
type Access struct {
	Space string
	// Ctx ends with the host.
	Ctx context.Context
	// Joins reports that the host attaches to the space instead of taking it over.
	Joins bool
	// Unborn reports that the space has no log and gets none: the core handles nothing, and has no jobs.
	Unborn bool
	// Limits are those of the worker, with MaxCommitBytes as the server allows it now.
	ledger.Limits
	// Code records which code of the application is running.
	Code *Code
	// Now returns the time by the clock of the loop.
	Now func() time.Duration
	// Go runs a function beside the loop, which waits for it at the end, and Call makes the loop run one.
	Go, Call func(func())
	// Send stores an event in a lane.
	Send func(model.Message) error
	// Report logs an error, and Warn a possibly recurring fault: what it is, and which space or document it
	// concerns.
	Report func(what string, err error)
	Warn   func(what, of string, about ...any)
	// Stored returns when an event of the lane was stored, by the clock of the servers. It is known of events that have not ended, if
	// the process has metrics or spans. Only the loop may call it.
	Stored func(lane uint64) (time.Time, bool)
}

// Core is one space, as the loop of its host drives it: the protocol (package ledger), its lane, its log and
// its saved state.
type Core interface {
	protocolCore
	laneCore
	logCore
	savedCore
	recallingCore
}

// protocolCore takes part in the log of its space, one append at a time.
type protocolCore interface {
	TermAt(ms uint64)
	TakeOver()
	Attach()
	Hold()

	Clock(wall time.Time)
	// Settle does the pending work, and returns what the host must do for it.
	Settle(now time.Duration) Ready
	Confirm(seq uint64) error
	Refuse()
	Resume()

	Offer(ev model.Event) bool
	LeftInStream(lane uint64)

	// Durable reports whether everything is in the log, and Throttled until when the space must stay in memory.
	Durable() bool
	Throttled() (until time.Duration)
	// WaitForTime returns the number of events that wait for a time, and NextDue when the first is due.
	WaitForTime() int
	NextDue() int64
	LastMissed() Missed

	// StuckAt returns the event at which the space stands still and why, and whether there is one. If there
	// is none, Cause and Why are those of a space that is busy without one. clock formats a time of the loop.
	StuckAt(clock func(time.Duration) string) (s status.Stuck, waits bool)
	Overran(Overrun)
	// ReleaseMemory frees memory that is kept for reuse.
	ReleaseMemory()
	// AttemptRecorded reports whether the log has a record of an event's attempt.
	AttemptRecorded(stream, event string) bool
}

// Graph is a core with documents that are derived from others, observed by clients, and mirrored in other spaces.
type Graph interface {
	Core
	freshCore
	observedCore
	directCore
	taskCore

	Value(doc string) model.Value
	// Confirmed returns a document as the log has it, and the revision of that value.
	Confirmed(doc string) (v model.Value, revision uint64)
	Observe(doc string) error
	Unobserve(doc string)
	// Mirror delivers the value of a document of another space, and the trail of its last change, nil for none.
	Mirror(of Ref, v model.Value, via *model.Trail)
	// Woken is called with the context of a read, or of the commit that has changed a mirrored document, before the pass that it causes.
	Woken(by model.Trace)
	// Change makes the space run another program as soon as possible.
	Change(Program) error
	// BeginCommit is called before a commit is appended, and returns the trace that is stored with it. end
	// receives the result. under, if not zero, is the context of what the commit belongs to.
	BeginCommit(c *model.Commit, under model.Trace) (t model.Trace, end func(seq uint64, err error))
}

// Ready is what a core requests from its host after a step.
type Ready struct {
	// Append, if not nil, is to be appended to the log, and answered by exactly one Confirm or Refuse.
	Append *ledger.Append
	// Follow and Unfollow are documents of other spaces that the host must start and stop mirroring.
	Follow, Unfollow []Ref
	// Refill, if set, asks for the lane events after RefillAfter, through Offer.
	Refill      bool
	RefillAfter uint64
	// Wake is the time at which to call Settle again even if nothing else happens; 0 for never.
	Wake time.Duration
	// Due is the wall time at which to call Settle again, after Clock, for an event that waits for its time, in
	// milliseconds since 1970; 0 for never.
	Due int64
	// More reports that there is runnable work left.
	More bool
	// Undone are the transactions of Transact that a refusal has undone since the last Ready.
	Undone []uint64
}

// Ref names a document of another space.
type Ref struct{ Space, Doc string }

// Overrun is code that did not return, so that an earlier host of the space in this process was given up.
type Overrun struct {
	// Stream and Event are those of the handler, or Node is the node.
	Stream, Event string
	Node          string
	Limit         time.Duration // 0 for a handler that ended its goroutine
	// Recorded reports that the log has a record of the handler's attempt.
	Recorded bool
	// Until is the time before which a node is not run again.
	Until time.Duration
}

// Missed are times of a job that passed without a runtime to handle them, as in a downtime.
type Missed struct {
	Cron  string
	Times int
	At    int64
}

// Freshness describes how up to date a document is.
type Freshness struct {
	// Pending reports that something has yet to run, or to arrive from another space.
	Pending bool
	// Reason describes what is pending, or a problem that waiting does not solve.
	Reason string
}
