package star

import (
	"fmt"
	"slices"
	"sync"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
)

// Program is a compiled program. It is immutable and safe for concurrent use: any number of spaces run
// it.
type Program struct {
	code    *code
	version string
	doc     string

	space   *space.Program
	nodes   []Node
	streams []string
	samples []Sample
	fields  map[string][]Field // of payloads, by stream

	documents []Document
	versions  map[string]docVersion  // of the documents whose versions are above 1, by name
	payloads  map[string]*shape.Type // by stream

	workflows *runs.Set

	mu   sync.Mutex
	idle []*instance
}

// Node is a computation or effect of a program.
type Node struct {
	ID string
	// Kind is "computation" or "effect", or "rows" for a node that makes one for each row.
	Kind string
	// Output is the document that it derives, "" for none.
	Output string
	// Fingerprint changes exactly when the node's code does: its function, what that calls, and the
	// constants, cells and options that it uses. Comments, layout and positions do not count.
	Fingerprint string
}

// Name returns the name of the program.
func (p *Program) Name() string { return p.code.name }

// Version returns the version of the source, see the function Version.
func (p *Program) Version() string { return p.version }

// Doc returns the text at the top of the entry file.
func (p *Program) Doc() string { return p.doc }

// Space returns the program for spaces to run.
func (p *Program) Space() *space.Program { return p.space }

// Nodes returns the nodes, in the order of registration.
func (p *Program) Nodes() []Node { return slices.Clone(p.nodes) }

// Streams returns the streams that have a handler, in the order of registration.
func (p *Program) Streams() []string { return slices.Clone(p.streams) }

// ClientStreams returns the streams that clients may send on, in the order of registration.
func (p *Program) ClientStreams() []string { return slices.DeleteFunc(p.Streams(), p.space.IsInternal) }

// Samples returns an event for each handler that clients may send to, in the order of the file, whose payload matches the
// handler's schema. The handler may still fail: that depends on the documents of the space.
func (p *Program) Samples() []Sample { return slices.Clone(p.samples) }

// Sample is an event to try a handler with. Payload is JSON, "" if the handler has no schema.
type Sample struct{ Stream, Payload string }

// Field is a field of a payload. Type is str, int, float, bool, any, dict, or the text of the schema of an array or an object.
type Field struct {
	Name, Type string
	Optional   bool
}

// Fields returns the fields of the payload of a stream, in the order of its schema; nil if the handler has no schema, or one that is not an object
// with fields.
func (p *Program) Fields(stream string) []Field { return slices.Clone(p.fields[stream]) }

func (p *Program) addFields(d *decl) {
	d.schema.Fields(func(name, holds string, optional bool) {
		if p.fields == nil {
			p.fields = map[string][]Field{}
		}
		p.fields[d.id] = append(p.fields[d.id], Field{name, holds, optional})
	})
}

// Empty reports whether the program registers nothing, as a truncated file does.
func (p *Program) Empty() bool { return len(p.nodes) == 0 && len(p.streams) == 0 }

// Stop ends the runs under way, within an instruction or builtin, and makes later ones fail. It is for
// a process that stops: a stopped run has no effect, and is repeated elsewhere.
func (p *Program) Stop(why string) { p.code.stop.stop(why) }

// maxIdle bounds the instances of a program that are kept while nothing runs.
const maxIdle = 16

// borrow returns an instance on which nothing runs, and makes one if there is none.
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

// running is the variable of a space for the instance that runs in it, nil if none does.
type running struct{ *instance }

// call runs a registered function in a transaction.
func (p *Program) call(tx *space.Tx, i int, ev *model.Event, args func(inst *instance) (starlark.Tuple, error), use func(c *call, v starlark.Value) error) (err error) {
	present := space.Local[running](tx)
	inst := present.instance
	if inst == nil || inst.code != p.code {
		outer := inst
		if inst, err = p.borrow(); err != nil {
			return err
		}
		present.instance = inst
		defer func() {
			present.instance = outer
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
