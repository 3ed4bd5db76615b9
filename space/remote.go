package space

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
)

// Remote makes an external action one whose tasks the owner of the space hands to performers: processes that have a connection
// to the servers, and know nothing else of the deployment (docs/performers.md). Package worker/tasks does that; the core only
// stores these terms.
type Remote struct {
	// Attempts, Backoff and MaxBackoff are those of tasks.Performer.
	Attempts            int
	Backoff, MaxBackoff time.Duration
	// Timeout limits one attempt, from the claim on; default 0, without a limit.
	Timeout time.Duration
	// AtATime limits the tasks of the action in one space that performers have at a time; default 256.
	AtATime int
	// Rate limits how many tasks of the action a worker hands out per second; 0 for no limit.
	Rate float64
	// Heartbeat is how often a performer has to report that it is still at work; default 10 s. After three times as long without
	// a message, the attempt has failed.
	Heartbeat time.Duration
	// Queue names the performers that get the tasks; "" for those that serve the whole action. QueueBy is the field of the
	// input that names them for a single task.
	Queue, QueueBy string
	// Work returns what a performer gets of a task, and Failed the text of an error that it returns; nil for the input and the
	// attempt of the task, and for the type and the message.
	Work   func(t *Task) Work
	Failed func(f *WorkError) string
}

// Work is what a performer gets of a task.
type Work struct {
	In model.Value
	// Run is the workflow's run that the task belongs to, "" for none.
	Run string
	// Attempt counts from 1.
	Attempt int
	// Timeout is a limit of this attempt, beside that of the action; 0 for none.
	Timeout time.Duration
	// Queue is the value of the field QueueBy; it is not checked.
	Queue model.Value
}

// WorkError is the error of a performer.
type WorkError struct {
	Type      string
	Ancestors []string // types that it is a kind of, the nearest first
	Message   string
	Detail    model.Value
}

// Text returns the type and the message. An error of type Error has none.
func (f *WorkError) Text() string {
	switch {
	case f.Type == "" || f.Type == "Error":
		return cmp.Or(f.Message, "failed")
	case f.Message == "":
		return f.Type
	}
	return f.Type + ": " + f.Message
}

// Check returns an error for terms that are not valid.
func (r *Remote) Check() error {
	switch {
	case r.Attempts < 0 || r.AtATime < 0 || min(r.Backoff, r.MaxBackoff) < 0:
		return fmt.Errorf("attempts %d, tasks at a time %d and backoff %s to %s must not be negative; 0 is the default", r.Attempts, r.AtATime, r.Backoff, r.MaxBackoff)
	case !(r.Rate >= 0 && r.Rate <= maxRate): // NaN, too
		return fmt.Errorf("a rate of %g tasks per second; between 0, for no limit, and %d are possible", r.Rate, maxRate)
	case r.Heartbeat != 0 && (r.Heartbeat < MinHeartbeat || r.Heartbeat > MaxHeartbeat):
		return fmt.Errorf("a heartbeat every %s; between %s and %s are possible", r.Heartbeat, MinHeartbeat, MaxHeartbeat)
	case r.Queue != "" && r.QueueBy != "":
		return errors.New("a queue and a field that names the queue; use one of them")
	case r.Queue != "":
		return model.CheckName("queue", r.Queue)
	}
	return nil
}

const (
	// MinHeartbeat and MaxHeartbeat bound Remote.Heartbeat.
	MinHeartbeat = 100 * time.Millisecond
	MaxHeartbeat = time.Hour
	maxRate      = 1_000_000
	// MaxProgress is the largest size of the progress of a task, as JSON, in bytes.
	MaxProgress = 4 << 10
)

// Defaults of the pauses between attempts.
const (
	defaultBackoff    = time.Second
	defaultMaxBackoff = time.Minute
)

// PauseAfter returns how long to wait after n failed attempts at a task: the first pause, doubled up to the longest one. 0 stands for the default of
// each, 1 s and a minute.
func PauseAfter(n int, first, longest time.Duration) time.Duration {
	d, most := cmp.Or(first, defaultBackoff), cmp.Or(longest, defaultMaxBackoff)
	for ; n > 1 && d < most; n-- {
		d *= 2
	}
	return min(d, max(most, first))
}

// WorkOf returns what a performer gets of a task.
func (r *Remote) WorkOf(t *Task) Work {
	if r.Work != nil {
		return r.Work(t)
	}
	return Work{In: t.In, Attempt: t.Attempts + 1, Queue: t.In.Get(r.QueueBy)}
}

// TextOf returns the text of an error.
func (r *Remote) TextOf(f *WorkError) string {
	if r.Failed != nil {
		return r.Failed(f)
	}
	return f.Text()
}

// QueueOf returns the queue of the work, "" for the performers of the whole action. What cannot be the name of one is an error.
func (r *Remote) QueueOf(w *Work) (string, error) {
	if r.QueueBy == "" || w.Queue.IsAbsent() || w.Queue.IsNull() {
		return r.Queue, nil
	}
	name, is := w.Queue.AsString()
	if !is {
		return "", fmt.Errorf("%s, which names the queue, is %s; it must be a text", r.QueueBy, brief(w.Queue))
	}
	if name == "" {
		return "", nil
	}
	return name, model.CheckName("queue", name)
}
