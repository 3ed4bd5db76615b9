package star

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/space"
)

// Program is a compiled program. It is immutable and safe for concurrent use: any number
// of spaces run it.
type Program struct {
	name    string
	entry   string
	version string
	doc     string
	limits  Limits
	files   map[string]*file
	tests   bool // it is a file of tests

	space   *space.Program
	nodes   []Node
	streams []string
	samples []Sample

	stopped atomic.Pointer[string]
	mu      sync.Mutex
	idle    []*machine
	threads []*starlark.Thread
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
func (p *Program) Name() string { return p.name }

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

// Empty reports whether the program registers nothing, as a file that was cut off does.
func (p *Program) Empty() bool { return len(p.nodes) == 0 && len(p.streams) == 0 }

// Stop ends the runs that are under way, within an instruction or builtin, and has those
// fail that begin later. It is for a process that stops: what is stopped has no effect,
// and is done again elsewhere.
func (p *Program) Stop(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := "the run was stopped: " + why
	p.stopped.Store(&text)
	for _, t := range p.threads {
		t.Cancel(text)
	}
}

// watch remembers a thread for Stop.
func (p *Program) watch(t *starlark.Thread) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.threads = append(p.threads, t)
	if why := p.stopped.Load(); why != nil {
		t.Cancel(*why)
	}
}

// maxIdle is how many instances of a program are kept while nothing runs.
const maxIdle = 16

// borrow finds an instance of the program that nothing runs on, or makes one.
func (p *Program) borrow() (*machine, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		m := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return m, nil
	}
	p.mu.Unlock()
	m, err := p.instantiate()
	if err != nil {
		return nil, fmt.Errorf("program %s cannot be loaded again: %w", p.name, err)
	}
	return m, nil
}

func (p *Program) giveBack(m *machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, m)
		return
	}
	for _, l := range m.levels {
		if i := slices.Index(p.threads, &l.thread); i >= 0 {
			p.threads = slices.Delete(p.threads, i, i+1)
		}
	}
}
