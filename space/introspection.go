package space

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/inspect"
)

// Stats returns the counters.
func (s *Space) Stats() Stats {
	st, c := s.stats, s.ledger.Counts()
	st.Handled, st.Failed, st.Refusals = c.Handled, c.Failed, c.Refusals
	st.Attempts, st.Refused, st.Unconverged = c.Attempts, c.Refused, st.Unconverged+c.Unconverged
	st.Conflicts, st.KnownReceipts, st.LostOrigins = c.Conflicts, c.KnownReceipts, c.LostOrigins
	return st
}

// Value returns a document as this runtime sees it, speculative writes included.
func (s *Space) Value(id string) model.Value {
	if d := s.graph.local(id); d != nil {
		return d.value
	}
	return model.Value{}
}

// Tasks returns the tasks of an action as this runtime sees them, wherever they are stored, sorted by key.
func (s *Space) Tasks(action string) []Task {
	return s.graph.tasksOf(action, s.Value(action).Get(inTasks), nil, func(d *doc) model.Value { return d.value })
}

// Recorder returns the recorder of the space, which records only what is enabled. Only the owner may use it.
func (s *Space) Recorder() *inspect.Recorder { return s.recorder }

// Inspect brings the tables of the space up to date and returns a snapshot of them. Only the owner may call
// it, but any goroutine may read the snapshot. It does not influence the space, and costs a comparison per
// node and a few words per waiting event.
func (s *Space) Inspect() *inspect.Snapshot { return s.publisher.snapshot() }

// Failing are the computations of a space that are needed and fail.
type Failing struct {
	// Nodes are the first of them by id, Count is the number of all.
	Nodes []FailingNode
	Count int
	// Docs are observed documents that follow from them, directly or through others.
	Docs []string
}

// FailingNode is a node whose last run ended in an error.
type FailingNode struct {
	Node string
	Err  error
}

// FailingChanges returns a number that is another one if Failing may return something else.
func (s *Space) FailingChanges() uint64 { return s.graph.failures.changes }

// Failing returns the live nodes whose last run ended in an error, at most so many of them. It costs a visit of all of these, and of what follows
// from them.
func (s *Space) Failing(most int) (out Failing) {
	list := slices.Clone(s.graph.failures.live)
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.id(), b.id()) })
	out.Count = len(list)
	for _, n := range list[:min(len(list), most)] {
		out.Nodes = append(out.Nodes, FailingNode{n.id(), n.more.lastErr})
	}
	s.graph.downstream(list, func(n *node) {
		if doc, is := s.observed(n); is {
			out.Docs = append(out.Docs, doc)
		}
	})
	slices.Sort(out.Docs)
	return out
}

// observed returns the document that a node observes for others, false if it is no such node.
func (s *Space) observed(n *node) (doc string, is bool) {
	if n.kind != Effect || len(n.deps) == 0 {
		return "", false
	}
	doc = n.deps[0].doc.key.doc
	o := s.observers[doc]
	return doc, o != nil && o.node == n
}
