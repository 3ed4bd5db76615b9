package inspect

import "github.com/settlehq/settle/model"

// Outcome is what a run of a computation has read and written, for the comparison with earlier runs.
type Outcome struct {
	Node string
	// Code identifies the registration of the node: runs of different ones are not compared.
	Code any
	// Reads and Writes are fingerprints, of the addresses and values that it read and of what it wrote. Value is what
	// it returned.
	Reads, Writes uint64
	Value         model.Value
	// Run is the number of the run among those of the node.
	Run uint64
}

// Contradiction is a pair of runs of a computation that have read the same values and written different ones: it is
// not idempotent.
type Contradiction struct{ First, Second Outcome }

const (
	// maxCompared is the number of nodes whose runs are compared, maxOutcomes the number of the latest outcomes of each.
	maxCompared = 4096
	maxOutcomes = 16
)

// outcomes are the latest outcomes of each node, since runs are recorded.
type outcomes struct {
	by map[string][]Outcome
	// found has the first contradiction of each node.
	found []Contradiction
}

// compare adds an outcome. It returns the first contradiction of the node, when it is found.
func (all *outcomes) compare(o *Outcome) *Contradiction {
	known := all.by[o.Node]
	if known == nil && len(all.by) >= maxCompared {
		return nil
	}
	if len(known) > 0 && known[0].Code != o.Code {
		known = nil
	}
	for i := range known {
		if known[i].Reads != o.Reads {
			continue
		}
		if known[i].Writes == o.Writes {
			return nil
		}
		return all.note(&Contradiction{known[i], *o})
	}
	if len(known) == maxOutcomes {
		known = append(known[:0], known[1:]...)
	}
	if all.by == nil {
		all.by = map[string][]Outcome{}
	}
	all.by[o.Node] = append(known, *o)
	return nil
}

func (all *outcomes) note(c *Contradiction) *Contradiction {
	for i := range all.found {
		if all.found[i].First.Node == c.First.Node {
			return nil
		}
	}
	all.found = append(all.found, *c)
	return c
}

// Compares reports whether outcomes of runs are compared, which they are while runs are recorded.
func (r *Recorder) Compares() bool { return r != nil && r.runs != nil }

// Compare compares a run with the earlier ones of its node. It returns a contradiction once for each node.
func (r *Recorder) Compare(o Outcome) *Contradiction {
	if !r.Compares() {
		return nil
	}
	return r.outcomes.compare(&o)
}

// Contradictions returns the first contradiction of each node that is not idempotent, as far as runs have been
// recorded, in the order in which they were found.
func (h *History) Contradictions() []Contradiction { return h.contradictions }
