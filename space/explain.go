package space

import "time"

// Standing is why a node does not run now.
type Standing uint8

const (
	// UpToDate: nothing that it has read has changed.
	UpToDate Standing = iota
	// Running: it is at it.
	Running
	// Runnable: it runs with the next pass.
	Runnable
	// Dormant: something has changed, or it never ran, and nobody needs it.
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

// Explanation says how a node stands: why it ran last, why it does not run now, and who
// needs it. String tells it in sentences.
type Explanation struct {
	Node   string
	Kind   NodeKind
	Status Status
	Live   bool
	Stats  NodeStats

	Standing Standing
	// Gate is "debounce", "throttle", "backoff" or "echo", and Until when it opens.
	Gate  string
	Until time.Duration
	// Waits is the document that is not here.
	Waits string
	// Halt is why the space runs nothing.
	Halt string
	// Causes are the addresses that have changed since the last run, and Triggers how
	// that came about, as far as the history of triggers goes (see SetTrace).
	Causes   []string
	Triggers []TriggerEntry

	// Last is the last run and LastTriggers what made it necessary, if the histories are
	// kept and go back that far.
	Last         *RunEntry
	LastTriggers []TriggerEntry

	// Readers is a shortest chain of readers. For a node that is live it leads to who
	// needs it, and Root says what that is. For one that is not, it leads to where demand
	// is missing: to a node that nobody reads or, if Round, back to one that is on it.
	Readers []Edge
	Root    string
	Round   bool

	// Behind explains the nearest node upstream that is not up to date, nil if there is
	// none. What this one shows may change when that has run.
	Behind *Explanation
}

// Explain says how a node stands; false if there is no such node. It looks at as much of
// the graph as it needs, so it is for people and not for every run.
func (s *Space) Explain(id string) (Explanation, bool) {
	n := s.graph.byID[id]
	if n == nil {
		return Explanation{}, false
	}
	e := s.explain(n)
	if up := laggard(n); up != nil {
		behind := s.explain(up)
		e.Behind = &behind
	}
	return e, true
}

func (s *Space) explain(n *node) Explanation {
	e := Explanation{Node: n.id(), Kind: n.kind, Status: n.status, Live: n.live, Causes: causeNames(n)}
	e.Stats, _ = s.NodeStats(n.id())
	s.explainStanding(n, &e)
	s.explainDemand(n, &e)
	s.explainRuns(n, &e)
	return e
}

// explainStanding says why a node does not run now.
func (s *Space) explainStanding(n *node, e *Explanation) {
	e.Halt = s.halted()
	switch {
	case n.running:
		e.Standing = Running
	case n.status == Clean:
		e.Standing = UpToDate
	case !n.live:
		e.Standing = Dormant
	case n.waiting:
		e.Standing, e.Waits = Waiting, n.absentee()
	case n.eligibleAt() > s.graph.now:
		e.Standing, e.Until, e.Gate = Gated, n.eligibleAt(), n.gateName()
	case int(n.passRuns) >= s.cfg.RunBudget:
		e.Standing = Spent
	case e.Halt != "":
		e.Standing = Halted
	default:
		e.Standing = Runnable
	}
}

// halted says why the space runs nothing, "" if it does.
func (s *Space) halted() string {
	switch {
	case s.ledger.Closed():
		return "it is closed"
	case s.Deposed():
		return "another runtime has taken it over"
	case !s.ledger.Entered():
		return "this runtime does not own it"
	case !s.ledger.Running():
		return "a commit was refused, and others' are to be taken in first"
	case !s.ledger.Begins():
		return "it is finishing"
	case s.ledger.Crowded():
		return "the open commit is full, and the one before is under way"
	}
	return ""
}

// absentee is the document of another space that a run of n has met and that is not here.
func (n *node) absentee() string {
	for _, d := range n.deps {
		if !d.doc.loaded {
			return d.doc.key.String()
		}
	}
	return ""
}

// gateName says which gate it is that opens last.
func (n *node) gateName() string {
	gt := &n.more.gate
	switch n.eligibleAt() {
	case gt.backoffUntil:
		return "backoff"
	case gt.echoUntil:
		return "echo"
	case gt.ranAt + gt.throttle:
		return "throttle"
	}
	return "debounce"
}

// explainDemand says who needs a node, or where demand is missing.
func (s *Space) explainDemand(n *node, e *Explanation) {
	walk := readersOf(n)
	for i := 0; i < len(walk.steps); i++ {
		at := walk.steps[i].node
		if n.live {
			if e.Root = s.root(at); e.Root != "" {
				e.Readers = walk.wayTo(i)
				return
			}
			walk.from(i, true)
		} else if walk.from(i, false) == 0 && i+1 == len(walk.steps) || !isReadBy(at) {
			e.Readers, e.Round = walk.wayTo(i), isReadBy(at)
			return
		}
	}
}

// root says why a node is live by itself, "" if it is not.
func (s *Space) root(n *node) string {
	switch {
	case n.kind == Effect:
		return "an effect"
	case n.materializer():
		return "a materializer"
	case n.demand == 0:
		return ""
	case n.more != nil && n.more.provisional:
		return "just made, to run once"
	}
	if ev := s.ledger.Head(); ev != nil {
		return "needed by event " + ev.ID + " on " + ev.Stream
	}
	return "needed by an event"
}

func isReadBy(n *node) bool {
	read := false
	n.eachReader(false, func(*dep) { read = true })
	return read
}

// readerWalk is a search breadth first, from a node to its readers, theirs, and so on.
type readerWalk struct {
	steps []readerStep
	seen  map[*node]bool
}

// readerStep is a node that the walk has come to, by which read, and from which step; the
// first step has no read.
type readerStep struct {
	node *node
	read *dep
	back int
}

func readersOf(n *node) *readerWalk {
	return &readerWalk{steps: []readerStep{{node: n}}, seen: map[*node]bool{n: true}}
}

// from adds the readers of a step, the live ones or all, and returns how many are new.
func (w *readerWalk) from(i int, live bool) (added int) {
	w.steps[i].node.eachReader(false, func(d *dep) {
		if !w.seen[d.node] && (d.node.live || !live) {
			w.seen[d.node] = true
			w.steps = append(w.steps, readerStep{d.node, d, i})
			added++
		}
	})
	return added
}

// wayTo lists the reads on the way to a step.
func (w *readerWalk) wayTo(i int) []Edge {
	if i == 0 {
		return nil
	}
	st := w.steps[i]
	return append(w.wayTo(st.back), Edge{st.node.id(), st.read.String(), st.read.declared})
}

// laggard is the nearest node upstream of n that is not up to date, nil if there is none.
func laggard(n *node) *node {
	seen := map[*node]bool{n: true}
	var found *node
	for work := []*node{n}; len(work) > 0 && found == nil; work = work[1:] {
		for _, d := range work[0].deps {
			if !d.indexed {
				continue
			}
			d.eachWriter(true, func(w *surface) {
				if up := w.node; !seen[up] {
					seen[up] = true
					work = append(work, up)
					if found == nil && up.status != Clean {
						found = up
					}
				}
			})
		}
	}
	return found
}

// explainRuns looks up in the histories why a node ran last, and why it is to run again.
func (s *Space) explainRuns(n *node, e *Explanation) {
	id := n.id()
	runs, triggers := s.RunTrace(), s.TriggerTrace()
	for i := len(runs) - 1; i >= 0 && e.Last == nil; i-- {
		if runs[i].Node == id {
			e.Last = &runs[i]
		}
	}
	if e.Last != nil {
		e.LastTriggers = latest(triggers, id, e.Last.Causes, e.Last.N)
	}
	e.Triggers = latest(triggers, id, e.Causes, ^uint64(0))
	attribute(runs, e.Triggers)
	attribute(runs, e.LastTriggers)
}

// attribute says of triggers who made the transaction, as far as the history of runs goes.
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
