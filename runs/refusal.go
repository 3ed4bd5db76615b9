package runs

import (
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Reason is why an operation on a run was refused.
type Reason string

// Reasons of a Refusal. Each has an error that errors.Is finds in it.
const (
	NoRun      Reason = "no-run"      // the space has no run of that ID
	Ended      Reason = "ended"       // the run has ended
	NotEnded   Reason = "not-ended"   // the run has not failed, and was not cancelled
	Exists     Reason = "exists"      // there is a run of that ID with another workflow or other arguments
	NoWorkflow Reason = "no-workflow" // the program has no workflow of that name, or not the version of the run
	Invalid    Reason = "invalid"     // the payload is not valid
	Full       Reason = "full"        // the space has as many runs as are possible
	NotKept    Reason = "not-kept"    // steps that the operation needs are not kept any more
	Undone     Reason = "undone"      // undo steps of the run have been executed, or are being executed
	Misfit     Reason = "misfit"      // what the run has done does not fit the program's version of its workflow
)

// Errors of refused operations, by reason.
var (
	ErrNoRun      = errors.New("there is no such run")
	ErrEnded      = errors.New("the run has ended")
	ErrNotEnded   = errors.New("the run has not failed, and was not cancelled")
	ErrExists     = errors.New("the run exists")
	ErrNoWorkflow = errors.New("there is no such workflow")
	ErrInvalid    = errors.New("the request is not valid")
	ErrFull       = errors.New("the space has too many runs")
	ErrNotKept    = errors.New("the steps of the run are not kept")
	ErrUndone     = errors.New("what the run has done is undone")
	ErrMisfit     = errors.New("the steps of the run do not fit the workflow")
)

var errorOf = map[Reason]error{
	NoRun: ErrNoRun, Ended: ErrEnded, NotEnded: ErrNotEnded, Exists: ErrExists, NoWorkflow: ErrNoWorkflow, Invalid: ErrInvalid, Full: ErrFull,
	NotKept: ErrNotKept, Undone: ErrUndone, Misfit: ErrMisfit,
}

// Refusal is the answer to an operation that has no effect. errors.Is finds the error of its reason.
type Refusal struct {
	Reason  Reason
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns the error of the reason, nil for a reason that this version does not know.
func (r *Refusal) Unwrap() error { return errorOf[r.Reason] }

func refuse(why Reason, format string, args ...any) error {
	return &Refusal{Reason: why, Message: fmt.Sprintf(format, args...)}
}

// answering makes refusals results, of events whose payload requests that: {"answer": true}. Others fail with them,
// so that a sender that does not read results, such as a handler, loses no mistake: it becomes a dead letter.
func answering(handle space.Handler) space.Handler {
	return func(tx *space.Tx, ev *model.Event) (model.Value, error) {
		out, err := handle(tx, ev)
		var r *Refusal
		if asked, _ := ev.Payload.Get("answer").AsBool(); !asked || !errors.As(err, &r) {
			return out, err
		}
		fields := []model.Field{model.F("refused", string(r.Reason)), model.F("message", r.Message)}
		if id, is := ev.Payload.Get("run").AsString(); is && len(id) <= model.MaxNameLen {
			fields = append(fields, model.F("run", id))
		}
		return model.Object(fields...), nil
	}
}
