package space

import (
	"errors"
	"fmt"
)

// Errors and output of user code are intercepted and handed, with what they belong to,
// to whoever has registered (seed 002). The core itself writes nothing anywhere.

// ErrorInfo is an error of user code, and where it came from.
type ErrorInfo struct {
	Space, Program string
	// Node or Stream and Event say whose code it was.
	Node   string
	Stream string
	Event  string
	// Causes are the addresses whose change made the node run.
	Causes []string
	Err    error
	// Rejection is the class of the error; 0 for one that rejects nothing, such as a
	// ConvergenceError.
	Rejection Rejection
	// Transient says that it is tried again by itself, Attempt how often it was tried.
	Transient bool
	Attempt   int
	Stack     []byte // of a panic
}

// ConsoleInfo is a line that user code has written with Tx.Log.
type ConsoleInfo struct {
	Space, Program string
	Node           string
	Stream         string
	Event          string
	Message        string
	Args           []any
}

// hooks are the registered functions. One that panics is left out for that time: it
// must not hurt the space.
type hooks struct {
	space, program string
	onError        []func(ErrorInfo)
	onConsole      []func(ConsoleInfo)
	onDurable      []func(bool)
	host           any // see Tx.Slot
}

// OnError registers a function that is told of errors of user code. They are called in
// the middle of Settle and must not call the space.
func (s *Space) OnError(f func(ErrorInfo)) { s.hooks.onError = append(s.hooks.onError, f) }

// OnConsole registers a function that is told of what user code logs, likewise. What an
// attempt or run logs that is made again is logged again.
func (s *Space) OnConsole(f func(ConsoleInfo)) { s.hooks.onConsole = append(s.hooks.onConsole, f) }

// Log writes a line for the operator: a message and key-value pairs, as with log/slog.
// It goes to the functions registered with OnConsole, with the name of the node or
// event it belongs to. It changes nothing.
func (t *Tx) Log(message string, args ...any) {
	if len(t.core.hooks.onConsole) == 0 || t.rehearsal {
		return
	}
	info := ConsoleInfo{Space: t.space, Program: t.core.program.Name, Message: message, Args: args}
	if t.node != nil {
		info.Node = t.node.id()
	}
	if t.attempt.Event != nil {
		info.Stream, info.Event = t.attempt.Event.Stream, t.attempt.Event.ID
	}
	tellAll(t.core.hooks.onConsole, info)
}

func (h *hooks) report(info ErrorInfo) {
	info.Space, info.Program = h.space, h.program
	tellAll(h.onError, info)
}

func tellAll[T any](fs []func(T), info T) {
	for _, f := range fs {
		func() {
			defer func() { _ = recover() }() // contained: see hooks
			f(info)
		}()
	}
}

// nodeFailed counts and reports a run that ended in an error.
func (r *runner) nodeFailed(n *node, info *RunInfo) {
	r.graph.stats.NodeErrors++
	r.graph.setErr(n, info.Err)
	n.more.errors++
	r.hooks.report(ErrorInfo{
		Node: n.id(), Causes: info.Causes, Err: info.Err, Stack: info.Stack, Rejection: rejectionOf(info.Err),
		Transient: n.status != Clean, Attempt: int(n.runs),
	})
}

// setErr notes how the last run of a node has ended.
func (g *graph) setErr(n *node, err error) {
	if n.failed() {
		g.failing--
	}
	if err != nil {
		n.ext().lastErr = err
		g.failing++
	} else if n.more != nil {
		n.more.lastErr = nil
	}
}

func (n *node) failed() bool { return n.more != nil && n.more.lastErr != nil }

// transient marks an error that may pass.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Transient marks an error of a handler or node as one that may pass: it is tried
// again, see Config.EventRetries and Config.RunRetries. Since functions are to be
// deterministic, that helps if they depend on something that the space does not see.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return transient{err}
}

func isTransient(err error) bool {
	var t transient
	return errors.As(err, &t)
}

// ConvergenceError says that an event, or a transaction of the application's, met one
// conflict after another for as long as Config.ConflictWindow: other runtimes change the
// space faster than this one can. An event is kept, and goes on being tried at the slowest
// rate. A transaction is given up, and nothing of it is in the log.
type ConvergenceError struct {
	Event     string // or
	By        string // who made the transaction
	Conflicts int
}

func (e *ConvergenceError) Error() string {
	if e.Event == "" {
		return fmt.Sprintf("transaction of %s: all of %d attempts met a conflict; another runtime changes the space all the time. It is given up, and nothing of it is in the log", e.By, e.Conflicts)
	}
	return "event " + e.Event + ": every attempt met a conflict; another runtime changes the space all the time. It is kept and tried again"
}
