package settle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// The vocabulary of programs and clients, by the names that users write. They are other names for
// types of packages space and model, so that is where their methods are documented.

// Value is an immutable JSON value: what documents, payloads and results are. The zero Value is
// absent, which is not null. ValueOf makes one. It is [model.Value]:
//
//   - [model.Value.Get] a member, [model.Value.Index] an element, [model.Value.At] what is at a path
//   - [model.Value.AsString], [model.Value.AsInt], [model.Value.AsFloat], [model.Value.AsBool] as a Go
//     value, [model.Value.Decode] into one, as encoding/json does
//   - [model.Value.IsAbsent], [model.Value.IsNull], [model.Value.Kind], [model.Value.Len]
//   - [model.Value.Keys], [model.Value.All], [model.Value.Elements] go through it
//   - [model.Value.Set], [model.Value.Delete] make another one; [model.Value.String] is the JSON
type Value = model.Value

// Event is a request to change a space, as its handler finds it in Tx.Event. It is [model.Event]:
// its fields are Space, Stream, ID, Payload, and Timer (the name of the timer that it is); and
// [model.Event.Origin] is the space that has sent it, "" for one from outside.
type Event = model.Event

// Tx is the transaction that a handler runs in. It reads, writes and sends; all of that takes
// effect together with the event's receipt, or not at all. Cells, rows and streams take it, as in
// stats.Get(tx) and arrival.Send(tx, ...); these are the methods beneath them. It is [space.Tx]:
//
//   - [space.Tx.Space] the space's name, [space.Tx.Event] the event, [space.Tx.Now] the time
//   - [space.Tx.Get], [space.Tx.GetFrom] read; [space.Tx.Peek] without consequences
//   - [space.Tx.Set], [space.Tx.Delete] write
//   - [space.Tx.Send], [space.Tx.SendAfter], [space.Tx.SendAt] send
//   - [space.Tx.SetTimer], [space.Tx.CancelTimer], [space.Tx.Timer]: timers of the space
//   - [space.Tx.Group] for ChangeGroup, [space.Tx.Log] for the operator
//   - [space.Tx.Fail], [space.Tx.Err]: an error that ends it, whatever else the function does
//
// It is good for the call that it was passed to and must not be kept.
type Tx = space.Tx

// Handler changes documents in answer to an event; what it returns is the result in the receipt.
// It is what Program.Handle takes; Stream.Handle is the form with types. It is [space.Handler].
type Handler = space.Handler

// Receipt is how an event ended: its Outcome, the Result if it was handled, the Error if not,
// and Attempts if there was more than one. Stream.Result makes a Go value of the result. It is
// [model.Receipt].
type Receipt = model.Receipt

// Outcome is how an event ended: Handled, Failed or Refused; "" if it has not. It is
// [model.Outcome].
type Outcome = model.Outcome

// NodeSpec describes a computation or effect with all that can be said of one: ID, Kind, Output or
// Writes, Gate, Version, and Run, the function. See Program.Node, and View.Node for nodes that a
// run makes; Derived.Compute and Program.Effect are the usual forms. It is [space.NodeSpec].
type NodeSpec = space.NodeSpec

// NodeKind tells computations from effects. It is [space.NodeKind].
type NodeKind = space.NodeKind

// GateSpec are the time gates of a node: Debounce, MaxWait, Throttle and NoAutoDebounce, as the options of
// these names set them. It is [space.GateSpec].
type GateSpec = space.GateSpec

// Address is a place: a Space ("" for the one in which it is said), a Doc, and a Path in it,
// empty for all of it. Cells and the like have one, see Cell.Address. It is [space.Address].
type Address = space.Address

// Link is a value that points to a place: Space, Doc and Path. Reads follow it. Ref is the form
// with a type. [model.Link.Value] is the link as what stands in a document. It is [model.Link].
type Link = model.Link

// ErrorInfo is an error of a handler, computation or effect, as OnError is told it: Err, and where
// it came from (Space, Node or Stream and Event), whether it is tried again (Transient, Attempt),
// and the Stack of a panic. It is [space.ErrorInfo].
type ErrorInfo = space.ErrorInfo

// ConsoleInfo is a line that a handler, computation or effect has written with its Log method:
// Message and Args, and where it came from. It is [space.ConsoleInfo].
type ConsoleInfo = space.ConsoleInfo

// The kinds of nodes.
const (
	// Computation derives documents, and runs only if somebody observes them.
	Computation = space.Computation
	// Effect observes what it reads.
	Effect = space.Effect
)

