package space

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// Program is the code of a space: its handlers, computations and effects. A
// program is immutable once a space runs it; many spaces share one.
type Program struct {
	// Name says which program this is, in logs and traces.
	Name string

	handlers map[string]Handler
	nodes    []NodeSpec
}

// Handler changes documents in answer to an event. It runs in a transaction: all
// of its reads and writes go through tx, and nothing it wrote is kept if it
// returns an error or panics. It may be run more than once for one event, of
// which exactly one run takes effect; so it must not do anything else (no I/O,
// no clock, no random numbers).
//
// The value it returns is the receipt's result, which the sender can wait for.
type Handler func(tx *Tx, ev *model.Event) (model.Value, error)

// NodeKind tells computations from effects (seed 001 section 4.2).
type NodeKind uint8

const (
	// Computation derives one document from others and runs only under demand.
	Computation NodeKind = iota + 1
	// Effect observes. It is demand by itself, and writes nothing.
	Effect
)

func (k NodeKind) String() string {
	switch k {
	case Computation:
		return "computation"
	case Effect:
		return "effect"
	default:
		return "unknown"
	}
}

// NodeSpec describes a node. All of it is fixed for the node's lifetime; in
// particular what a node can write is never learned from its runs (P4).
type NodeSpec struct {
	// ID names the node within its space.
	ID   string
	Kind NodeKind
	// Output is the document that a computation writes; "" for effects.
	Output string
	// Run derives the output from what it reads through tx. It must be idempotent:
	// running it again over the same documents gives the same value. The result
	// replaces the output document; an absent value deletes it. The result of an
	// effect is ignored. It may be called while another node's Run is in the middle
	// of a Get, which pulled this one.
	Run func(tx *Tx) (model.Value, error)
}

// NewProgram makes an empty program.
func NewProgram(name string) *Program {
	return &Program{Name: name, handlers: map[string]Handler{}}
}

// Handle registers the handler of a stream. There is exactly one per stream
// (seed 001, decision 12); a second one is an error, because two handlers would
// race for one receipt.
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

// Add registers a node that every space of the program has.
func (p *Program) Add(n NodeSpec) error {
	if err := p.checkNode(&n); err != nil {
		return fmt.Errorf("program %s: node %q: %w", p.Name, n.ID, err)
	}
	p.nodes = append(p.nodes, n)
	return nil
}

func (p *Program) checkNode(n *NodeSpec) error {
	if err := model.CheckName("node", n.ID); err != nil {
		return err
	}
	if n.Run == nil {
		return fmt.Errorf("the function is nil")
	}
	switch n.Kind {
	case Computation:
		if err := model.CheckName("output document", n.Output); err != nil {
			return err
		}
	case Effect:
		if n.Output != "" {
			return fmt.Errorf("an effect writes nothing, but it names the output %q", n.Output)
		}
	default:
		return fmt.Errorf("the kind is %v; use Computation or Effect", n.Kind)
	}
	return p.checkUnique(n)
}

func (p *Program) checkUnique(n *NodeSpec) error {
	for i := range p.nodes {
		o := &p.nodes[i]
		if o.ID == n.ID {
			return fmt.Errorf("this id is taken")
		}
		if n.Output != "" && o.Output == n.Output {
			return fmt.Errorf("document %s is written by node %s already", n.Output, o.ID)
		}
	}
	return nil
}
