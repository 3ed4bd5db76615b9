package space

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// Stats counts what a space has done since this runtime took it in.
type Stats struct {
	Handled, Failed, Refusals uint64 // events, by outcome
	Parked                    uint64 // attempts given up until something is up to date
	Refused                   uint64 // appends refused
	Deferred                  uint64 // nodes gated for not converging
	NodeErrors                uint64 // runs that returned an error
}

func (st *Stats) count(o model.Outcome) {
	switch o {
	case model.Handled:
		st.Handled++
	case model.Failed:
		st.Failed++
	case model.Refused:
		st.Refusals++
	}
}

// Stats returns the counters.
func (s *Space) Stats() Stats { return s.stats }

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
			ID: n.id, Kind: n.kind, Status: n.status, Live: n.live, Runs: n.runs,
			Reads: n.readNames(), Causes: slices.Clone(n.causes.list),
		}
		if n.output != nil {
			st.Output = n.output.key.doc
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

// Idle reports whether nothing is left to do: no event waits, here or left in the
// stream, nothing is runnable or gated, and every transaction is in the log.
func (s *Space) Idle() bool {
	return s.running() && s.lane.Done() && len(s.graph.ready) == 0 && s.Settled()
}
