package settle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// The types of programs and clients under the names that users write. They are aliases of types of
// packages space and model, where their methods are documented.

// Value is an immutable JSON value: documents, payloads and results are Values. The zero Value is
// absent, which differs from null. ValueOf creates one. It is [model.Value]:
//
//   - [model.Value.Get] returns a member, [model.Value.Index] an element, [model.Value.At] the value at a path
//   - [model.Value.AsString], [model.Value.AsInt], [model.Value.AsFloat], [model.Value.AsBool] return Go
//     values; [model.Value.Decode] decodes into one, as encoding/json does
//   - [model.Value.IsAbsent], [model.Value.IsNull], [model.Value.Kind], [model.Value.Len]
//   - [model.Value.Keys], [model.Value.All], [model.Value.Elements] iterate
//   - [model.Value.Set], [model.Value.Delete] return a changed copy; [model.Value.String] returns the JSON text
type Value = model.Value

// Event is a request to change a space; a handler finds it in Tx.Event. It is [model.Event]: its
// fields are Space, Stream, ID, Payload, and Timer (the timer's name if a timer sent it);
// [model.Event.Origin] is the space that sent it, "" for an event from outside.
type Event = model.Event

// Tx is the transaction that a handler runs in. Its reads, writes and sends take effect together
// with the event's receipt, or not at all. Cells, rows and streams take it as an argument, as in
// stats.Get(tx) and arrival.Send(tx, ...), and use these methods. It is [space.Tx]:
//
//   - [space.Tx.Space] is the space's name, [space.Tx.Event] the event, [space.Tx.Now] the time
//   - [space.Tx.Get], [space.Tx.GetFrom] read; [space.Tx.Peek] reads without a dependency
//   - [space.Tx.Set], [space.Tx.Delete] write
//   - [space.Tx.Send], [space.Tx.SendAfter], [space.Tx.SendAt] send
//   - [space.Tx.SetTimer], [space.Tx.CancelTimer], [space.Tx.Timer] manage timers of the space
//   - [space.Tx.Group] is for ChangeGroup, [space.Tx.Log] writes a line for the operator
//   - [space.Tx.Fail], [space.Tx.Err]: an error that fails the transaction, whatever else the function does
//
// It is valid during the call that it was passed to: any use after that panics, and so fails the event of the handler that makes it.
type Tx = space.Tx

// Transient marks an error as retryable. An event gets five attempts, 25 ms apart at first and
// doubling up to 1 s, and then fails. A node is rerun at once, at most nine times. Any other error
// is final.
func Transient(err error) error { return space.Transient(err) }

// Rejection is the error of an event that its handler has declined, at the caller: errors.As finds it in what Call returns.
//
//	var no *settle.Rejection
//	if errors.As(err, &no) && no.Code == "full" { ... }
type Rejection = receipts.Rejection

// Reject returns the error by which a handler declines an event: the request is understood, and the answer is no. Nothing
// that the handler wrote is kept, there is no dead letter, and the receipt has the outcome Rejected. Callers get a
// *Rejection, over HTTP a status of 422. code is for their programs (letters, digits, '_', '-' and '.', at most 64 bytes), message for people, and data,
// which may be nil, whatever else they need. In a computation it is an error like any other.
func Reject(code, message string, data any) error { return receipts.Reject(code, message, data) }

// ValueOf converts x to a Value, by the rules of encoding/json.
func ValueOf(x any) (Value, error) { return model.Of(x) }

// Program is the code of a space. Build it before any space runs it. Mistakes in it (a second
// handler for a stream, two computations that write one location, an input without a Fetch
// function) are collected; Err reports the first, and so do Start, StartWorker, Attach and
// settletest.New.
type Program struct {
	p   *space.Program
	err error
	// reading lists which node reads which input.
	reading []reading
	jobs    []job
	// streams and documents are those whose types are known, for Interface.
	streams   []described
	documents []described
}

// job is a cron job and the stream that its events go to.
type job struct{ name, stream string }

// reading is a node and an input that it reads.
type reading struct{ node, input string }

// NewProgram returns an empty program.
func NewProgram(name string) *Program { return &Program{p: space.NewProgram(name)} }

