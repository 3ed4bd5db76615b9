package worker

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/worker/tasks"
)

// spaceCore is what a host needs of the core of its space: the protocol (package ledger), which steps it takes when, and
// documents. space.Space implements it; a core without a graph answers what is under graph with nothing.
type spaceCore interface {
	protocolCore
	laneCore
	logCore
	savedCore
	directCore
	recallingCore
	tasks.Core
	graphCore
}

// protocolCore takes part in the log of its space, one append at a time.
type protocolCore interface {
	TermAt(ms uint64)
	TakeOver()
	Attach()
	Hold()

	Clock(wall time.Time)
	Settle(now time.Duration) space.Ready
	Confirm(seq uint64) error
	Refuse()
	Resume()

	Offer(ev model.Event) bool
	LeftInStream(lane uint64)

	// Durable reports whether everything is in the log, and Throttled until when the space must stay in memory.
	Durable() bool
	Throttled() (until time.Duration)
	// WaitForTime is the number of events that wait for a time, and NextDue when the first is due.
	WaitForTime() int
	NextDue() int64
	LastMissed() space.Missed

	// Inspect explains what the head of the lane waits for.
	Inspect() *inspect.Snapshot
	Overran(space.Overrun)
	// AttemptRecorded reports whether the log has a record of an event's attempt.
	AttemptRecorded(stream, event string) bool
	Change(*space.Program) error
	OnError(func(space.ErrorInfo))
	OnConsole(func(space.ConsoleInfo))
}

// graphCore has documents that are derived from others.
type graphCore interface {
	freshCore
	Value(doc string) model.Value
	Observe(doc string) error
	Unobserve(doc string)
	Mirror(of, doc string, v model.Value)
	Rehydrate([]space.Observation)
	Measured(node string, took time.Duration)
	Recorder() *inspect.Recorder
}
