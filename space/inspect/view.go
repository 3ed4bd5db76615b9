// Package inspect explains a space: why a node ran, why it does not run now and what needs it, what the event
// at the head of the lane waits for, what ran and what made it run, and whether the space comes to rest.
//
// It knows a space by a View, which only reads, and by what the space enters in a Recorder. No decision of a
// space depends on any of it (P10). It does no I/O.
package inspect

import (
	"cmp"
	"slices"
	"time"
)

// View is a space, to be read by its owner between two calls.
type View interface {
	// Node returns a node as it stands; false if there is no such node.
	Node(id string) (Node, bool)
	// Readers returns the edges to the nodes that read what a node writes, Writers those to the nodes that
	// write what it reads, in the order in which the space keeps them.
	Readers(id string) []Edge
	Writers(id string) []Edge
	// Head returns what is known of the event at the head of the lane; false if there is none.
	Head() (Head, bool)
}

// Node is a node as it stands.
type Node struct {
	ID, Kind string
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
	neverRan = "never-ran"
	clean    = "clean"
)

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

// Head is what is known of the event at the head of the lane, which has not been handled yet.
type Head struct {
	Stream, Event string
	// Until is when it may be tried again, after errors that may pass or a conflict, and 0 if
	// it need not wait for a time. Attempts is how many such errors there were.
	Until    time.Duration
	Attempts int
	// Most is how many attempts an event has that fails in a way that may pass. Lost is how
	// many attempts have ended with their process, of MostLost at most.
	Most, Lost, MostLost int
	// Docs are the documents of other spaces that it reads and that are not here, Needs the
	// nodes that it needs.
	Docs, Needs []string
	// Fails is when it fails if a document of another space does not come, 0 for never.
	Fails time.Duration
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

// Sorted returns edges in order of registration of the nodes that they lead to, each once: those that
// demand and trigger, and those of envelopes.
func Sorted(edges []Edge) (all, envelope []Edge) {
	slices.SortFunc(edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Address, b.Address))
	})
	for _, e := range slices.Compact(edges) {
		if e.Envelope {
			envelope = append(envelope, e)
		} else {
			all = append(all, e)
		}
	}
	return all, envelope
}
