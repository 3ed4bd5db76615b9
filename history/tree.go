package history

import (
	"time"

	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// TreeQuery requests the tree of an event.
type TreeQuery struct {
	Event string `json:"event"`
	// Space and Stream are the target of the event. Either may be empty if the id is unambiguous.
	Space  string `json:"space,omitempty"`
	Stream string `json:"stream,omitempty"`
	// MaxEvents and MaxDepth bound the tree; 0 means DefaultEvents and DefaultDepth.
	MaxEvents int `json:"max_events,omitempty"`
	MaxDepth  int `json:"max_depth,omitempty"`
}

// The default bounds of a tree.
const (
	DefaultEvents = 1000
	DefaultDepth  = 100
)

// Tree is an event with everything that it caused so far, directly and indirectly.
type Tree struct {
	Root *TreeNode `json:"root"`
	// CausedBy are the events that led to the root, the nearest first.
	CausedBy []EventRef `json:"caused_by,omitempty"`
	// Events is the number of nodes, and States counts them by state. After a wait, both include
	// events that were cut from the tree.
	Events int                   `json:"events"`
	States map[lineage.State]int `json:"states"`
	// Settled is set if every event of the tree has ended. For a tree that was cut it is known only after a
	// wait.
	Settled bool `json:"settled"`
	// More is set if the bounds have cut the tree.
	More bool `json:"more,omitempty"`
	// Unattended is set if no coordinator answered: parked events stay parked until one runs.
	Unattended bool `json:"unattended,omitempty"`
}

// EventRef names an event.
type EventRef struct {
	Space  string `json:"space"`
	Stream string `json:"stream,omitempty"`
	Event  string `json:"event"`
}

// TreeNode is one event of a tree.
type TreeNode struct {
	EventRef
	Kind  NodeKind      `json:"kind,omitempty"`
	State lineage.State `json:"state"`
	// Error is the error of the receipt, or why the event was dropped.
	Error string `json:"error,omitempty"`
	// Attempts is how often the handler was called, if more than once.
	Attempts int         `json:"attempts,omitempty"`
	Result   model.Value `json:"result,omitzero"`
	// Sent is when the lane stored the event, and Ended when the commit with its receipt was stored; zero if
	// that did not happen. Sent is zero for a follow-up, which has no lane.
	Sent  time.Time `json:"sent,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	// Until is the time before which the event is not handled, if it was sent with a time or is a timer.
	Until time.Time `json:"until,omitzero"`
	// Lane is its sequence in the lane, 0 if it has none (yet). Position numbers the sends of its origin to
	// its space.
	Lane     uint64 `json:"lane,omitempty"`
	Position uint64 `json:"position,omitempty"`
	// Commit is the log sequence of the commit with its receipt, Runtime the runtime that made that
	// commit, and Tx the transaction.
	Commit  uint64 `json:"commit,omitempty"`
	Runtime string `json:"runtime,omitempty"`
	Tx      string `json:"tx,omitempty"`
	// Caused are the events that its handling sent, in that order, then a notice about it and the event that
	// was sent again for it.
	Caused []*TreeNode `json:"caused,omitempty"`
	// More is the number of caused events that the bounds have cut.
	More int `json:"more,omitempty"`

	waits uint64 // the sequence of the commit that sent it, if it has waited in its space since then
}

// NodeKind is the relation of an event to its parent in the tree.
type NodeKind string

const (
	// KindSent: the handling of the parent sent it.
	KindSent NodeKind = ""
	// KindNotice: it notifies the origin that the parent was refused.
	KindNotice NodeKind = "notice"
	// KindRedrive: it is the parent, sent again by an operator.
	KindRedrive NodeKind = "redrive"
)

// count computes the fields about the tree as a whole.
func (t *Tree) count() {
	t.States = map[lineage.State]int{}
	t.Settled, t.More, t.Events = true, false, 0
	t.Root.visit(func(n *TreeNode) {
		t.Events++
		t.States[n.State]++
		t.More = t.More || n.More > 0
		t.Settled = t.Settled && n.State.Ended() && n.More == 0
	})
}

func (n *TreeNode) visit(f func(*TreeNode)) {
	f(n)
	for _, c := range n.Caused {
		c.visit(f)
	}
}
