package space

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// A task may have a deadline (docs/adr/0095). The transaction that starts it sets a timer of the space, whose event to the
// stream of the action reports that the task has failed, like the event of a performer. So the deadline is in the log if and
// only if the task is, wakes its space, and ends the task once, in the order of the events. Whatever else ends the task
// cancels the timer.

// DeadlineError is the type of the error of a task that has not ended when its deadline passed. It is a kind of timeoutError.
const DeadlineError = "DeadlineError"

// timeoutError is the type that a workflow handles if it handles every error about time.
const timeoutError = "TimeoutError"

// taskPrefix begins the names of the timers for deadlines; programs cannot use it.
const taskPrefix = "=task."

// timerOfTask returns the name of the timer for the deadline of a task.
func timerOfTask(action, key string) string { return taskPrefix + action + "." + model.NameOf(key) }

// TaskOfTimer returns ACTION.KEY of the task whose deadline a timer is, and false for any other timer. A key that is no name is
// replaced by its hash.
func TaskOfTimer(timer string) (task string, is bool) { return strings.CutPrefix(timer, taskPrefix) }

// Deadline lets a task fail with a DeadlineError if it has not ended after a duration from its start. If the action has a deadline, too, the
// sooner one counts. DeadlineAt has a time instead.
func Deadline(d time.Duration) TaskOption {
	return func(s *starting) { s.deadline, s.limited = d, true }
}

// DeadlineAt is Deadline with a time instead of a duration. A task that is started at or after that time fails at once: it is not attempted, and Done
// is called. The zero time means never. Of several deadlines the soonest one counts.
func DeadlineAt(at time.Time) TaskOption {
	return func(s *starting) { s.by = at }
}

// limit is when a task fails unless it has ended, and how its error describes that. The zero limit is none.
type limit struct {
	at    time.Time
	words string
}

// deadline returns the limit of a task that is started.
func (l *taskList) deadline(t *transaction, how *starting) (of limit, err error) {
	within := l.spec.Deadline
	if how.limited {
		if how.deadline <= 0 {
			return of, fmt.Errorf("the deadline is after %s; it must be after its start", how.deadline)
		}
		if within == 0 || how.deadline < within {
			within = how.deadline
		}
	}
	if within > 0 {
		of = limit{time.UnixMilli(t.core.ledger.Wall()).Add(within), "within " + within.String()}
	}
	if !how.by.IsZero() && (within == 0 || how.by.Before(of.at)) {
		of = limit{how.by, "by " + how.by.UTC().Format(time.RFC3339Nano)}
	}
	return of, nil
}

// setDeadline sets the timer for the deadline of a task that is started.
func (l *taskList) setDeadline(t *transaction, task *Task, of limit) error {
	if of.at.IsZero() {
		return nil
	}
	c := Completion{Key: task.Key, N: task.N, Err: l.spec.textOf(&WorkError{
		Type: DeadlineError, Ancestors: []string{timeoutError}, Message: "the task has not ended " + of.words,
	})}
	s := model.Send{To: t.space, Stream: l.name, Timer: timerOfTask(l.name, task.Key), Payload: c.Value()}
	unset(&t.attempt.Draft, s.Timer)
	if err := t.wait(&s, of.at); err != nil {
		return err
	}
	t.attempt.Sends = append(t.attempt.Sends, s)
	task.Until = s.NotBefore
	return nil
}

// dropDeadline cancels the timer for the deadline of a task that is not pending any more.
func (l *taskList) dropDeadline(t *transaction, task *Task) {
	if task.Until == 0 {
		return
	}
	task.Until = 0
	name := timerOfTask(l.name, task.Key)
	unset(&t.attempt.Draft, name)
	t.attempt.Cancels = append(t.attempt.Cancels, name)
}

// isDeadline reports whether an event is that of the deadline of a task.
func isDeadline(ev *model.Event) bool {
	_, is := TaskOfTimer(ev.Timer)
	return is && ev.Slot > 0
}

// textOf returns the text of an error of the action.
func (a *ActionSpec) textOf(f *WorkError) string {
	if a.Failed != nil {
		return a.Failed(f)
	}
	return f.Text()
}

func (a *ActionSpec) checkDeadline() error {
	switch {
	case a.Deadline < 0 || a.Deadline > model.MaxDelay:
		return fmt.Errorf("its tasks have a deadline after %s; up to ten years are possible, and 0 is for none", a.Deadline)
	case a.Deadline > 0 && a.Input:
		return fmt.Errorf("an input has no deadline: the number of attempts and their timeout bound a fetch")
	}
	return nil
}
