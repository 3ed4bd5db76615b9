package runs

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// Status is a run as its documents have it.
type Status struct {
	ID       string
	Workflow string
	Version  string
	State    State
	Args     model.Value
	// Attributes are those that the run was started with, an object; absent if it has none.
	Attributes model.Value
	// Priority decides which of the calls that wait is performed first, see the start of a run.
	Priority int
	// Started and Ended are times in milliseconds since 1970; Ended is 0 before the end.
	Started, Ended int64
	// Steps is the number of steps so far.
	Steps int
	// Undoing is what its error will be, while its undo steps are executed.
	Undoing *ActionError
	// Result and Error are how it ended.
	Result model.Value
	Error  *ActionError
	// Parent is the run that has started this one, nil if none has. Children are those that it has started or joined,
	// as far as they are kept: all that have not ended, and the last of the others.
	Parent   *RunName
	Children []Child
	// Waiting is what the run waits for, and Queued the number of actions that wait for others of the run or the
	// space. Timers are the times of its timers, by ID. They are known of a run that has not ended, by Inspect.
	Waiting []workflow.Open
	Queued  map[string]bool
	Timers  map[string]int64
	Graph   *workflow.Graph
	// Marks are the nodes that the run has passed, as [workflow.Run.Marks] has them; "" if that is not known.
	Marks string
	// Positions are where the run is in its graph, and Passed returns how often it has come to a node. Both are known as Waiting is.
	Positions []workflow.Position
	Passed    func(fn, node int) int
	// Opaque reports that the code of the run calls functions of the worker's process: then only the signals, conditions and times are known that it
	// waits for.
	Opaque bool
	// pending has what the keys of the tasks that are waited for are made of.
	pending map[string]pending
}

// StatusOf returns what the document of a run says.
func StatusOf(id string, doc model.Value) (*Status, error) {
	if doc.IsAbsent() {
		return nil, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	s := &Status{ID: id, Args: doc.Get("args"), Result: doc.Get("result"), Attributes: doc.Get("attributes"), Priority: priorityOf(doc)}
	s.Workflow, _ = doc.Get("workflow").AsString()
	s.Version, _ = doc.Get("version").AsString()
	state, _ := doc.Get("state").AsString()
	s.State = State(state)
	s.Started, _ = doc.Get("at").AsInt()
	s.Ended, _ = doc.Get("ended").AsInt()
	at, err := headOf(doc)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	s.Steps = at.n
	s.Error, s.Undoing = recordedError(doc.Get("error")), recordedError(doc.Get("undoing"))
	s.Marks, _ = doc.Get("nodes").AsString()
	s.Parent = parentOf(doc)
	return s, nil
}

// recordedError returns an error of the document of a run, nil if there is none.
func recordedError(v model.Value) *ActionError {
	if v.IsAbsent() {
		return nil
	}
	e := &ActionError{}
	e.Type, _ = v.Get("type").AsString()
	e.Message, _ = v.Get("message").AsString()
	e.Ancestors = textsOf(v.Get("ancestors"))
	if d := v.Get("detail"); !d.IsAbsent() {
		e.Detail = []byte(d.String())
	}
	if u := v.Get("undone"); !u.IsAbsent() {
		e.Undone = &workflow.Undone{}
		_ = json.Unmarshal([]byte(u.String()), e.Undone) // what it does not have stays zero
	}
	return e
}

// readGraph reads the graph of the run. One that has ended can do without.
func (s *Status) readGraph(read func(doc string) (model.Value, error)) error {
	graph, err := read(graphDoc(s.Version))
	if err != nil {
		return err
	}
	text, is := graph.AsString()
	switch {
	case is:
		s.Graph, err = workflow.Decode([]byte(text))
	case s.State == Running:
		err = fmt.Errorf("the graph of version %s is not in the space", s.Version)
	}
	return err
}

// Mark returns the state of a node of the graph in the run.
func (s *Status) Mark(fn, node int) workflow.Mark {
	mark := workflow.Mark("")
	for i := range s.Waiting {
		w := &s.Waiting[i]
		switch {
		case w.Func != fn || w.Node != node:
		case w.Action != "" && !w.Retry && !s.Queued[w.ID]:
			return workflow.MarkRunning
		default:
			mark = workflow.MarkWaiting
		}
	}
	if mark == "" && s.Graph != nil {
		mark = s.Graph.MarkIn(s.Marks, fn, node)
	}
	return mark
}
