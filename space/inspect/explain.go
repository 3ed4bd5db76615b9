package inspect

// Explanation describes the state of a node: why it ran last, why it does not run now, and what needs it.
// String formats it as sentences.
type Explanation struct {
	Node
	// Triggers are the changes behind the causes, as far as the history of triggers goes back.
	Triggers []TriggerEntry

	// LastRun is the last run, and LastTriggers what triggered it, if the histories are kept and go back that
	// far.
	LastRun      *RunEntry
	LastTriggers []TriggerEntry

	// Readers is a shortest chain of readers. For a live node it leads to a node that is live regardless of
	// readers, because of Need. For a dormant one it leads to where demand is missing: to a node without
	// readers or, if Round, back to a node of the chain.
	Readers []Edge
	Need    string
	Round   bool

	// Behind explains the nearest upstream node that is not up to date, nil if there is none. This node may
	// change when that one has run.
	Behind *Explanation
}

// Explain explains the state of a node; false if there is no such node. It visits only as much of the graph
// as it needs.
func (s *Snapshot) Explain(id string) (Explanation, bool) {
	n, ok := s.Node(id)
	if !ok {
		return Explanation{}, false
	}
	e := s.explain(n)
	if up := s.nearestStale(n.ID); up != "" {
		late, _ := s.Node(up)
		behind := s.explain(late)
		e.Behind = &behind
	}
	return e, true
}

func (s *Snapshot) explain(n Node) Explanation {
	e := Explanation{Node: n}
	e.explainDemand(s)
	e.explainRuns(s.History())
	return e
}

// explainDemand finds what needs the node, or where demand is missing.
func (e *Explanation) explainDemand(v *Snapshot) {
	walk := &readerWalk{view: v, steps: []readerStep{{edge: Edge{Node: e.ID}}}, seen: map[string]bool{e.ID: true}}
	for i := 0; i < len(walk.steps); i++ {
		id := walk.steps[i].edge.Node
		if e.Live {
			if at, _ := v.Node(id); at.Root != "" {
				e.Readers, e.Need = walk.wayTo(i), at.Root
				return
			}
			walk.from(i, true)
		} else if walk.from(i, false) == 0 && i+1 == len(walk.steps) || !isRead(v, id) {
			e.Readers, e.Round = walk.wayTo(i), isRead(v, id)
			return
		}
	}
}

func isRead(v *Snapshot, id string) bool {
	for _, edge := range v.Readers(id) {
		if !edge.Envelope {
			return true
		}
	}
	return false
}

// readerWalk is a breadth-first search from a node to its readers, their readers, and so on.
type readerWalk struct {
	view  *Snapshot
	steps []readerStep
	seen  map[string]bool
}

// readerStep is a node that the walk has reached, the edge that led to it, and the step before; the edge of
// the first step only names the node.
type readerStep struct {
	edge Edge
	back int
}

// from adds the readers of a step, either the live ones or all, and returns how many are new.
func (w *readerWalk) from(i int, live bool) (added int) {
	for _, edge := range w.view.Readers(w.steps[i].edge.Node) {
		if !edge.Envelope && !w.seen[edge.Node] && (edge.Live || !live) {
			w.seen[edge.Node] = true
			w.steps = append(w.steps, readerStep{edge, i})
			added++
		}
	}
	return added
}

// wayTo lists the edges on the way to a step.
func (w *readerWalk) wayTo(i int) []Edge {
	if i == 0 {
		return nil
	}
	return append(w.wayTo(w.steps[i].back), w.steps[i].edge)
}

// nearestStale returns the nearest upstream node that is not up to date, "" if there is none.
func (s *Snapshot) nearestStale(id string) string {
	seen := map[string]bool{id: true}
	for work := []string{id}; len(work) > 0; work = work[1:] {
		for _, edge := range s.Writers(work[0]) {
			if seen[edge.Node] {
				continue
			}
			if seen[edge.Node] = true; !edge.Clean {
				return edge.Node
			}
			work = append(work, edge.Node)
		}
	}
	return ""
}

// explainRuns looks up in the histories why a node ran last, and why it is to run again.
func (e *Explanation) explainRuns(h *History) {
	runs, triggers := h.Runs, h.Triggers
	for i := len(runs) - 1; i >= 0 && e.LastRun == nil; i-- {
		if runs[i].Node == e.ID {
			e.LastRun = &runs[i]
		}
	}
	if e.LastRun != nil {
		e.LastTriggers = latest(triggers, e.ID, e.LastRun.Causes, e.LastRun.N)
	}
	e.Triggers = latest(triggers, e.ID, e.Causes, ^uint64(0))
	attribute(runs, e.Triggers)
	attribute(runs, e.LastTriggers)
}

// attribute fills in which transaction made the changes in triggers, as far as the history of runs goes back.
func attribute(runs []RunEntry, triggers []TriggerEntry) {
	for i := range triggers {
		t := &triggers[i]
		for j := len(runs) - 1; j >= 0 && t.Tx != 0 && t.By == ""; j-- {
			if runs[j].Tx == t.Tx {
				t.By = runs[j].By
			}
		}
	}
}

// latest returns, for each cause of a node, the last trigger before the entry with number n.
func latest(triggers []TriggerEntry, id string, causes []string, n uint64) (found []TriggerEntry) {
	for _, cause := range causes {
		for i := len(triggers) - 1; i >= 0; i-- {
			if t := &triggers[i]; t.N < n && t.Node == id && t.Cause == cause {
				found = append(found, *t)
				break
			}
		}
	}
	return found
}