// Version sets the version of the program, at most 256 bytes. Commits record it, and it
// distinguishes the program from others in the same binary. When a space moves to a program with
// another version, nodes without a Version of their own run again.
//
// Set it where one binary contains several programs for a space and something outside the binary
// selects one, such as a flag: after a restart with another selection, a worker cannot otherwise
// detect that the code differs. Two binaries are distinguished without it.
func (p *Program) Version(v string) *Program {
	if len(v) > maxVersion {
		return p.note(fmt.Errorf("program %s: the version has %d bytes; the limit is %d", p.Name(), len(v), maxVersion))
	}
	p.p.Version = v
	return p
}

// MadeByReads has a read or a watch create spaces of the program, as an event does: for spaces that only derive
// documents from others, or fetch inputs, and that no event is ever sent to. Without it, a read of a space that does
// not exist is answered from nothing, in memory: computations run, and no input is fetched, no job runs and nothing is
// stored; a watch waits.
//
//	p.MadeByReads("hall")    // the space of this name, such as one with a board over others
//	p.MadeByReads("shelf-*") // those whose names begin so
//	p.MadeByReads()          // all of them
//
// Every name that matches, and that a client may read and asks for, leaves a space behind for good.
func (p *Program) MadeByReads(spaces ...string) *Program {
	if len(spaces) == 0 {
		spaces = []string{"*"}
	}
	for _, s := range spaces {
		if err := model.CheckNameOrPattern("space", s); err != nil {
			return p.note(fmt.Errorf("program %s: made by reads: %w", p.Name(), err))
		}
	}
	p.p.MadeByReads = append(p.p.MadeByReads, spaces...)
	return p
}

// maxVersion is the limit that package space enforces.
const maxVersion = 256

// Handle registers the handler of a stream. It is the untyped form of Stream.Handle.
func (p *Program) Handle(stream string, h space.Handler, options ...HandlerOption) *Program {
	p.hasStream(described{name: stream})
	p.note(p.p.Handle(stream, h))
	for _, set := range options {
		p.note(set(p, stream))
	}
	return p
}

// HandlerOption configures a handler.
type HandlerOption func(p *Program, stream string) error

// Within limits the duration of one call of the handler; a negative duration means no limit. The
// default is WorkerConfig.RunLimit, 30 s. At the limit the handler's Context is cancelled: if the
// handler then returns, the attempt has failed, whatever it returns, and is retried as after a
// Transient error. If it has not returned one second later it is abandoned: its space continues
// without it, and the event gets two more attempts (LostAttempts) before it becomes a dead letter.
// Go cannot stop running code, so the goroutine of an abandoned handler remains until the handler
// returns or uses its transaction, which ends it.
//
// Long-running work belongs in an Action.
func Within(d time.Duration) HandlerOption {
	return func(p *Program, stream string) error { return p.p.Within(stream, d) }
}

// Context returns a context that is cancelled when the handler reaches its limit (see Within), when
// its space is handed over, and when the handler returns. Pass it to code that the handler calls.
// In settletest, which has no limits, it is never cancelled.
func Context(tx *Tx) context.Context { return worker.Context(tx) }

// Cron sends an event to a stream of every space of the program at the times of a cron expression,
// such as "0 9 * * MON-FRI" or "CRON_TZ=Europe/Berlin 30 2 * * *" (see package cron; the default
// zone is UTC). The ticks of a space begin with its first event, or see MadeByReads. Each is one event. If ticks were missed
// while no worker served the space, one event stands for all of them and carries their number, Tick.Missed;
// cron.SkipMissed and cron.EveryMissed change that.
//
// Changing the expression or stream, or removing the job, takes effect in a space when it gets the
// changed program.
func (p *Program) Cron(name, expression string, stream Stream[cron.Tick], options ...cron.Option) *Program {
	s, err := cron.Parse(expression)
	if err != nil {
		return p.note(fmt.Errorf("cron %q: %w", name, err))
	}
	p.jobs = append(p.jobs, job{name, stream.name})
	spec := space.CronSpec{Name: name, Stream: stream.name, Schedule: s, Spec: expression}
	spec.CatchUp, spec.Grace, spec.Limit = catchUp(options)
	return p.note(p.p.Cron(spec))
}

func catchUp(options []cron.Option) (policy space.CatchUp, grace time.Duration, limit int) {
	var j cron.Job
	for _, set := range options {
		set(&j)
	}
	switch {
	case j.Skip:
		policy = space.Skip
	case j.Every:
		policy = space.All
	}
	return policy, j.Grace, j.Limit
}

