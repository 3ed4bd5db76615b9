package inspect

// Explanation says how a node stands: why it ran last, why it does not run now, and what
// needs it. String writes it in sentences.
type Explanation struct {
	Node
	// Triggers is how the causes came about, as far as the history of triggers goes.
	Triggers []TriggerEntry

	// LastRun is the last run and LastTriggers what made it necessary, if the histories are
	// kept and go back that far.
	LastRun      *RunEntry
	LastTriggers []TriggerEntry

	// Readers is a shortest chain of readers. For a node that is live it leads to the node that
	// is live by itself, because of Need. For one that is not, it leads to where demand
	// is missing: to a node that nothing reads or, if Round, back to one that is on it.
	Readers []Edge
	Need    string
	Round   bool

	// Behind explains the nearest node upstream that is not up to date, nil if there is
	// none. What this one shows may change when that has run.
	Behind *Explanation
}

// Explain explains how a node stands; false if there is no such node. It looks at as much of
// the graph as it needs.
func (s *Snapshot) Explain(id string) (Explanation, bool) {
	n, ok := s.Node(id)
	if !ok {
		return Explanation{}, false
	}
	e := s.explain(n)
	if up := s.laggard(n.ID); up != "" {
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

// explainDemand says what needs a node, or where demand is missing.
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

// readerWalk is a search breadth first, from a node to its readers, theirs, and so on.
type readerWalk struct {
	view  *Snapshot
	steps []readerStep
	seen  map[string]bool
}

// readerStep is a node that the walk has come to, by which edge, and from which step; the
// edge of the first step only names the node.
type readerStep struct {
	edge Edge
	back int
}

// from adds the readers of a step, the live ones or all, and returns how many are new.
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

// laggard is the nearest node upstream of a node that is not up to date, "" if there is none.
func (s *Snapshot) laggard(id string) string {
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

// attribute says of triggers what made the transaction, as far as the history of runs goes.
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

// latest finds for each cause of a node the last trigger before the entry with number n.
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
