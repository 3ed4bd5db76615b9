package flow

import (
	"context"
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/runs"
)

// Refusal is the error of an operation that has had no effect: its reason, and a message. errors.Is finds one of the
// errors below in it.
type Refusal = runs.Refusal

// Errors of operations on runs.
var (
	ErrNoRun      = runs.ErrNoRun
	ErrEnded      = runs.ErrEnded      // Signal, Cancel
	ErrExists     = runs.ErrExists     // Start: with another workflow, or other arguments
	ErrNoWorkflow = runs.ErrNoWorkflow // Start, Retry, Reset
	ErrInvalid    = runs.ErrInvalid
	ErrFull       = runs.ErrFull     // Start: the space has too many runs
	ErrNotEnded   = runs.ErrNotEnded // Retry: the run has not failed, and was not cancelled
	ErrNotKept    = runs.ErrNotKept  // Retry, Reset
	ErrUndone     = runs.ErrUndone   // Retry, Reset: undo steps were executed
	ErrMisfit     = runs.ErrMisfit   // Retry, Reset, with Latest
)

var (
	retryEvent = settle.NewRequest[againPayload, answer](runs.StreamRetry)
	resetEvent = settle.NewRequest[againPayload, answer](runs.StreamReset)
)

// asks requests refusals as results; otherwise an event that is refused fails, and is a dead letter.
type asks struct {
	Answer bool `json:"answer"`
}

var asking = asks{Answer: true}

// answer is the result of an operation.
type answer struct {
	Run     string      `json:"run,omitzero"`
	Started bool        `json:"started,omitzero"`
	State   string      `json:"state,omitzero"`
	Steps   int         `json:"steps,omitzero"`
	Refused runs.Reason `json:"refused,omitzero"`
	Message string      `json:"message,omitzero"`
}

// answered returns a refusal as an error.
func answered(a answer, err error) (answer, error) {
	if err == nil && a.Refused != "" {
		err = &Refusal{Reason: a.Refused, Message: a.Message}
	}
	return a, err
}

// StartOption configures a run that is started.
type StartOption func(*startPayload) error

// Attributes are values by which Find finds the run: a map or a struct of texts, numbers and booleans. A run has at most
// 16, of 512 bytes of JSON. They stay as they are at the start of the run.
func Attributes(attributes any) StartOption {
	return func(p *startPayload) (err error) {
		if p.Attributes, err = settle.ValueOf(attributes); err != nil {
			err = fmt.Errorf("the attributes: %w", err)
		}
		return err
	}
}

type againPayload struct {
	Run    string `json:"run"`
	Step   int    `json:"step,omitzero"`
	Latest bool   `json:"latest,omitzero"`
	asks
}

// AgainOption configures a retry or a reset.
type AgainOption func(*againPayload)

// Latest lets the run go on in the version of the workflow that its program has now. It is refused, with ErrMisfit, unless
// the steps that are kept would have been the same in that version.
func Latest() AgainOption { return func(p *againPayload) { p.Latest = true } }

// Retry lets a run go on that has failed or was cancelled. What made it fail is tried again: an action with as many
// attempts as its policy has, under the same key, or a wait that has timed out. Results before that are kept.
func (r Runs) Retry(ctx context.Context, id string, options ...AgainOption) error {
	p := againPayload{Run: id, asks: asking}
	for _, set := range options {
		set(&p)
	}
	_, err := answered(retryEvent.Call(ctx, r.space, settle.NewID(), p))
	return err
}

// Reset drops the steps of a run after one of them, and lets it go on from there. What is pending is cancelled. What is
// performed from now on has other keys than before. History has the numbers of steps.
func (r Runs) Reset(ctx context.Context, id string, step int, options ...AgainOption) error {
	p := againPayload{Run: id, Step: step, asks: asking}
	for _, set := range options {
		set(&p)
	}
	_, err := answered(resetEvent.Call(ctx, r.space, settle.NewID(), p))
	return err
}

// History is what a run has done, as far as its steps are kept, see [runs.History].
type History = runs.History

// Event is a step of a run, see [runs.Event].
type Event = runs.Event

// History returns the steps of a run, those of one that has ended, too.
func (r Runs) History(ctx context.Context, id string) (*History, error) {
	x := r.Reader(id)
	return readRun(ctx, x, x.run.History)
}

// Filter selects runs, see [runs.Filter].
type Filter = runs.Filter

// Page are runs that a filter selects, the one started last first, see [runs.Page].
type Page = runs.Page

// Find returns the runs of the space that a filter selects, without arguments and outcomes, in pages.
func (r Runs) Find(ctx context.Context, f Filter) (*Page, error) {
	return runs.Find(&f, func(doc string) (settle.Value, error) {
		v, _, err := r.space.Get(ctx, doc)
		return v, err
	})
}

// Timeline are the attempts of a run, see [runs.Timeline].
type Timeline = runs.Timeline

// Timeline returns the attempts of actions and the children of a run, with their arguments and results, as far as its steps are kept.
func (r Runs) Timeline(ctx context.Context, id string) (*Timeline, error) {
	x := r.Reader(id)
	return readRun(ctx, x, x.run.Timeline)
}
