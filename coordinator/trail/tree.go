package trail

import (
	"time"

	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// Query asks for what an event has caused.
type Query struct {
	Event string `json:"event"`
	// Space and Stream are where the event went. Either may be empty if the id alone
	// says enough.
	Space  string `json:"space,omitempty"`
	Stream string `json:"stream,omitempty"`
	// MaxEvents and MaxDepth bound the tree; 0 means DefaultEvents and DefaultDepth.
	MaxEvents int `json:"max_events,omitempty"`
	MaxDepth  int `json:"max_depth,omitempty"`
}

// The bounds of a tree for which nobody chose any.
const (
	DefaultEvents = 1000
	DefaultDepth  = 100
)

// Tree is an event with all that it has caused so far, directly and indirectly.
type Tree struct {
	Root *Node `json:"root"`
	// CausedBy are the events that led to the root, the nearest first.
	CausedBy []Ref `json:"caused_by,omitempty"`
	// Events is the number of nodes, States how many of them are in which state. Who has
	// waited for a tree that is cut knows it of all events, also of those not shown.
	Events int                   `json:"events"`
	States map[lineage.State]int `json:"states"`
	// Settled says that every event of the tree has ended. Of a tree that is cut that is
	// known only to who has waited for it.
	Settled bool `json:"settled"`
	// More says that the bounds have cut it: there is more than is shown.
	More bool `json:"more,omitempty"`
	// Unattended says that no coordinator has answered: what is parked stays so until
	// one runs.
	Unattended bool `json:"unattended,omitempty"`
}

// Ref names an event.
type Ref struct {
	Space  string `json:"space"`
	Stream string `json:"stream,omitempty"`
	Event  string `json:"event"`
}

// Node is one event of a tree.
type Node struct {
	Ref
	Kind  Kind          `json:"kind,omitempty"`
	State lineage.State `json:"state"`
	// Error is that of the receipt, or why it was dropped.
	Error string `json:"error,omitempty"`
	// Attempts is how often the handler was tried, if more than once.
	Attempts int         `json:"attempts,omitempty"`
	Result   model.Value `json:"result,omitzero"`
	// Sent is when its lane stored it, and Ended when the commit with its receipt was
	// stored; zero if it was not, and Sent of a follow-up, which has no lane.
	Sent  time.Time `json:"sent,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	// Until is when it may be handled, if it was sent with a time or is a timer.
	Until time.Time `json:"until,omitzero"`
	// Lane is its place in the lane, 0 for one that has none (yet). Position counts what
	// its origin has sent to its space.
	Lane     uint64 `json:"lane,omitempty"`
	Position uint64 `json:"position,omitempty"`
	// Commit is the log sequence of the commit that holds its receipt, Runtime who made
	// that, and Tx the transaction.
	Commit  uint64 `json:"commit,omitempty"`
	Runtime string `json:"runtime,omitempty"`
	Tx      string `json:"tx,omitempty"`
	// Caused are the events that its handling sent, in that order, then a notice about
	// it and what was sent again for it.
	Caused []*Node `json:"caused,omitempty"`
	// More is how many of those the bounds have cut.
	More int `json:"more,omitempty"`

	waits bool // it waits in its space since the commit that sent it
}

// Kind says what an event is to the one above it.
type Kind string

const (
	// KindSent: the handling of the one above has sent it.
	KindSent Kind = ""
	// KindNotice: it tells the origin that the one above was refused.
	KindNotice Kind = "notice"
	// KindRedrive: the one above, sent again by a person.
	KindRedrive Kind = "redrive"
)

// count fills in what is said about the tree as a whole.
func (t *Tree) count() {
	t.States = map[lineage.State]int{}
	t.Settled, t.More, t.Events = true, false, 0
	t.Root.visit(func(n *Node) {
		t.Events++
		t.States[n.State]++
		t.More = t.More || n.More > 0
		t.Settled = t.Settled && n.State.Ended() && n.More == 0
	})
}

func (n *Node) visit(f func(*Node)) {
	f(n)
	for _, c := range n.Caused {
		c.visit(f)
	}
}
