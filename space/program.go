package space

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// Program is the code of a space: its handlers, computations and effects. A
// program is immutable once a space runs it; many spaces share one.
type Program struct {
	// Name names the program in logs and traces.
	Name string
	// Version distinguishes versions of the program for readers of the log: the first commit of each
	// incarnation of a space that runs the program contains it. Optional; at most 256 bytes.
	Version string
	// MadeByReads has the spaces that a read or a watch creates, as an event does, by their names and by patterns: their jobs run from then on, and their
	// inputs are fetched. Every other one that does not exist is read from nothing.
	MadeByReads []string

	handlers map[string]Handler
	nodes    []*declaration
	ids      map[string]bool
	outputs  map[string]string // primary output -> node
	crons    map[string]*CronSpec
	actions  map[string]*ActionSpec
	tasks    taskLists
	limits   map[string]time.Duration
	payloads map[string]func(model.Value) error
	internal map[string]bool                       // streams
	notices  []func(tx *Tx, ev *model.Event) error // see failure notices before the handler
}

// IsMadeByReads reports whether a read or a watch creates a space.
func (p *Program) IsMadeByReads(space string) bool {
	return slices.ContainsFunc(p.MadeByReads, func(pattern string) bool { return model.MatchesPattern(pattern, space) })
}

// Handler changes documents in answer to an event. It runs in a transaction: all of its reads and writes go
// through tx, and nothing it wrote is kept if it returns an error or panics. It may run more than once for
// one event, but exactly one run takes effect; so it must have no other effects or inputs (no I/O, no clock,
// no random numbers).
//
// The value it returns is the receipt's result, which the sender can wait for. An error marked by Transient
// is retried, see Config.EventRetries; any other makes the event fail at once.
type Handler func(tx *Tx, ev *model.Event) (model.Value, error)

// NodeSpec describes a node. All of it is fixed for the node's lifetime; in particular, the places that a
// node can write are never learned from its runs (P4).
type NodeSpec struct {
	// ID names the node within its space.
	ID   string
	Kind NodeKind
	// Output is the document that a computation writes by returning a value: the first of the three tiers of
	// its write surface. No other node may write it. "" for effects, and for computations that only write
	// through tx.
	Output string
	// Writes are further places that the node may write through tx, known when it is registered: the second
	// tier. Demand for them is demand for the node. Others may write there too.
	Writes []Address
	// Envelope makes the node a materializer, the third tier: it writes somewhere in these places, and only
	// its run shows where. Since its readers cannot be known in advance, it is always live; but it runs only
	// when nothing else has to, unless an event or a node that is about to run reads inside the envelope. The
	// envelope orders and never triggers. A node with an envelope has no Writes.
	Envelope []Address
	// DeclaredReads are places that the node is expected to read. They order its first run behind their
	// writers, and trigger nothing.
	DeclaredReads []Address
	// Gate delays the runs of the node.
	Gate GateSpec
	// Group is the change group of an observer: changes by transactions of the same group do not run it (see
	// Tx.Group).
	Group string
	// Volatile keeps the output in memory only: it is not written to the log, so other spaces, other runtimes
	// and the checkpoint do not have it, and after a restart it is computed again when something needs it.
	// Use it for intermediate values that change often.
	Volatile bool
	// Version distinguishes implementations. A node that is registered again, or resumed, with another
	// version runs anew.
	Version string
	// Run derives the output from what it reads through tx. It must be idempotent: running it again over the
	// same documents gives the same value and the same writes. The result replaces the output document; an
	// absent value deletes it. The result of a node without an output is ignored. Run may be called during
	// another node's Run, by a Get that needs this node.
	Run func(tx *Tx) (model.Value, error)
}

// NewProgram returns an empty program.
func NewProgram(name string) *Program {
	return &Program{Name: name, handlers: map[string]Handler{}, ids: map[string]bool{}, outputs: map[string]string{}}
}

// Handle registers the handler of a stream. A second handler for the same stream is an error, because two
// handlers would race for one receipt.
func (p *Program) Handle(stream string, h Handler) error {
	if err := model.CheckName("stream", stream); err != nil {
		return fmt.Errorf("program %s: %w", p.Name, err)
	}
	if h == nil {
		return fmt.Errorf("program %s: stream %s: the handler is nil", p.Name, stream)
	}
	if p.handlers[stream] != nil {
		return fmt.Errorf("program %s: stream %s has a handler already; a stream has exactly one", p.Name, stream)
	}
	p.handlers[stream] = h
	return nil
}

// Handles reports whether the stream has a handler.
func (p *Program) Handles(stream string) bool { return p.handler(stream) != nil }

// Payload sets how the payloads of a stream are checked before an event is stored, where that is possible. The
// handler checks them in any case: most events are stored by clients that do not know the program.
func (p *Program) Payload(stream string, check func(model.Value) error) {
	if p.payloads == nil {
		p.payloads = map[string]func(model.Value) error{}
	}
	p.payloads[stream] = check
}

