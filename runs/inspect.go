package runs

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// ErrNoRun reports that a space has no run of an ID.
var ErrNoRun = errors.New("there is no such run")

// Status is a run as its documents have it.
type Status struct {
	ID       string
	Workflow string
	Version  string
	State    State
	Args     model.Value
	// Started and Ended are times in milliseconds since 1970; Ended is 0 before the end.
	Started, Ended int64
	// Steps is the number of steps so far.
	Steps int
	// Result and Error are how it ended.
	Result model.Value
	Error  *ActionError
	// Waiting is what the run waits for, and Queued the number of actions that wait for others of the run or the
	// space. Timers are the times of its timers, by ID. They are known of a run that has not ended, by Inspect.
	Waiting []workflow.Open
	Queued  map[string]bool
	Timers  map[string]int64
	Graph   *workflow.Graph
	// Positions are where the run is in its graph, and Passed returns how often it has come to a node. Both are known as Waiting is.
	Positions []workflow.Position
	Passed    func(fn, node int) int
	// Opaque reports that Waiting is not known: the code of the run calls functions of the worker's process.
	Opaque bool
}

// StatusOf returns what the document of a run says.
func StatusOf(id string, doc model.Value) (*Status, error) {
	if doc.IsAbsent() {
		return nil, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	s := &Status{ID: id, Args: doc.Get("args"), Result: doc.Get("result")}
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
	if e := doc.Get("error"); !e.IsAbsent() {
		s.Error = &ActionError{}
		s.Error.Type, _ = e.Get("type").AsString()
		s.Error.Message, _ = e.Get("message").AsString()
		if d := e.Get("detail"); !d.IsAbsent() {
			s.Error.Detail = []byte(d.String())
		}
	}
	return s, nil
}

// Inspect returns the status of a run with what it waits for. It makes the run again from its documents; an error
// may mean that they have changed between two reads.
func Inspect(id string, read func(doc string) (model.Value, error)) (*Status, error) {
	doc, err := read(Doc(id))
	if err != nil {
		return nil, err
	}
	s, err := StatusOf(id, doc)
	if err != nil || s.State != Running {
		return s, err
	}
	graph, err := read(graphDoc(s.Version))
	if err != nil {
		return s, err
	}
	text, is := graph.AsString()
	if !is {
		return s, fmt.Errorf("the graph of version %s is not in the space", s.Version)
	}
	if s.Graph, err = workflow.Decode([]byte(text)); err != nil {
		return s, err
	}
	p, err := workflow.Prepare(s.Graph)
	if err != nil {
		s.Opaque = true
		return s, nil
	}
	at, err := headOf(doc)
	if err != nil {
		return s, err
	}
	var failed error
	d, err := replay(p, id, doc, at, func(name string) model.Value {
		v, err := read(name)
		if err != nil {
			failed = err
		}
		return v
	})
	if err = errors.Join(failed, err); err != nil {
		return s, err
	}
	s.Waiting, s.Timers, s.Queued = d.run.Open(), d.timers, map[string]bool{}
	s.Positions, s.Passed = d.run.Positions(), d.run.Passed
	for _, w := range d.queue {
		s.Queued[w.ID] = true
	}
	return s, nil
}
