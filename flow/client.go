package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// Status is the state of a run, see [runs.Status].
type Status = runs.Status

// Error is the error of an action or of a run: a type, the types that it is a kind of, and a message. An action
// that returns one fails with that type; a run that failed has one. See [runs.ActionError].
type Error = runs.ActionError

// States of a run.
const (
	Running   = runs.Running
	Done      = runs.Done
	Failed    = runs.Failed
	Cancelled = runs.Cancelled
)

// Runs are the runs of workflows in a space, for clients.
type Runs struct{ space settle.Space }

// In returns the runs of a space.
func In(space settle.Space) Runs { return Runs{space} }

// Events that a program with workflows handles.
var (
	startEvent  = settle.NewRequest[startPayload, answer](runs.StreamStart)
	signalEvent = settle.NewRequest[signalPayload, answer](runs.StreamSignal)
	cancelEvent = settle.NewRequest[cancelPayload, answer](runs.StreamCancel)
)

type startPayload struct {
	Workflow   string       `json:"workflow"`
	Run        string       `json:"run"`
	Args       settle.Value `json:"args,omitzero"`
	Deadline   float64      `json:"deadline,omitzero"` // in seconds
	Attributes settle.Value `json:"attributes,omitzero"`
	Priority   int          `json:"priority,omitzero"`
	asks
}

type signalPayload struct {
	Run    string       `json:"run"`
	Signal string       `json:"signal"`
	Value  settle.Value `json:"value,omitzero"`
	asks
}

type cancelPayload struct {
	Run    string `json:"run"`
	Reason string `json:"why,omitzero"`
	AtOnce bool   `json:"at_once,omitzero"`
	asks
}

// Start starts a run of a workflow under an ID, with arguments by name: a map, or a struct. It returns false if the run
// exists already, with the same workflow and arguments; ErrExists is in the error if it has others. The options of a run
// that exists remain as they are. See Refusal.
func (r Runs) Start(ctx context.Context, workflow, id string, args any, options ...StartOption) (bool, error) {
	if err := runs.CheckID(id); err != nil {
		return false, err
	}
	p := startPayload{Workflow: workflow, Run: id, asks: asking}
	for _, set := range options {
		if err := set(&p); err != nil {
			return false, fmt.Errorf("start run %s: %w", id, err)
		}
	}
	if args != nil {
		var err error
		if p.Args, err = settle.ValueOf(args); err != nil {
			return false, fmt.Errorf("start run %s: the arguments: %w", id, err)
		}
	}
	out, err := answered(startEvent.Call(ctx, r.space, settle.NewID(), p))
	return out.Started, err
}

// EndWithin makes the run fail with a DeadlineError, if it has not ended after a duration, like Deadline. Of the two, the
// shorter one counts.
func EndWithin(d time.Duration) StartOption {
	return func(p *startPayload) error {
		if d <= 0 {
			return fmt.Errorf("the deadline is %v; it must be positive", d)
		}
		p.Deadline = d.Seconds()
		return nil
	}
}

// Priority sets the priority of a run, from -9 to 9; 0 is usual. Of the calls of an action that wait in a space, those of
// runs with the highest priority are performed first. Children have that of their parent.
func Priority(n int) StartOption {
	return func(p *startPayload) error {
		if n < -runs.MaxPriority || n > runs.MaxPriority {
			return fmt.Errorf("%w: the priority is %d; it must be from %d to %d", ErrInvalid, n, -runs.MaxPriority, runs.MaxPriority)
		}
		p.Priority = n
		return nil
	}
}

// Signal sends a value to a run, which receives it by wait. It is kept until then.
func (r Runs) Signal(ctx context.Context, id, signal string, value any) error {
	p := signalPayload{Run: id, Signal: signal, asks: asking}
	if value != nil {
		var err error
		if p.Value, err = settle.ValueOf(value); err != nil {
			return fmt.Errorf("signal %s of run %s: %w", signal, id, err)
		}
	}
	_, err := answered(signalEvent.Call(ctx, r.space, settle.NewID(), p))
	return err
}

