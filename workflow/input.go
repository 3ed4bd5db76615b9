package workflow

import "github.com/go-json-experiment/json/jsontext"

// Input is what has happened to a run. One of its fields beside Now is set.
type Input struct {
	// Now is the time in milliseconds since 1970.
	Now    int64          `json:"now"`
	Begin  jsontext.Value `json:"begin,omitzero"` // the arguments, an object by name
	Done   *Done          `json:"done,omitzero"`
	Failed *Failed        `json:"failed,omitzero"`
	Timer  string         `json:"timer,omitzero"` // the ID of one that has come
	Cancel string         `json:"cancel,omitzero"`
}

// Done says that an attempt of an action has ended well.
type Done struct {
	Work    string         `json:"work"`
	Attempt int            `json:"attempt"`
	Result  jsontext.Value `json:"result,omitzero"`
}

// Failed says that an attempt of an action has failed.
type Failed struct {
	Work      string         `json:"work"`
	Attempt   int            `json:"attempt"`
	Type      string         `json:"type"`
	Ancestors []string       `json:"ancestors,omitzero"`
	Message   string         `json:"message,omitzero"`
	Detail    jsontext.Value `json:"detail,omitzero"`
}

// Effects are what is to be done after a step.
type Effects struct {
	Start   []Work
	Cancel  []string // the IDs of work that nobody waits for any more
	Timers  []Timer
	Drop    []string // the IDs of timers that are not wanted any more
	Outcome *Outcome // of the run, when it has ended
}

// Work is an attempt at an action. Its ID stays the same over its attempts, and is unique in the run.
type Work struct {
	ID      string
	Attempt int // from 1 on
	Action  string
	Args    jsontext.Value // an array of the positional arguments
	Named   jsontext.Value // an object of the named ones
	Timeout int64          // in milliseconds from the delivery; 0 if there is none
}

// Timer asks for an Input at a time, in milliseconds since 1970.
type Timer struct {
	ID string
	At int64
}

// Outcome is how a run has ended: with a result, or with an error.
type Outcome struct {
	Result jsontext.Value
	Error  *Failure
}