// How an event ended.
const (
	// Handled: its handler has come back without an error, and what it did is in the log.
	Handled = model.Handled
	// Failed: its handler has returned an error, for the last time. Nothing of what it did is left.
	Failed = model.Failed
	// Refused: there is no handler for it, or it is none that could be handled.
	Refused = model.Refused
	// EventCancelled: it was taken back, with Client.Cancel, before it was handled.
	EventCancelled = model.Cancelled
	// Expired: the time had passed after which it was not to be handled any more (Outgoing.Expires).
	Expired = model.Expired
)

// Transient marks an error as one that may pass: the handler or node is tried again. An event
// has five attempts, with pauses of 25 ms, doubled up to 1 s, and fails then. A node runs again at
// once, nine times at the most. Any other error is final.
func Transient(err error) error { return space.Transient(err) }

// ValueOf is the JSON value of x, by the rules of encoding/json.
func ValueOf(x any) (Value, error) { return model.Of(x) }

// Program is the code of a space. Build it before any space runs it; mistakes in
// it (a second handler for a stream, two computations that write one place, an input that nobody
// fetches) are
// collected and reported by Err, and by whoever is asked to run it: Start, StartWorker,
// Attach, settletest.New.
type Program struct {
	p   *space.Program
	err error
	// reading is which inputs are read by which nodes.
	reading []reading
	jobs    []job
}

// job is a cron job and where its events go.
type job struct{ name, stream string }

// reading says that a node reads an input.
type reading struct{ node, input string }

// NewProgram makes an empty program.
func NewProgram(name string) *Program { return &Program{p: space.NewProgram(name)} }

// Version names the version of the program, in at most 256 bytes: it is in the log, for who asks
// what has made a commit, and it tells the program from others of its binary. Nodes that name no
// Version of their own run again in a space that was run under another one.
//
// It is needed where one binary has several programs for a space and something outside of it
// chooses, such as a flag: after a restart that has chosen otherwise, nothing else tells a worker
// that the code is another. Two binaries are told apart without it.
func (p *Program) Version(v string) *Program {
	if len(v) > maxVersion {
		return p.note(fmt.Errorf("program %s: the version has %d bytes; %d are the most", p.Name(), len(v), maxVersion))
	}
	p.p.Version = v
	return p
}

// maxVersion is that of package space.
const maxVersion = 256

// Handle registers the one handler of a stream: the dynamic form of Stream.Handle.
func (p *Program) Handle(stream string, h Handler, options ...HandlerOption) *Program {
	p.note(p.p.Handle(stream, h))
	for _, set := range options {
		p.note(set(p, stream))
	}
	return p
}

// HandlerOption says more about a handler.
type HandlerOption func(p *Program, stream string) error

// Within limits how long one call of the handler may take; negative for no limit. Without it,
// WorkerConfig.RunLimit says how long, 30 s by default. At the limit the handler's Context ends: if it
// returns then, the attempt has failed, whatever it returns, and is made again as after a Transient
// error. If it has not returned a second later, it is given up: its space goes on without it, the
// event has two more attempts (LostAttempts), and is a dead letter then. Go cannot stop code, so
// the goroutine of a handler that is given up stays until it returns, or uses its transaction,
// which ends it.
//
// What takes long belongs in an action: see Action.
func Within(d time.Duration) HandlerOption {
	return func(p *Program, stream string) error { return p.p.Within(stream, d) }
}

// Context is a context that ends when the handler is to return: when its limit is reached (see
// Within) or its space is taken away; and when it has returned. It is for code that the handler
// calls and that heeds one. In settletest, which has no limits, it never ends.
func Context(tx *Tx) context.Context {
	if host, has := tx.Host().(interface{ Context() context.Context }); has {
		return host.Context()
	}
	return context.Background()
}

// CatchUp says what becomes of the times of a cron job that nobody was there to see: FireOnce,
// Skip or All.
type CatchUp = space.CatchUp

// What becomes of the times that were missed.
const (
	// FireOnce: one event stands for all of them, and says how many others were missed.
	FireOnce = space.FireOnce
	// Skip: what is older than CronOptions.Grace is not handled.
	Skip = space.Skip
	// All: each is handled, in order, up to CronOptions.Limit in a row.
	All = space.All
)

// CronOptions say more about a cron job. The zero value is FireOnce.
type CronOptions struct {
	CatchUp CatchUp
	// Grace is how late Skip may be; default one minute.
	Grace time.Duration
	// Limit is how many missed times All handles in a row, default 1000. What is missed
	// beyond that is skipped, and told to OnError.
	Limit int
}

