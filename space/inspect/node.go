// Package inspect explains a space: why a node ran, why it does not run now and what needs it, what the event
// at the head of the lane waits for, what ran and what triggered it, and whether the space converges.
//
// A space writes its state into Tables on request, and readers in any goroutine get a Snapshot of them, which
// is one consistent state and never changes (docs/adr/0040). The space also enters what happens in a
// Recorder, as far as recording is on. No decision of a space depends on any of it (P10). The package does no
// I/O.
package inspect

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// Node is the state of a node. A snapshot shares its slices, so readers must not change them.
type Node struct {
	// ID names the node, Kind is "computation" or "effect", and Output is the document that it writes by
	// returning a value, "" for none.
	ID, Kind, Output string
	// Ordinal is its rank by first registration, and Height its position in the order of runs: above that of
	// every node that writes what this one reads, except in circles.
	Ordinal uint32
	Height  int32
	// Reads are the places that it has read, or is expected to read, and Writes those that it may write.
	Reads  []Read
	Writes []Write
	// Status is "never-ran", "clean" or "invalid".
	Status string
	Live   bool
	// Parent is the node that made this one, "" for a node of the program. Children are the nodes that it has
	// made, in order of registration.
	Parent   string
	Children []string
	Stats    NodeStats

	RunState RunState
	// Gate is "debounce", "throttle", "backoff" or "echo", and Until the time when it opens.
	Gate  string
	Until time.Duration
	// Waits is the document that has not arrived.
	Waits string
	// Halt is why the space runs nothing.
	Halt string
	// Causes are the addresses that have changed since the last run.
	Causes []string
	// Root is what makes the node live regardless of readers, "" if nothing does.
	Root string
}

// observer begins the ids of nodes that stand for the observers of a document.
const observer = "observe:"

// ObserverOf returns the id of the node that stands for the observers of a document.
func ObserverOf(doc string) string { return observer + doc }

// Observed is the inverse of ObserverOf, and returns false for any other node.
func Observed(id string) (doc string, is bool) { return strings.CutPrefix(id, observer) }

// Values of Node.Status.
const (
	NeverRan = "never-ran"
	Clean    = "clean"
	Invalid  = "invalid"
)

// NeededByEvent is the Root of a node that is live because of the event at the head of the lane; a snapshot
// adds the event's name.
const NeededByEvent = "needed by an event"

// Read is a place that a node reads.
type Read struct {
	// Space is "" for the node's own space.
	Space, Doc string
	Path       model.Path
	// Shallow reports that only the keys, the length or the scalar there matter; Declared, that the node has
	// not run yet and is expected to read this.
	Shallow, Declared bool
}

// String returns the document and a JSON pointer, with "#" appended for a shallow read; a document of another
// space is @space/document.
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

// meets reports whether a write there may concern a reader: one path must be a prefix of the other, and
// writes more than one level below the path of a shallow reader do not concern it.
func (w *Write) meets(r *Read) bool {
	if len(w.Path) > 0 && r.Shallow && len(w.Path) > len(r.Path)+1 {
		return false
	}
	n := min(len(w.Path), len(r.Path))
	return slices.Equal(w.Path[:n], r.Path[:n])
}

// same reports whether two rows are equal.
func (n *Node) same(o *Node) bool {
	sameRead := func(a, b Read) bool {
		return a.Space == b.Space && a.Doc == b.Doc && a.Shallow == b.Shallow && a.Declared == b.Declared && slices.Equal(a.Path, b.Path)
	}
	sameWrite := func(a, b Write) bool {
		return a.Doc == b.Doc && a.Envelope == b.Envelope && slices.Equal(a.Path, b.Path)
	}
	return n.ID == o.ID && n.Kind == o.Kind && n.Output == o.Output && n.Ordinal == o.Ordinal && n.Height == o.Height &&
		n.Status == o.Status && n.Live == o.Live && n.Parent == o.Parent && n.Root == o.Root && n.Stats.same(&o.Stats) &&
		n.RunState == o.RunState && n.Gate == o.Gate && n.Until == o.Until && n.Waits == o.Waits && slices.Equal(n.Causes, o.Causes) &&
		slices.EqualFunc(n.Reads, o.Reads, sameRead) && slices.EqualFunc(n.Writes, o.Writes, sameWrite)
}

// RunState is why a node does not run now.
type RunState uint8

const (
	// UpToDate: nothing that it has read has changed.
	UpToDate RunState = iota
	// Running: its function is being called.
	Running
	// Runnable: it runs in the next pass.
	Runnable
	// Dormant: something has changed, or it never ran, but nothing needs it.
	Dormant
	// Gated: it may not run before Until, because of Gate.
	Gated
	// Waiting: it has read the document Waits of another space, which has not arrived.
	Waiting
	// Spent: its budget for this pass is exhausted, so it waits for the next one.
	Spent
	// Halted: the space runs nothing, because of Halt.
	Halted
)

func (s RunState) String() string {
	return [...]string{"up to date", "running", "runnable", "dormant", "gated", "waiting", "spent", "halted"}[s]
}

// NodeStats are the statistics of one node.
type NodeStats struct {
	// Runs is the number of its runs, Errors how many of them returned an error, and LastErr the error of the
	// last run, nil if that succeeded.
	Runs, Errors uint64
	LastErr      error
	// Measured is the number of runs that the host has measured; the remaining fields are about those.
	Measured             uint64
	Total, Average, Last time.Duration
}

// same compares errors by their texts: readers see only those, and errors of user code need not be
// comparable.
func (s *NodeStats) same(o *NodeStats) bool {
	return s.Runs == o.Runs && s.Errors == o.Errors && s.Measured == o.Measured && s.Total == o.Total && s.Average == o.Average &&
		s.Last == o.Last && (s.LastErr == nil) == (o.LastErr == nil) && (s.LastErr == nil || s.LastErr.Error() == o.LastErr.Error())
}

// Edge leads from one node to another: one of them writes a place that the other one reads. It may be seen
// from either side.
type Edge struct {
	// Node is the node at the other end. Address is the place where they meet, as the reader reads it: a
	// document and a JSON pointer, with "#" appended for a shallow read.
	Node, Address string
	// Declared reports that the reader has not run yet and is expected to read this.
	Declared bool
	// Envelope reports that the place lies in a declared envelope: such an edge orders, and never triggers or
	// demands.
	Envelope bool
	// Live and Clean describe the state of the other node; Ordinal is its rank by first registration.
	Live, Clean bool
	Ordinal     uint32
}

// ordered sorts edges by the ordinal of the nodes at their other ends, then by address.
func ordered(edges []Edge) []Edge {
	slices.SortStableFunc(edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Address, b.Address))
	})
	return edges
}

// Split divides edges into those that demand and trigger, and those of envelopes, without duplicates.
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
