package settle

import (
	"fmt"
	"time"
)

// Option says more about a computation or an effect.
type Option func(*nodeOptions) error

// nodeOptions is a node as its options make it, and the inputs that it reads.
type nodeOptions struct {
	NodeSpec
	inputs []string
}

// Debounce lets the node run when nothing that it reads has changed for so long, and at the
// latest after ten times as long (MaxWait). The first run of a computation that somebody begins to
// look at does not wait.
func Debounce(d time.Duration) Option {
	return func(n *nodeOptions) error { n.Gate.Debounce = d; return nil }
}

// MaxWait bounds how long Debounce holds the node when changes go on: it runs at the latest so long
// after the first change that it has not run for. Without it that is ten times the debounce; negative
// for no bound.
func MaxWait(d time.Duration) Option {
	return func(n *nodeOptions) error { n.Gate.MaxWait = d; return nil }
}

// Throttle is the least time between two runs.
func Throttle(d time.Duration) Option {
	return func(n *nodeOptions) error { n.Gate.Throttle = d; return nil }
}

// NoAutoDebounce exempts an effect whose runs take long from being debounced for it.
func NoAutoDebounce() Option {
	return func(n *nodeOptions) error { n.Gate.NoAutoDebounce = true; return nil }
}

// ChangeGroup makes the node deaf to changes of transactions of the same group, see
// [space.Tx.Group]: who writes and watches the same document need not hear what it has said
// itself.
func ChangeGroup(name string) Option {
	return func(n *nodeOptions) error { n.Group = name; return nil }
}

// Volatile keeps what the computation derives in memory: it is not in the log, so other
// spaces and clients of other processes do not have it, and a restart computes it again. For
// intermediate values that change often.
func Volatile() Option {
	return func(n *nodeOptions) error {
		if n.Output == "" {
			return fmt.Errorf("only the document of Compute can be volatile")
		}
		n.Volatile = true
		return nil
	}
}

// Version names the implementation of a node. A worker that is started again with another
// executable runs every node again, since it cannot know what has changed in it; a node that names
// its version runs again if that has changed, and otherwise only if what it has read has. See
// Program.Version for all nodes at once.
func Version(v string) Option {
	return func(n *nodeOptions) error { n.Version = v; return nil }
}

// Expects names places that the node will read. Its first run then comes after what writes
// there; without it the node finds out by reading, and may run once more.
func Expects(places ...Place) Option {
	return func(n *nodeOptions) error {
		n.DeclaredReads = append(n.DeclaredReads, addresses(places)...)
		return nil
	}
}

// applied is a node with its options.
func applied(spec NodeSpec, options []Option) (nodeOptions, error) {
	n := nodeOptions{NodeSpec: spec}
	for _, o := range options {
		if err := o(&n); err != nil {
			return n, err
		}
	}
	return n, nil
}

// node registers a node with its options.
func (p *Program) node(spec NodeSpec, options []Option) {
	n, err := applied(spec, options)
	if err != nil {
		p.note(fmt.Errorf("program %s: node %q: %w", p.Name(), n.ID, err))
		return
	}
	p.note(p.p.Add(n.NodeSpec))
	p.reads(n.ID, n.inputs)
}

// Name is the name of the program.
func (p *Program) Name() string { return p.p.Name }