// Cron has an event sent to a stream of every space of the program, again and again, by a
// cron expression such as "0 9 * * MON-FRI" or "CRON_TZ=Europe/Berlin 30 2 * * *" (see package
// cron; without a zone it is UTC). The times of a space begin when it first comes to life.
// Each is one event whose payload is {"cron": name, "at": time, "missed": n, ...}.
//
// Another expression or stream takes effect in a space when it gets the program that has it, as
// does the removal of the job.
func (p *Program) Cron(name, expression, stream string, o CronOptions) *Program {
	s, err := cron.Parse(expression)
	if err != nil {
		return p.note(fmt.Errorf("cron %q: %w", name, err))
	}
	p.jobs = append(p.jobs, job{name, stream})
	return p.note(p.p.Cron(space.CronSpec{
		Name: name, Stream: stream, Schedule: s, Spec: expression,
		CatchUp: o.CatchUp, Grace: o.Grace, Limit: o.Limit,
	}))
}

// Compute registers a computation that derives document doc. It runs only while
// doc is observed: by a client that watches it, by a live computation that reads
// it (here or in another space), by an effect, or by an event whose handler reads it.
//
// It is the dynamic form of Derived.Compute: a value out. An absent value removes the document, as
// NoValue does.
func (p *Program) Compute(doc string, run func(v *View) (Value, error), options ...Option) *Program {
	n := NodeSpec{ID: doc, Kind: Computation, Output: doc}
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
	return p
}

// Node registers a node with all that can be said of one: side-writes, an envelope,
// declared reads, debounce and throttle, a change group, an output that is kept out of the
// log. Compute and Effect are the short forms.
func (p *Program) Node(n NodeSpec) *Program {
	p.note(p.p.Add(n))
	return p
}

// Effect registers an effect: demand for what it reads, and a function that runs
// when that has changed, while the space is awake: a space sleeps until it has an
// event or is observed. It sees speculative state and may run
// again for it; what must happen exactly once belongs into a handler.
func (p *Program) Effect(name string, run func(v *View) error, options ...Option) *Program {
	n := NodeSpec{ID: name, Kind: Effect}
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

// Err is the first mistake in the program, or nil. Ask when everything is registered: what is
// missing (nobody fetches an input that a node names with Using, nobody performs an action that
// has a Done function, nothing handles the stream of a cron job) is a mistake only then.
func (p *Program) Err() error {
	if p.err != nil {
		return p.err
	}
	return p.missing()
}

// reads notes that a node reads inputs.
func (p *Program) reads(node string, inputs []string) {
	for _, input := range inputs {
		p.reading = append(p.reading, reading{node, input})
	}
}

// missing is what a program does not have that it needs, or what stands in the way of something
// else: what can be said only when everything is registered.
func (p *Program) missing() error {
	actions := p.p.Actions()
	for _, a := range actions {
		if a.Host == nil && !a.Input {
			return fmt.Errorf("program %s: action %s has a Done function, and nobody performs it; call its Perform with this program, or its External if somebody else does", p.Name(), a.Name)
		}
	}
	for _, r := range p.reading {
		if !slices.ContainsFunc(actions, func(a *space.ActionSpec) bool { return a.Input && a.Name == r.input }) {
			return fmt.Errorf("program %s: node %q reads input %s, and nobody fetches it; call its Fetch with this program", p.Name(), r.node, r.input)
		}
	}
	for _, j := range p.jobs {
		if !p.p.Handles(j.stream) {
			return fmt.Errorf("program %s: cron %q: there is no handler for stream %s; call its Handle with this program", p.Name(), j.name, j.stream)
		}
	}
	if c := p.p.Clash(); c != nil {
		return fmt.Errorf("program %s: %w", p.Name(), c)
	}
	return nil
}

// Programs tells which program a space runs; nil for a space that runs none. Who starts a worker
// first asks for the program of "", which no space is called: if what is returned for it is
// broken, there is no start. A program that only some spaces run need not be returned for it;
// what is wrong with that one is told when such a space is to run.
type Programs func(space string) *Program

// Always runs one program in every space.
func Always(p *Program) Programs { return func(string) *Program { return p } }

// resolve turns programs into what a worker wants.
func (ps Programs) resolve() (func(string) (*space.Program, error), error) {
	if ps == nil {
		return nil, fmt.Errorf("settle: Config.Programs is nil; it tells which program a space runs")
	}
	if p := ps(""); p != nil && p.Err() != nil {
		return nil, p.Err()
	}
	return func(name string) (*space.Program, error) {
		p := ps(name)
		if p == nil {
			return nil, nil
		}
		return p.p, p.Err()
	}, nil
}