// Cancel ends a run with a CancelledError. Its pending actions are cancelled, and then its undo steps are executed, if it
// has any. During these, it has no effect.
func (r Runs) Cancel(ctx context.Context, id, why string) error {
	_, err := answered(cancelEvent.Call(ctx, r.space, settle.NewID(), cancelPayload{Run: id, Reason: why, asks: asking}))
	return err
}

// CancelAtOnce is Cancel without the undo steps. During these, it ends them: the error of the run has the number of those
// that were skipped.
func (r Runs) CancelAtOnce(ctx context.Context, id, why string) error {
	_, err := answered(cancelEvent.Call(ctx, r.space, settle.NewID(), cancelPayload{Run: id, Reason: why, AtOnce: true, asks: asking}))
	return err
}

// List returns the runs of the space, without arguments and outcomes, by ID.
func (r Runs) List(ctx context.Context) (map[string]*Status, error) {
	v, _, err := r.space.Get(ctx, runs.Index)
	if err != nil {
		return nil, err
	}
	return runs.List(v), nil
}

// Status returns the state of a run, as the log has it, and what it waits for.
func (r Runs) Status(ctx context.Context, id string) (*Status, error) {
	return r.Reader(id).Status(ctx)
}

// Progress returns what the performer of a call that a run waits for, one of its Waiting, has reported last, absent if there is nothing.
// It is state of the task and not of the run: a watch of the run does not observe it.
func (r Runs) Progress(ctx context.Context, s *Status, call *workflow.Open) (settle.Value, error) {
	return s.Progress(r.space.Name(), call, func(doc string) (settle.Value, error) {
		v, _, err := r.space.Get(ctx, doc)
		return v, err
	})
}

// Wait waits until a run has ended, and returns its status. A run that does not exist is waited for, too.
func (r Runs) Wait(ctx context.Context, id string) (*Status, error) {
	if err := runs.CheckID(id); err != nil {
		return nil, err
	}
	for u, err := range r.space.WatchStored(ctx, runs.Doc(id), settle.FromLastSeen()) {
		if err != nil {
			return nil, err
		}
		if !u.Exists {
			continue
		}
		if s, err := runs.StatusOf(id, u.Value); err != nil || s.State != Running {
			return s, err
		}
	}
	return nil, context.Cause(ctx)
}

// Result waits until a run has ended, and decodes its result. If it has failed or was cancelled, the error is an *Error.
func Result[T any](ctx context.Context, in Runs, id string) (result T, err error) {
	s, err := in.Wait(ctx, id)
	if err != nil {
		return result, err
	}
	if s.Error != nil {
		return result, s.Error
	}
	return result, json.Unmarshal([]byte(s.Result.String()), &result)
}

// Describe returns what a run waits for, in words, sorted by its IDs.
func Describe(s *Status) []string {
	var list []string
	for _, w := range s.Waiting {
		list = append(list, describe(s, w))
	}
	return list
}

func describe(s *Status, w workflow.Open) string {
	line := 0
	if s.Graph != nil && w.Func < len(s.Graph.Funcs) && w.Node < len(s.Graph.Funcs[w.Func].Nodes) {
		line = int(s.Graph.Funcs[w.Func].Nodes[w.Node].Line)
	}
	text := "a timer"
	switch {
	case w.Action != "":
		text = "action " + w.Action
		if w.Attempt > 1 {
			text += fmt.Sprintf(", attempt %d", w.Attempt)
		}
		if s.Queued[w.ID] {
			text += ", queued"
		}
		if at, set := s.Timers["retry "+w.ID]; set && w.Retry {
			text += ", at " + timeText(at)
		}
	case w.Child != "":
		text = describeChild(s, w)
	case w.Signal != "":
		text = "signal " + w.Signal
		if at, set := s.Timers[w.ID]; set {
			text += ", until " + timeText(at)
		}
	default:
		if at, set := s.Timers[w.ID]; set {
			text = "sleep until " + timeText(at)
		}
	}
	return fmt.Sprintf("%s (line %d, %s)", text, line, w.ID)
}

func timeText(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
