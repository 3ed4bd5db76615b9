package runs

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// EventKind is what a step of a run was.
type EventKind string

// Kinds of Event.
const (
	EventStart  EventKind = "start"
	EventDone   EventKind = "done"   // an attempt of an action has ended with a result
	EventFailed EventKind = "failed" // an attempt of an action has failed
	EventSignal EventKind = "signal"
	EventMet    EventKind = "condition" // a condition holds that the run waits for, or has failed
	EventTimer  EventKind = "timer"     // one or more timers: of sleeps, timeouts of waits, pauses before attempts
	EventCancel EventKind = "cancel"    // of the run
	EventAbort  EventKind = "abort"     // the run was ended with an error, because of a bound
	EventRoom   EventKind = "room"      // there was room for actions that had waited for those of other runs
	EventRetry  EventKind = "retry"     // the run was tried again from here
	EventReset  EventKind = "reset"     // the run was reset to the step before
)

// Event is a step of a run.
type Event struct {
	// Step numbers the steps from 1 on. A reset to a step keeps the steps up to it.
	Step int `json:"step"`
	// At is the time in milliseconds since 1970.
	At   int64     `json:"at"`
	Kind EventKind `json:"kind"`
	// Work is the call whose attempt has ended, Action what it calls, Line its place in the source, or that of the wait, Attempt the attempt.
	Work    string `json:"work,omitzero"`
	Action  string `json:"action,omitzero"`
	Line    int32  `json:"line,omitzero"`
	Attempt int    `json:"attempt,omitzero"`
	// Signal is the name of a signal.
	Signal string `json:"signal,omitzero"`
	// Wait names the wait whose condition holds.
	Wait string `json:"wait,omitzero"`
	// Value is a result, or the value of a signal or a condition.
	Value jsontext.Value `json:"value,omitzero"`
	Error *ActionError   `json:"error,omitzero"`
	// Why is the reason of a cancellation.
	Why string `json:"why,omitzero"`
	// Steps is how many steps the run had before a retry or a reset.
	Steps int `json:"steps,omitzero"`
	// Started is the number of attempts of actions that the step has started.
	Started int `json:"started,omitzero"`
}

// History is what a run has done, as far as its steps are kept.
type History struct {
	Status *Status
	Events []Event
}

// Gone returns the number of steps before the first that is kept.
func (h *History) Gone() int {
	if len(h.Events) == 0 {
		return h.Status.Steps
	}
	return h.Events[0].Step - 1
}

// add adds the steps of a page that are not known.
func (s *steps) add(page model.Value, g *workflow.Graph) error {
	var numbers []int
	for key := range page.All() {
		n, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("%.50q is not the number of a record", key)
		}
		if n >= s.last() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		text, _ := page.Get(strconv.Itoa(n)).AsString()
		var rec record
		if err := json.Unmarshal([]byte(text), &rec); err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		e := rec.event()
		e.Step = n + 1
		if e.Work != "" {
			e.Action, e.Line = g.ActionOf(e.Work)
		}
		if e.Wait != "" {
			e.Line = g.LineOf(e.Wait)
		}
		s.events = append(s.events, e)
	}
	return nil
}

// event describes the step of a record.
func (rec *record) event() Event {
	e := Event{At: rec.Now, Kind: EventRoom, Started: rec.Started}
	switch {
	case rec.Resume != nil:
		e.Kind, e.Steps = EventRetry, rec.Resume.From
		if rec.Resume.Reset {
			e.Kind = EventReset
		}
	case rec.Begin:
		e.Kind = EventStart
	case rec.Done != nil:
		e.Kind, e.Work, e.Attempt, e.Value = EventDone, rec.Done.Work, rec.Done.Attempt, rec.Done.Result
	case rec.Failed != nil:
		e.Kind, e.Work, e.Attempt = EventFailed, rec.Failed.Work, rec.Failed.Attempt
		e.Error = errorIn(rec.Failed)
	case rec.Signal != nil:
		e.Kind, e.Signal, e.Value = EventSignal, rec.Signal.Name, rec.Signal.Value
	case rec.Met != nil:
		e.Kind, e.Wait, e.Value = EventMet, rec.Met.Wait, rec.Met.Value
		if rec.Met.Failed != nil {
			e.Error = errorIn(rec.Met.Failed)
		}
	case rec.Abort != nil:
		e.Kind, e.Error = EventAbort, errorIn(rec.Abort)
	case rec.Cancel != "":
		e.Kind, e.Why = EventCancel, rec.Cancel
	case rec.Due:
		e.Kind = EventTimer
	}
	return e
}

func errorIn(f *workflow.Failed) *ActionError {
	return &ActionError{Type: f.Type, Ancestors: f.Ancestors, Message: f.Message, Detail: f.Detail}
}