// Compute registers a computation that derives document doc. It runs only while doc is observed: by
// a client that watches it, by an observed computation that reads it (here or in another space), by
// an effect, or by an event whose handler reads it.
//
// It is the untyped form of Derived.Compute. Returning an absent value removes the document, as
// NoValue does.
func (p *Program) Compute(doc string, run func(v *View) (Value, error), options ...Option) *Program {
	n := space.NodeSpec{ID: doc, Kind: space.Computation, Output: doc}
	if run != nil {
		n.Run = func(tx *space.Tx) (Value, error) {
			v, err := run((*View)(tx))
			if err != nil {
				return none(err)
			}
			return v, nil
		}
	}
	p.node(n, options)
	p.documents = append(p.documents, described{name: doc, derived: true})
	return p
}

// Node registers a node with its full specification: side writes, an envelope, declared reads,
// debounce and throttle, a change group, volatile output. Compute and Effect are the short forms.
func (p *Program) Node(n space.NodeSpec) *Program {
	p.note(p.p.Add(n))
	return p
}

// Effect registers an effect: it observes what it reads, and run is called when that changes, while
// the space is loaded. A space at rest is unloaded until it gets an event or an observer. An effect
// sees speculative state and may run again for the same change; work that must happen exactly once
// belongs in a handler.
func (p *Program) Effect(name string, run func(v *View) error, options ...Option) *Program {
	n := space.NodeSpec{ID: name, Kind: space.Effect}
	if run != nil {
		n.Run = func(tx *space.Tx) (Value, error) { return Value{}, run((*View)(tx)) }
	}
	p.node(n, options)
	return p
}

func (p *Program) note(err error) *Program {
	if p.err == nil {
		p.err = err
	}
	return p
}

// Err returns the first mistake in the program, or nil. Call it when everything is registered: an
// input without Fetch that a node names with Using, an action with a Done function but without
// Perform, and a cron job whose stream has no handler count as mistakes only then.
func (p *Program) Err() error {
	if p.err != nil {
		return p.err
	}
	return p.missing()
}

// Core returns the program in the form that package space runs, and the first mistake in it, for
// hosts other than a worker. Applications do not need it.
func (p *Program) Core() (*space.Program, error) { return p.p, p.Err() }

// reads records that a node reads inputs.
func (p *Program) reads(node string, inputs []string) {
	for _, input := range inputs {
		p.reading = append(p.reading, reading{node, input})
	}
}

// missing returns an error for what the program lacks or what conflicts, which can be decided only
// when everything is registered.
func (p *Program) missing() error {
	actions := p.p.Actions()
	for _, a := range actions {
		if a.Performer == nil && !a.External && !a.Input {
			return fmt.Errorf("program %s: action %s has a Done function, but nothing performs it; call its Perform with this program, or its External if another system does", p.Name(), a.Name)
		}
	}
	for _, r := range p.reading {
		if !slices.ContainsFunc(actions, func(a *space.ActionSpec) bool { return a.Input && a.Name == r.input }) {
			return fmt.Errorf("program %s: node %q reads input %s, but nothing fetches it; call its Fetch with this program", p.Name(), r.node, r.input)
		}
	}
	for _, j := range p.jobs {
		if !p.p.Handles(j.stream) {
			return fmt.Errorf("program %s: cron %q: there is no handler for stream %s; call its Handle with this program", p.Name(), j.name, j.stream)
		}
	}
	if c := p.p.WriteConflict(); c != nil {
		return fmt.Errorf("program %s: %w", p.Name(), c)
	}
	return nil
}

// Programs returns the program of a space, or nil for a space that runs none. Starting a worker
// first calls it with "", which names no space, and fails if the program returned for it has
// mistakes. A program that only some spaces run need not be returned for ""; its mistakes are
// reported when such a space is loaded.
type Programs func(space string) *Program

// Always returns Programs that run p in every space.
func Always(p *Program) Programs { return func(string) *Program { return p } }

// resolve converts ps to the form that package worker takes.
func (ps Programs) resolve() (func(string) (*space.Program, error), error) {
	if ps == nil {
		return nil, fmt.Errorf("settle: Config.Programs is nil; it selects the program of a space")
	}
	if p := ps(""); p != nil && p.Err() != nil {
		return nil, p.Err()
	}
	return func(name string) (*space.Program, error) {
		p := ps(name)
		if p == nil {
			return nil, nil
		}
		return p.Core()
	}, nil
}