// Internal makes a stream internal: an event that a client has sent on it is rejected, whatever the rules about access allow
// (docs/adr/0091). What spaces, timers, jobs and workers send is handled.
func (p *Program) Internal(stream string) error {
	if p.handlers[stream] == nil {
		return fmt.Errorf("program %s: stream %s has no handler to keep clients from; register it first", p.Name, stream)
	}
	if p.internal == nil {
		p.internal = map[string]bool{}
	}
	p.internal[stream] = true
	return nil
}

// IsInternal reports whether clients may not send on a stream.
func (p *Program) IsInternal(stream string) bool { return p.internal[stream] }

// CheckPayload returns why the handler of a stream would refuse a payload, nil if that is not known before it is called.
func (p *Program) CheckPayload(stream string, v model.Value) error {
	check := p.payloads[stream]
	if check == nil {
		return nil
	}
	return check(v)
}

// handler returns the handler of a stream, nil if there is none. If the program does not handle failure
// notices, they succeed without effect.
func (p *Program) handler(stream string) Handler {
	h := p.handlers[stream]
	if stream != model.Undelivered {
		return h
	}
	if h == nil {
		h = ignore
	}
	if len(p.notices) == 0 {
		return h
	}
	return func(tx *Tx, ev *model.Event) (model.Value, error) {
		for _, see := range p.notices {
			if err := see(tx, ev); err != nil {
				return model.Value{}, err
			}
		}
		return h(tx, ev)
	}
}

// Notice adds a function that sees each failure notice before the handler of the program does, if it has one, and in its
// transaction: a library that sends events learns so that one of them was not delivered.
func (p *Program) Notice(see func(tx *Tx, ev *model.Event) error) { p.notices = append(p.notices, see) }

// unhandled returns the message for a stream without a handler, naming some streams that have one.
func (p *Program) unhandled(stream string) string {
	text := fmt.Sprintf("program %s has no handler for stream %s", p.Name, stream)
	const most = 8
	switch there := slices.Sorted(maps.Keys(p.handlers)); {
	case len(there) > most:
		text += fmt.Sprintf("; it has: %s and %d more", strings.Join(there[:most], ", "), len(there)-most)
	case len(there) > 0:
		text += "; it has: " + strings.Join(there, ", ")
	}
	return text + model.DidYouMean(stream, slices.Sorted(maps.Keys(p.handlers)))
}

func ignore(*Tx, *model.Event) (model.Value, error) { return model.Value{}, nil }

// Add adds a node to every space of the program.
func (p *Program) Add(n NodeSpec) error {
	err := n.check()
	if err == nil {
		err = p.checkUnique(&n)
	}
	if err != nil {
		return fmt.Errorf("program %s: node %q: %w", p.Name, n.ID, err)
	}
	p.nodes = append(p.nodes, n.declare())
	p.ids[n.ID] = true
	if n.Output != "" {
		p.outputs[n.Output] = n.ID
	}
	return nil
}

func (p *Program) checkUnique(n *NodeSpec) error {
	if p.ids[n.ID] {
		return fmt.Errorf("this id is taken")
	}
	if o := p.outputs[n.Output]; o != "" {
		return fmt.Errorf("document %s is written by node %s already", n.Output, o)
	}
	if model.IsTaskDoc(n.Output) {
		return fmt.Errorf("document %s has a name that is reserved for tasks; choose another one", n.Output)
	}
	if a := p.tasks.owner[n.Output]; a != "" {
		return fmt.Errorf("document %s holds the tasks of action %s; derive another one", n.Output, a)
	}
	return nil
}

// check validates a node by itself.
func (n *NodeSpec) check() error {
	if err := model.CheckName("node", n.ID); err != nil {
		return err
	}
	switch {
	case n.Run == nil:
		return fmt.Errorf("the function is nil")
	case n.Kind != Computation && n.Kind != Effect:
		return fmt.Errorf("the kind is %v; use Computation or Effect", n.Kind)
	case n.Kind == Effect && (n.Output != "" || len(n.Envelope) > 0 || n.Volatile):
		return fmt.Errorf("an effect has no output and no envelope; it may have Writes")
	case len(n.Envelope) > 0 && len(n.Writes) > 0:
		return fmt.Errorf("a node with an Envelope has no Writes; it writes inside the envelope")
	}
	if err := n.Gate.checkDebounce(); err != nil {
		return err
	}
	if err := checkGate(n.Gate.Throttle); err != nil {
		return fmt.Errorf("throttle: %w", err)
	}
	return n.checkPlaces()
}

func (n *NodeSpec) checkPlaces() error {
	if n.Output != "" || n.Kind == Computation && len(n.Writes)+len(n.Envelope) == 0 {
		if err := model.CheckName("output document", n.Output); err != nil {
			return err
		}
	}
	for _, a := range slices.Concat(n.Writes, n.Envelope) {
		if err := model.CheckName("document", a.Doc); err != nil {
			return err
		}
		if a.Space != "" {
			return fmt.Errorf("writes %s: a space is changed by itself only; send it an event", a)
		}
		if a.Doc == n.Output && n.Output != "" {
			return fmt.Errorf("document %s is the output; it is written by returning a value", a.Doc)
		}
	}
	for _, a := range n.DeclaredReads {
		if err := model.CheckName("document", a.Doc); err != nil {
			return err
		}
		if a.Space == "" {
			continue
		}
		if err := model.CheckName("space", a.Space); err != nil {
			return err // otherwise half of the node would be registered when this fails
		}
	}
	return nil
}

