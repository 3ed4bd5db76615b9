package runs

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// Progress returns what the performer of a call has reported last, absent if there is nothing. The call is one that the run waits
// for, as Waiting has it, and in is the space of the run. Calls of watched actions are in the document of their action, and have none here.
func (s *Status) Progress(in string, w *workflow.Open, read func(doc string) (model.Value, error)) (model.Value, error) {
	doc := s.TaskDoc(in, w)
	if doc == "" {
		return model.Value{}, nil
	}
	v, err := read(doc)
	if err != nil {
		return model.Value{}, err
	}
	_, t, _ := space.TaskIn(doc, v) // that of no task has no progress
	return t.Progress, nil
}

// TaskDoc returns the document of a call that the run waits for, in the space of the run; "" if it has none now.
func (s *Status) TaskDoc(in string, w *workflow.Open) string {
	if w.Action == "" || w.Retry || s.Queued[w.ID] {
		return ""
	}
	return model.TaskDoc(w.Action, taskKey(in, s.ID, w.ID, s.pending[w.ID].Gen))
}
