package space

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Stats returns the counters.
func (s *Space) Stats() Stats {
	st, c := s.stats, s.ledger.Counts()
	st.Handled, st.Failed, st.Refusals = c.Handled, c.Failed, c.Refusals
	st.Attempts, st.Refused, st.Unconverged = c.Attempts, c.Refused, st.Unconverged+c.Unconverged
	st.Conflicts, st.KnownReceipts, st.LostOrigins = c.Conflicts, c.KnownReceipts, c.LostOrigins
	return st
}

// NodeState is the state of a node: structure and hot state together.
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
	// Until is the time before which a due node does not run.
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

// Value returns a document as this runtime sees it, speculative writes included.
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

// Structure takes a snapshot of the present structure. Like all methods of Space it is for the owner, but any
// goroutine may read the snapshot. For the next thousand passes the tables stay current at the end of each, for
// readers that wait on a Watch.
func (s *Space) Structure() Structure {
	s.structure.looks = lookedAt
	s.structure.flush(s.graph)
	return Structure{txn: s.structure.db.Txn(false)}
}
