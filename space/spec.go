package space

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// NodeKind tells computations from effects (seed 001 section 4.2).
type NodeKind uint8

const (
	// Computation derives documents from others and runs only under demand.
	Computation NodeKind = iota + 1
	// Effect observes. It is demand by itself.
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

// Address is a place: a path in a document, of this space if Space is "".
type Address struct {
	Space, Doc string
	Path       model.Path
}

func (a Address) String() string { return docKey{a.Space, a.Doc}.String() + a.Path.String() }

// docKey addresses a document; space is "" for the own space.
type docKey struct{ space, doc string }

func (k docKey) String() string {
	if k.space == "" {
		return k.doc
	}
	return "@" + k.space + "/" + k.doc
}

// GateSpec are the time gates of a node (seed 001 section 8.2); 0 for none.
type GateSpec struct {
	// Debounce lets the node run when nothing that it reads has changed for so long.
	Debounce time.Duration
	// MaxWait bounds how long the debounce holds the node when changes go on: from the first
	// change on that it has not run for. 0 is ten times the debounce, negative for no bound.
	MaxWait time.Duration `json:",omitzero"`
	// Throttle is the least time between two runs.
	Throttle time.Duration
	// NoAutoDebounce exempts an effect that is slow from being debounced for it.
	NoAutoDebounce bool
}

// maxGate is the longest gate: a mistake beyond it, and near the largest duration a sum
// would wrap.
const maxGate = 365 * 24 * time.Hour

func checkGate(d time.Duration) error {
	if d < 0 || d > maxGate {
		return fmt.Errorf("a gate is between 0, for none, and %s; not %s", maxGate, d)
	}
	return nil
}

// checkDebounce refuses a debounce that cannot be, and a bound of it that makes no sense.
func (g *GateSpec) checkDebounce() error {
	if err := checkGate(g.Debounce); err != nil {
		return fmt.Errorf("debounce: %w", err)
	}
	switch {
	case g.MaxWait > maxGate:
		return fmt.Errorf("longest wait: %w", checkGate(g.MaxWait))
	case g.MaxWait != 0 && g.Debounce == 0:
		return fmt.Errorf("there is a longest wait of %s, and no debounce that it bounds; set that, too", g.MaxWait)
	case g.MaxWait > 0 && g.MaxWait < g.Debounce:
		return fmt.Errorf("the longest wait, %s, is shorter than the debounce, %s, which would never count", g.MaxWait, g.Debounce)
	}
	return nil
}

func sameAddresses(a, b []Address) bool {
	return slices.EqualFunc(a, b, func(x, y Address) bool { return x.String() == y.String() })
}

// Status is where a node stands (seed 001 section 4.1).
type Status uint8

const (
	// NeverRan: no completed run, so no read set.
	NeverRan Status = iota
	// Clean: nothing it read has changed since its last run began.
	Clean
	// Invalid: something it read has.
	Invalid
)

func (s Status) String() string {
	return [...]string{"never-ran", "clean", "invalid"}[s]
}

// declaration is what the graph knows of a node that is fixed while it is there: a NodeSpec, but for its function,
// which the graph keeps and cannot call. All spaces of a program share it.
type declaration struct {
	ID            string
	Kind          NodeKind
	Volatile      bool
	Output        string
	Writes        []Address
	Envelope      []Address
	DeclaredReads []Address
	Gate          GateSpec
	Group         string
	Version       string
	code          code
}

// code is the function of a node; see nodeCode.
type code interface{ isCode() }

// shape tells the surfaces of a node apart, as sameShape does.
func (n *declaration) shape() uint64 {
	switch {
	case len(n.Writes)+len(n.Envelope) > 0 || n.Volatile:
	case n.Kind == Computation && n.Output == n.ID:
		return 0
	case n.Kind == Effect:
		return 1
	}
	h := fnv.New64a()
	add := func(kind, text string) { _, _ = h.Write([]byte(kind + text + "\n")) }
	add(n.Kind.String()+" ", n.Output)
	if n.Volatile {
		add("volatile", "")
	}
	for _, a := range n.Writes {
		add("writes ", a.String())
	}
	for _, a := range n.Envelope {
		add("envelope ", a.String())
	}
	return h.Sum64()
}

func sameShape(a, b *declaration) bool {
	return a.Kind == b.Kind && a.Output == b.Output && a.Volatile == b.Volatile &&
		sameAddresses(a.Writes, b.Writes) && sameAddresses(a.Envelope, b.Envelope)
}
