package workflow

import "github.com/go-json-experiment/json/jsontext"

// Input is an event of a run. One of its fields is set besides Now, Deadline (of Begin) and AtOnce (of Cancel).
type Input struct {
	// Now is the time in milliseconds since 1970.
	Now   int64          `json:"now"`
	Begin jsontext.Value `json:"begin,omitzero"` // the arguments, an object by name
	// Deadline is how long the run may take, in milliseconds, if that is shorter than the deadline of the graph.
	Deadline int64   `json:"deadline,omitzero"`
	Done     *Done   `json:"done,omitzero"`
	Failed   *Failed `json:"failed,omitzero"`
	Timer    string  `json:"timer,omitzero"` // the ID of a timer that has fired
	Signal   *Signal `json:"signal,omitzero"`
	Met      *Met    `json:"met,omitzero"`
	Abort    *Failed `json:"abort,omitzero"` // ends the run with an error
	Cancel   string  `json:"cancel,omitzero"`
	// AtOnce makes Cancel end the run without the undo steps that have not ended.
	AtOnce bool `json:"at_once,omitzero"`
	// Again is the ID of work that is tried again, with as many attempts as its policy has, or of the timer of a
	// wait that begins anew.
	Again string `json:"again,omitzero"`
}

// Signal is a value that is sent to the run under a name. It is kept until the run waits for it.
type Signal struct {
	Name  string         `json:"name"`
	Value jsontext.Value `json:"value,omitzero"`
}

// Done reports that an attempt of an action has succeeded.
type Done struct {
	Work    string         `json:"work"`
	Attempt int            `json:"attempt"`
	Result  jsontext.Value `json:"result,omitzero"`
}

// Failed reports that an attempt of an action has failed.
type Failed struct {
	Work      string         `json:"work"`
	Attempt   int            `json:"attempt"`
	Type      string         `json:"type"`
	Ancestors []string       `json:"ancestors,omitzero"`
	Message   string         `json:"message,omitzero"`
	Detail    jsontext.Value `json:"detail,omitzero"`
}

// Effects are the effects that a step requests.
type Effects struct {
	Start   []Work
	Cancel  []string // IDs of work that is no longer needed
	Timers  []Timer
	Drop    []string // IDs of timers that are no longer needed
	Undoing *Failure // the error of the run, when its undo steps begin
	Outcome *Outcome // of the run, once it has ended
}

// Work is an attempt of an action, or of a child. Its ID stays the same over its attempts, and is unique in the run.
type Work struct {
	ID      string
	Attempt int // starts with 1
	Action  string
	// Child is the workflow to start a run of; then Args is an object, the arguments of that run, and Named has the
	// members id and space, texts, if they are given.
	Child   string         `json:",omitzero"`
	Args    jsontext.Value // an array of the positional arguments
	Named   jsontext.Value // an object of the named ones
	Timeout int64          // in milliseconds from the delivery; 0 if there is none
}

// Timer requests an Input at a time, in milliseconds since 1970.
type Timer struct {
	ID string
	At int64
}

// Outcome is how a run has ended: with a result, or with an error.
type Outcome struct {
	Result jsontext.Value
	Error  *Failure
}
