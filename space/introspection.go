package space

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Stats counts what a space has done since this runtime took it in.
type Stats struct {
	Handled, Failed, Refusals uint64 // events, by outcome, when that is confirmed
	Parked                    uint64 // attempts given up until something is up to date
	Refused                   uint64 // appends refused
	Deferred                  uint64 // nodes gated for not converging
	NodeErrors                uint64 // runs that returned an error
	Runs                      uint64 // of computations and effects
	Attempts                  uint64 // at handling events that were not given up, undone ones included
	Unconverged               uint64 // events that met conflicts for longer than the window
	// Handlings that a refusal has undone: for a conflict, for a receipt that another
	// runtime has made, and with the transaction that had sent the event.
	Conflicts, KnownReceipts, LostOrigins uint64

	OutsideWrites uint64 // writes of nodes to what they have not declared
	Resumed       uint64 // nodes that an observation has saved a run, or told why not
	Compared      uint64 // reads whose value had to be looked at for that
	Violations    uint64 // runs that were found not to be idempotent

	// What the work was. Matched counts the readers that were compared with a change,
	// Filtered those of them that it did not concern (value-gating), Visits the nodes
	// looked at in ordering, liveness and preflight, IndexWrites the reads that were
	// entered or taken out, Echoes the runs that answered another runtime's writes.
	Matched, Filtered, Visits, IndexWrites, Echoes uint64
}

// Stats returns the counters.
func (s *Space) Stats() Stats {
	st, c := s.stats, s.ledger.Counts()
	st.Handled, st.Failed, st.Refusals = c.Handled, c.Failed, c.Refusals
	st.Attempts, st.Refused, st.Unconverged = c.Attempts, c.Refused, st.Unconverged+c.Unconverged
	st.Conflicts, st.KnownReceipts, st.LostOrigins = c.Conflicts, c.KnownReceipts, c.LostOrigins
	return st
}

// NodeState is a node as it stands: structure and hot state together.
type NodeState struct {
	ID     string
	Kind   NodeKind
	Status Status
	Live   bool
	Runs   uint64
	Output string
	Reads  []string
	Causes []string
	Parent string
	// Until is the time before which a node that is to run does not.
	Until time.Duration
}

// Nodes lists the nodes with their state in order of registration. Unlike
// Structure it belongs to the owner of the space.
func (s *Space) Nodes() []NodeState {
	var out []NodeState
	for _, n := range s.graph.nodes {
		if n == nil {
			continue
		}
		st := NodeState{
			ID: n.id(), Kind: n.kind, Status: n.status, Live: n.live, Runs: n.runs,
			Output: n.spec.Output, Reads: n.readNames(), Causes: causeNames(n),
		}
		if p := n.parent(); p != nil {
			st.Parent = p.id()
		}
		if n.status != Clean {
			st.Until = max(0, n.eligibleAt())
		}
		out = append(out, st)
	}
	return out
}

// Value is a document as this runtime sees it, speculative writes included.
func (s *Space) Value(id string) model.Value {
	if d := s.graph.local(id); d != nil {
		return d.value
	}
	return model.Value{}
}

func causeNames(n *node) []string {
	c := n.causes()
	return c.names()
}
