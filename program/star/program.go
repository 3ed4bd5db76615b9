package star

import (
	"fmt"
	"slices"
	"sync"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Program is a compiled program. It is immutable and safe for concurrent use: any number
// of spaces run it.
type Program struct {
	code    *code
	version string
	doc     string

	space   *space.Program
	nodes   []Node
	streams []string
	samples []Sample

	mu   sync.Mutex
	idle []*instance
}

// Node is a computation or effect of a program.
type Node struct {
	ID string
	// Kind is "computation" or "effect", or "rows" for what makes a node for each row.
	Kind string
	// Output is the document that it derives, "" for none.
	Output string
	// Fingerprint is the same as long as the node's code is: its function, what it calls,
	// and the constants, cells and options that it uses. Comments, layout and positions do
	// not count.
	Fingerprint string
}

// Name is the name of the program.
func (p *Program) Name() string { return p.code.name }

// Version is that of the source, see Version.
func (p *Program) Version() string { return p.version }

// Doc is the text at the top of the entry file.
func (p *Program) Doc() string { return p.doc }

// Space is the program as spaces run it.
func (p *Program) Space() *space.Program { return p.space }

// Nodes are the program's nodes, in the order in which they are registered.
func (p *Program) Nodes() []Node { return slices.Clone(p.nodes) }

// Streams are those that have a handler, in the order in which they are registered.
func (p *Program) Streams() []string { return slices.Clone(p.streams) }

// Samples are an event for each handler, in the order of the file, with payloads that their schemas
// let through. Whether a handler takes its event depends on what the space has: rehearse it.
func (p *Program) Samples() []Sample { return slices.Clone(p.samples) }

// Sample is an event to try a handler with. Payload is JSON, "" if the handler does not say what it
// takes.
type Sample struct{ Stream, Payload string }

// Empty reports whether the program registers nothing, as a file that was cut off does.
func (p *Program) Empty() bool { return len(p.nodes) == 0 && len(p.streams) == 0 }

// Stop ends the runs that are under way, within an instruction or builtin, and has those
// fail that begin later. It is for a process that stops: what is stopped has no effect,
// and is done again elsewhere.
func (p *Program) Stop(why string) { p.code.stop.stop(why) }

// maxIdle is how many instances of a program are kept while nothing runs.
const maxIdle = 16

// borrow finds an instance of the program that nothing runs on, or makes one.
func (p *Program) borrow() (*instance, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		inst := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return inst, nil
	}
	p.mu.Unlock()
	inst, _, err := instantiate(p.code, spaceBuiltins, nil)
	if err != nil {
		return nil, fmt.Errorf("program %s cannot be loaded again: %w", p.code.name, err)
	}
	return inst, nil
}

func (p *Program) giveBack(inst *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, inst)
		return
	}
	for _, c := range inst.calls {
		p.code.stop.forget(&c.Thread)
	}
}

// slotKey finds the machine that a space is being run with.
func machineOf(tx *space.Tx) *instance {
	inst, _ := (*tx.Slot()).(*instance)
	return inst
}

// call runs a registered function in a transaction.
func (p *Program) call(tx *space.Tx, i int, ev *model.Event, args func(inst *instance) (starlark.Tuple, error), use func(c *call, v starlark.Value) error) (err error) {
	inst := machineOf(tx)
	if inst == nil || inst.code != p.code {
		outer := inst
		if inst, err = p.borrow(); err != nil {
			return err
		}
		*tx.Slot() = inst
		defer func() {
			*tx.Slot() = nil
			if outer != nil {
				*tx.Slot() = outer
			}
			p.giveBack(inst)
		}()
	}
	d := inst.decls[i]
	c := inst.enter(tx, d, ev)
	defer inst.leave()
	a, err := args(inst)
	if err != nil {
		return err
	}
	v, err := starlark.Call(&c.Thread, d.fn, a, nil)
	if err == nil {
		err = use(c, v)
	}
	if err != nil {
		return c.failure(err)
	}
	return nil
}