// check validates the texts that commits contain.
func (p *Program) check() error {
	if len(p.Version) > maxVersion {
		return fmt.Errorf("program %s: the version is %d bytes; at most %d are allowed", p.Name, len(p.Version), maxVersion)
	}
	return nil
}

// maxVersion bounds Program.Version, which goes into commits.
const maxVersion = 256

// Cron adds a job to every space of the program. Its times begin when the space is first loaded. The handler
// of its stream is called with the payload
//
//	{"cron": NAME, "at": TIME, "missed": N, ...}
//
// TIME is the scheduled time in RFC 3339, and N the number of missed times before it (with FireOnce: after
// it).
func (p *Program) Cron(c CronSpec) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("program %s: cron %q: %w", p.Name, c.Name, err)
	}
	if p.crons[c.Name] != nil {
		return fmt.Errorf("program %s: cron %q: the name is taken", p.Name, c.Name)
	}
	if p.crons == nil {
		p.crons = map[string]*CronSpec{}
	}
	p.crons[c.Name] = &c
	return nil
}

// Within limits how long the handler of a stream may take; a negative limit means none. Without Within, the
// host sets the limit.
func (p *Program) Within(stream string, d time.Duration) error {
	if d == 0 {
		return fmt.Errorf("program %s: stream %s: a limit of 0 leaves no time at all; a negative one means no limit", p.Name, stream)
	}
	if p.handlers[stream] == nil {
		return fmt.Errorf("program %s: stream %s has no handler to limit; register it first", p.Name, stream)
	}
	if p.limits == nil {
		p.limits = map[string]time.Duration{}
	}
	p.limits[stream] = d
	return nil
}

// HandlerLimit returns the limit of a stream's handler: negative for none, 0 if the program does not set one.
func (p *Program) HandlerLimit(stream string) time.Duration { return p.limits[stream] }

// declare returns the node's declaration, which shares no slices with n.
func (n *NodeSpec) declare() *declaration {
	return &declaration{
		ID: n.ID, Kind: n.Kind, Output: n.Output, Writes: slices.Clone(n.Writes), Envelope: slices.Clone(n.Envelope),
		DeclaredReads: slices.Clone(n.DeclaredReads), Gate: n.Gate, Group: n.Group, Volatile: n.Volatile, Version: n.Version,
		code: nodeCode(n.Run),
	}
}

// Action registers an action or an input, together with the handler of its stream. Only that handler writes
// its documents.
func (p *Program) Action(a *ActionSpec) error {
	if err := p.addAction(a); err != nil {
		return fmt.Errorf("program %s: action %q: %w", p.Name, a.Name, err)
	}
	return nil
}

func (p *Program) addAction(a *ActionSpec) error {
	if err := model.CheckSendStream(a.Name); err != nil {
		return err
	}
	if err := model.CheckName("document", a.Pending()); err != nil {
		return err
	}
	if a.Keep < 0 {
		return fmt.Errorf("it keeps tasks for %s; that must not be negative, and 0 is the default", a.Keep)
	}
	if a.Remote != nil {
		if err := a.Remote.Check(); err != nil {
			return err
		}
	}
	if err := a.checkDeadline(); err != nil {
		return err
	}
	for _, doc := range a.list().docs() {
		if node := p.outputs[doc]; node != "" {
			return fmt.Errorf("document %s is written by node %s; the tasks need a document of their own", doc, node)
		}
		if owner := p.tasks.owner[doc]; owner != "" {
			return fmt.Errorf("document %s holds the tasks of action %s", doc, owner)
		}
	}
	list := a.list()
	conclude := func(tx *Tx, ev *model.Event) (model.Value, error) { return list.conclude(tx.open(), ev) }
	if err := p.Handle(a.Name, conclude); err != nil {
		return err
	}
	if a.Performer != nil && !a.External && !a.Input { // workers alone know how its tasks end; a value of an input may come from any client
		if err := p.Internal(a.Name); err != nil {
			return err
		}
	}
	if p.actions == nil {
		p.actions = map[string]*ActionSpec{}
		p.tasks = taskLists{byName: map[string]*taskList{}, owner: map[string]string{}}
	}
	p.actions[a.Name], p.tasks.byName[a.Name] = a, list
	for _, doc := range a.list().docs() {
		p.tasks.owner[doc] = a.Name
	}
	return nil
}

// Actions returns the actions and inputs of the program, by name.
func (p *Program) Actions() []*ActionSpec {
	out := make([]*ActionSpec, 0, len(p.actions))
	for _, name := range slices.Sorted(maps.Keys(p.actions)) {
		out = append(out, p.actions[name])
	}
	return out
}

// HoldsTasks reports whether a document holds tasks that may be pending.
func (p *Program) HoldsTasks(doc string) bool {
	return p.tasks.owner[doc] != "" || model.IsTaskDoc(doc)
}
