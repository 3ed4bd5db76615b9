package space

import (
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
