package settle

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/space"
)

// Option configures a computation or an effect.
type Option func(*nodeOptions) error

// nodeOptions is a node with its options applied, and the inputs that it reads.
type nodeOptions struct {
	space.NodeSpec
	inputs []string
}

// Debounce delays a run until nothing that the node reads has changed for d, and at most for ten
// times d (see MaxWait). The first run of a computation that becomes observed is not delayed.
func Debounce(d time.Duration) Option {
	return func(n *nodeOptions) error { n.Gate.Debounce = d; return nil }
}

// MaxWait bounds the delay of Debounce under continuous changes, counted from the first change that
// the node has not run for. The default is ten times the debounce; a negative duration means no
// bound.
func MaxWait(d time.Duration) Option {
	return func(n *nodeOptions) error { n.Gate.MaxWait = d; return nil }
}

// Throttle sets the minimum time between two runs.
func Throttle(d time.Duration) Option {
	return func(n *nodeOptions) error { n.Gate.Throttle = d; return nil }
}

// NoAutoDebounce exempts an effect from the debounce that is otherwise imposed on slow effects.
func NoAutoDebounce() Option {
	return func(n *nodeOptions) error { n.Gate.NoAutoDebounce = true; return nil }
}

// ChangeGroup makes the node ignore changes by transactions of the same group (see
// [space.Tx.Group]), so that code which both writes and observes a document does not react to its
// own writes.
func ChangeGroup(name string) Option {
	return func(n *nodeOptions) error { n.Group = name; return nil }
}

// Volatile keeps the derived document in memory only: it is not in the log, so other spaces and
// clients of other processes cannot read it, and it is computed again after a restart. It suits
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

// Version sets the version of a node's implementation. A worker that restarts with a different
// executable reruns every node, since it cannot detect what changed in it; a node with a version is
// rerun if its version changed, and otherwise only if what it read changed. Program.Version covers
// all nodes at once.
func Version(v string) Option {
	return func(n *nodeOptions) error { n.Version = v; return nil }
}

// Expects declares locations that the node will read, so that its first run comes after the nodes
// that write there. Without it the dependency is discovered by reading, which may cost one more
// run.
func Expects(places ...Place) Option {
	return func(n *nodeOptions) error {
		n.DeclaredReads = append(n.DeclaredReads, addresses(places)...)
		return nil
	}
}

// applied returns a node with its options applied.
func applied(spec space.NodeSpec, options []Option) (nodeOptions, error) {
	n := nodeOptions{NodeSpec: spec}
	for _, o := range options {
		if err := o(&n); err != nil {
			return n, err
		}
	}
	return n, nil
}

// node registers a node with its options.
func (p *Program) node(spec space.NodeSpec, options []Option) {
	n, err := applied(spec, options)
	if err != nil {
		p.note(fmt.Errorf("program %s: node %q: %w", p.Name(), n.ID, err))
		return
	}
	p.note(p.p.Add(n.NodeSpec))
	p.reads(n.ID, n.inputs)
}

// Name returns the name of the program.
func (p *Program) Name() string { return p.p.Name }
