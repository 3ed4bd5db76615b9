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
// sooner one counts.
func Deadline(d time.Duration) TaskOption {
	return func(s *starting) { s.deadline, s.limited = d, true }
}

// deadline returns the limit of a task that is started, 0 for none.
func (l *taskList) deadline(how *starting) (time.Duration, error) {
	of := l.spec.Deadline
	if !how.limited {
		return of, nil
	}
	if how.deadline <= 0 {
		return 0, fmt.Errorf("the deadline is after %s; it must be after its start", how.deadline)
	}
	if of > 0 {
		return min(of, how.deadline), nil
	}
	return how.deadline, nil
}

// setDeadline sets the timer for the deadline of a task that is started.
func (l *taskList) setDeadline(t *transaction, task *Task, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	c := Completion{Key: task.Key, N: task.N, Err: l.spec.textOf(&WorkError{
		Type: DeadlineError, Ancestors: []string{timeoutError}, Message: fmt.Sprintf("the task has not ended within %s", d),
	})}
	s := model.Send{To: t.space, Stream: l.name, Timer: timerOfTask(l.name, task.Key), Payload: c.Value()}
	unset(&t.attempt.Draft, s.Timer)
	if err := t.wait(&s, time.UnixMilli(t.core.ledger.Wall()).Add(d)); err != nil {
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
