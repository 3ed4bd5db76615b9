// Package inspect explains a space: why a node ran, why it does not run now and what needs it, what the event
// at the head of the lane waits for, what ran and what made it run, and whether the space comes to rest.
//
// A space writes how it stands into Tables when it is asked to, and a reader in any goroutine has a Snapshot of
// them, which is one consistent state and never changes (docs/adr/0040). What has happened the space enters in a
// Recorder, as far as that is switched on. No decision of a space depends on any of it (P10). The package does
// no I/O.
package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Node is a node as it stands. A snapshot shares its slices, so readers do not change them.
type Node struct {
	// ID names the node, Kind is "computation" or "effect", and Output the document that it writes by returning a
	// value, "" for none.
	ID, Kind, Output string
	// Ordinal is when it was first registered, and Height its place in the order of runs: above that of every node
	// that writes what this one reads, but for circles.
	Ordinal uint32
	Height  int32
	// Reads are the places that it has read, or is expected to read, and Writes those that it may write.
	Reads  []Read
	Writes []Write
	// Status is "never-ran", "clean" or "invalid".
	Status string
	Live   bool
	// Parent is the node that made this one, "" if it is one of the program's, Children those that it has
	// made, in order of registration.
	Parent   string
	Children []string
	Stats    NodeStats

	Standing Standing
	// Gate is "debounce", "throttle", "backoff" or "echo", and Until when it opens.
	Gate  string
	Until time.Duration
	// Waits is the document that is not here.
	Waits string
	// Halt is why the space runs nothing.
	Halt string
	// Causes are the addresses that have changed since the last run.
	Causes []string
	// Root says what makes the node live by itself, "" if nothing does.
	Root string
}

// The statuses of nodes, as Node has them.
const (
	NeverRan = "never-ran"
	Clean    = "clean"
	Invalid  = "invalid"
)

// NeededByEvent is the Root of a node that is live because of the event at the head of the lane; a snapshot names the
// event.
const NeededByEvent = "needed by an event"

// Read is a place that a node reads.
type Read struct {
	// Space is "" for the node's own.
	Space, Doc string
	Path       model.Path
	// Shallow reports that only the keys, the length or the scalar there matter, Declared that the node has not run yet
	// and is expected to read this.
	Shallow, Declared bool
}

// String returns the document, then a JSON pointer, and "#" if it is read shallowly; documents of other spaces as
// @space/document.
func (r *Read) String() string {
	name := r.Doc
	if r.Space != "" {
		name = "@" + r.Space + "/" + r.Doc
	}
	name += r.Path.String()
	if r.Shallow {
		name += "#"
	}
	return name
}

// Write is a place that a node may write.
type Write struct {
	Doc  string
	Path model.Path
	// Envelope reports that the place lies in a declared envelope: it orders, and never triggers or demands.
	Envelope bool
}

// meets reports whether a write there may concern a reader: one path is a prefix of the other, and a shallow
// reader is not concerned by what is written more than one level below it.
func (w *Write) meets(r *Read) bool {
	if len(w.Path) > 0 && r.Shallow && len(w.Path) > len(r.Path)+1 {
		return false
	}
	n := min(len(w.Path), len(r.Path))
	return slices.Equal(w.Path[:n], r.Path[:n])
}

// same reports whether two rows show the same.
func (n *Node) same(o *Node) bool {
	sameRead := func(a, b Read) bool {
		return a.Space == b.Space && a.Doc == b.Doc && a.Shallow == b.Shallow && a.Declared == b.Declared && slices.Equal(a.Path, b.Path)
	}
	sameWrite := func(a, b Write) bool {
		return a.Doc == b.Doc && a.Envelope == b.Envelope && slices.Equal(a.Path, b.Path)
	}
	return n.ID == o.ID && n.Kind == o.Kind && n.Output == o.Output && n.Ordinal == o.Ordinal && n.Height == o.Height &&
		n.Status == o.Status && n.Live == o.Live && n.Parent == o.Parent && n.Root == o.Root && n.Stats.same(&o.Stats) &&
		n.Standing == o.Standing && n.Gate == o.Gate && n.Until == o.Until && n.Waits == o.Waits && slices.Equal(n.Causes, o.Causes) &&
		slices.EqualFunc(n.Reads, o.Reads, sameRead) && slices.EqualFunc(n.Writes, o.Writes, sameWrite)
}

// Standing is why a node does not run now.
type Standing uint8

const (
	// UpToDate: nothing that it has read has changed.
	UpToDate Standing = iota
	// Running: its function is being called.
	Running
	// Runnable: it runs with the next pass.
	Runnable
	// Dormant: something has changed, or it never ran, and nothing needs it.
	Dormant
	// Gated: it may not run before Until, because of Gate.
	Gated
	// Waiting: it has read the document Waits of another space, which is not here.
	Waiting
	// Spent: it has run so often in this pass that it must wait for the next.
	Spent
	// Halted: the space runs nothing at all, see Halt.
	Halted
)

func (s Standing) String() string {
	return [...]string{"up to date", "running", "runnable", "dormant", "gated", "waiting", "spent", "halted"}[s]
}

// NodeStats are the statistics of one node.
type NodeStats struct {
	// Runs is how often it has run, Errors how many of these runs ended in an error, and
	// LastErr what the last one ended in, nil if it succeeded.
	Runs, Errors uint64
	LastErr      error
	// Measured is how many runs the host has measured; the rest is about those.
	Measured             uint64
	Total, Average, Last time.Duration
}

// same compares errors by their texts: that is what readers see, and errors of user code need not be comparable.
func (s *NodeStats) same(o *NodeStats) bool {
	return s.Runs == o.Runs && s.Errors == o.Errors && s.Measured == o.Measured && s.Total == o.Total && s.Average == o.Average &&
		s.Last == o.Last && (s.LastErr == nil) == (o.LastErr == nil) && (s.LastErr == nil || s.LastErr.Error() == o.LastErr.Error())
}

// Edge leads from one node to another: a place that one writes and the other reads, seen
// from either.
type Edge struct {
	// Node is the other one, Address the place at which they meet, as the reader reads
	// it: document, then a JSON pointer, and "#" if it is read shallowly.
	Node, Address string
	// Declared reports that the reader has not run yet, and is expected to read this.
	Declared bool
	// Envelope reports that the place lies in a declared envelope: such an edge orders and never
	// triggers or demands.
	Envelope bool
	// Live and Clean say how the other node stands, Ordinal when it was first registered.
	Live, Clean bool
	Ordinal     uint32
}

// ordered sorts edges by the registration of the nodes that they lead to, and then by addresses.
func ordered(edges []Edge) []Edge {
	slices.SortStableFunc(edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Address, b.Address))
	})
	return edges
}

// Split returns the edges that demand and trigger, and those of envelopes, each once.
func Split(edges []Edge) (all, envelope []Edge) {
	for _, e := range slices.Compact(slices.Clone(edges)) {
		if e.Envelope {
			envelope = append(envelope, e)
		} else {
			all = append(all, e)
		}
	}
	return all, envelope
}
