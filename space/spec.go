package space

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// NodeKind distinguishes computations and effects.
type NodeKind uint8

const (
	// Computation derives documents from others, and runs only on demand.
	Computation NodeKind = iota + 1
	// Effect observes. It is live by itself.
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

// Address is a path in a document, of this space if Space is "".
type Address struct {
	Space, Doc string
	Path       model.Path
}

func (a Address) String() string { return docKey{a.Space, a.Doc}.String() + a.Path.String() }

// docKey addresses a document; space is "" for this space.
type docKey struct{ space, doc string }

func (k docKey) String() string {
	if k.space == "" {
		return k.doc
	}
	return "@" + k.space + "/" + k.doc
}

// GateSpec are the time gates of a node; 0 means none.
type GateSpec struct {
	// Debounce delays the run until the node's reads have been unchanged for this long.
	Debounce time.Duration
	// MaxWait bounds the delay by a debounce while changes continue, counted from the first change since the
	// last run. 0 means ten times the debounce, negative no bound.
	MaxWait time.Duration `json:",omitzero"`
	// Throttle is the least time between two runs.
	Throttle time.Duration
	// NoAutoDebounce exempts a slow effect from the automatic debounce.
	NoAutoDebounce bool
}

// maxGate is the longest gate: a longer one is a mistake, and sums near the largest duration would overflow.
const maxGate = 365 * 24 * time.Hour

func checkGate(d time.Duration) error {
	if d < 0 || d > maxGate {
		return fmt.Errorf("a gate is between 0, for none, and %s; not %s", maxGate, d)
	}
	return nil
}

// checkDebounce validates the debounce and its bound.
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

// Status is the state of a node.
type Status uint8

const (
	// NeverRan: no completed run, so no read set.
	NeverRan Status = iota
	// Clean: none of its reads has changed since its last run began.
	Clean
	// Invalid: one of its reads has changed.
	Invalid
)

func (s Status) String() string {
	return [...]string{"never-ran", "clean", "invalid"}[s]
}

// declaration is the part of a node that is fixed during its lifetime: a NodeSpec in which the function is
// opaque to the graph, which stores it and cannot call it. All spaces of a program share it.
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

// shape returns a hash of the node's surfaces, for sameShape.
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
