package space

import (
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/ledger"
)

// Errors and output of user code are passed, with their origin, to registered functions. The core writes no
// logs.

// ErrorInfo is an error of user code, and its origin.
type ErrorInfo struct {
	Space, Program string
	// Node, or Stream and Event, name the code that failed.
	Node   string
	Stream string
	Event  string
	// Causes are the addresses whose change made the node run.
	Causes []string
	Err    error
	// Rejection is the class of the error; 0 for an error that rejects nothing, such as a ConvergenceError.
	Rejection Rejection
	// Transient reports that the code is retried automatically; Attempt is the number of attempts so far.
	Transient bool
	Attempt   int
	Stack     []byte // of a panic
}

// ConsoleInfo is a line that user code has written with Tx.Log, or a library with Tx.Warn.
type ConsoleInfo struct {
	Space, Program string
	Node           string
	Stream         string
	Event          string
	Warning        bool // of Tx.Warn
	Message        string
	Args           []any
}

// hooks are the registered functions. A panic in one of them is recovered, so that it cannot harm the space.
type hooks struct {
	space, program string
	onError        []func(ErrorInfo)
	onConsole      []func(ConsoleInfo)
	onDurable      []func(bool)
	locals         []any // one variable per type, see Local
}

func (h *hooks) report(info ErrorInfo) {
	info.Space, info.Program = h.space, h.program
	notifyAll(h.onError, info)
}

func notifyAll[T any](fs []func(T), info T) {
	for _, f := range fs {
		func() {
			defer func() { _ = recover() }() // see hooks
			f(info)
		}()
	}
}

// ConvergenceError reports that an event, or a transaction of the application, met conflicts for
// Config.ConflictWindow: other runtimes change the space faster than this one can. An event is kept and
// retried at the slowest rate. A transaction is given up, and nothing of it is in the log.
type ConvergenceError struct {
	Event     string // or, for a transaction:
	By        string // its writer
	Conflicts int
}

func (e *ConvergenceError) Error() string {
	if e.Event == "" {
		return fmt.Sprintf("transaction of %s: all %d attempts met a conflict, because other runtimes change the space too often. The transaction is given up, and nothing of it is in the log", e.By, e.Conflicts)
	}
	return "event " + e.Event + ": every attempt met a conflict; another runtime changes the space all the time. It is kept and tried again"
}

// DocumentError reports that a document of another space, which an event needs, did not arrive within
// Config.DocumentWait.
type DocumentError struct {
	Document string // @space/document
	Waited   time.Duration
}

func (e *DocumentError) Error() string {
	return fmt.Sprintf("document %s has not arrived within %s, and the event needs it; make sure that its space can be read, and redrive the event", e.Document, e.Waited)
}

// LostError reports that a handler returned from none of its attempts: each ended with the process, or was
// abandoned.
type LostError struct {
	Event    string
	Attempts int
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the handler never came back: the process ended, or it was given up, in each of %d attempts", e.Attempts)
}

// LimitError reports that a handler or a node did not return within its limit.
type LimitError struct {
	// Stream and Event are those of the handler, or Node is the node.
	Stream, Event string
	Node          string
	Limit         time.Duration // 0 for a handler that ended its goroutine
	// Attempts is the number of attempts that never returned; 0 if one returned too late.
	Attempts int
}

func (e *LimitError) Error() string {
	if e.Node != "" {
		return fmt.Sprintf("node %s has not returned within %s and is given up; its document stays as it was. Move slow work into an action or an input", e.Node, e.Limit)
	}
	attempts := ""
	if e.Attempts > 0 {
		attempts = fmt.Sprintf(" in any of %d attempts", e.Attempts)
	}
	if e.Limit == 0 {
		return fmt.Sprintf("event %s: the handler of stream %s has not returned%s: it has ended its goroutine (runtime.Goexit, as FailNow of a test does)", e.Event, e.Stream, attempts)
	}
	return fmt.Sprintf("event %s: the handler of stream %s has not returned within %s%s. Move slow work into an action, whose end is an event; settle.Within gives a handler another limit", e.Event, e.Stream, e.Limit, attempts)
}

// EchoError reports that a node and another runtime keep answering each other's writes of a document with
// different values. The node is slowed down.
type EchoError struct{ Node, Doc string }

func (e *EchoError) Error() string {
	return "node " + e.Node + " and another runtime write " + e.Doc + " in answer to each other; it is slowed down. A node that writes what it reads must come to an end"
}

// MissedError reports that times of a job were skipped, because there were more than CronSpec.Limit.
type MissedError struct {
	Cron   string
	Missed int
}

func (e *MissedError) Error() string {
	return fmt.Sprintf("cron %s: %d times were missed beyond those that have been made up for (Limit), and are skipped", e.Cron, e.Missed)
}

// ErrNoRoom is returned for a transaction that does not fit into the open group. It may be retried when the
// append under way is answered.
var ErrNoRoom = ledger.ErrNoRoom

// ErrNotRunning is returned by operations that require a space that this runtime owns and runs.
var ErrNotRunning = errors.New("the space is not running here")

// IdempotencyError reports a Violation to OnError.
type IdempotencyError struct{ Violation }

func (e *IdempotencyError) Error() string { return e.String() }

// Overrun describes code that did not return, for which this process abandoned an earlier incarnation of the
// space.
type Overrun struct {
	// Stream and Event are those of the handler, or Node is the node.
	Stream, Event string
	Node          string
	Limit         time.Duration
	// Recorded reports that the log has a record of the handler's attempt; see ledger.Hosted.
	Recorded bool
	// Until is the time before which a node is not run again.
	Until time.Duration
}

// Missed describes the times of a job that passed while the space was not loaded, for instance in a downtime.
type Missed struct {
	Cron string
	// Times is how many were skipped according to the job's CatchUp: they are not handled, or only counted
	// (Tick.Missed) by the event that was due At, in milliseconds since 1970.
	Times int
	At    int64
}
