package workflow

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// maxSignals is the largest number of signals that a run keeps until it waits for them.
const maxSignals = 1000

// signals are the signals of a run, by name: frames that wait for one, or values that no frame has waited for
// yet, never both. The first in is the first out.
type signals struct {
	waiting map[string][]*frame
	kept    []Signal
}

// leave removes a frame that does not wait any more.
func (s *signals) leave(f *frame, name string) {
	if len(s.waiting[name]) == 0 { // it has found a kept signal, and never waited
		return
	}
	s.waiting[name] = slices.DeleteFunc(s.waiting[name], func(o *frame) bool { return o == f })
	if len(s.waiting[name]) == 0 {
		delete(s.waiting, name)
	}
}

func (s *signals) enter(f *frame, name string) {
	if s.waiting == nil {
		s.waiting = map[string][]*frame{}
	}
	s.waiting[name] = append(s.waiting[name], f)
}

// signal gives a signal to the first frame that waits for it, or keeps it.
func (r *Run) signal(in *Signal) error {
	if list := r.signals.waiting[in.Name]; len(list) > 0 {
		return r.signalled(list[0], in.Value)
	}
	if len(r.signals.kept) >= maxSignals { // of those that come during the undo steps, more are lost
		r.interrupt(&Failure{Name: LimitError, Message: fmt.Sprintf("more than %d signals that the workflow has not waited for", maxSignals)}, false)
		return nil
	}
	r.signals.kept = append(r.signals.kept, *in)
	return nil
}

// signalled continues a frame with the value of its signal.
func (r *Run) signalled(f *frame, value jsontext.Value) error {
	name := f.wait.signal
	if err := r.waited(f, value); err != nil {
		return fmt.Errorf("the value of signal %s: %w", name, err)
	}
	return nil
}

// waited continues a frame with the value that it has waited for.
func (r *Run) waited(f *frame, value jsontext.Value) error {
	var v starlark.Value = starlark.None
	if len(value) > 0 {
		var err error
		if v, err = FromJSON(value); err != nil {
			return err
		}
	}
	n := r.node(f, f.wait.node)
	r.abandon(f)
	if n.Attempt {
		v = &Result{Value: v}
	}
	if err := r.resume(f, n, v); err != nil {
		r.fail(f, failureOf(err))
	}
	return nil
}

// timedOut continues a frame that has waited too long.
func (r *Run) timedOut(f *frame) {
	message := fmt.Sprintf("signal %s has not come in time", f.wait.signal)
	if c := r.node(f, f.wait.node).Until; c != nil {
		message = fmt.Sprintf("the condition has not been met in time: %s", shorten(oneLine(c.Text), maxNote))
	}
	r.waitFailed(f, &Failure{Name: TimeoutError, Message: message})
}

// waitFailed continues a frame whose wait has failed.
func (r *Run) waitFailed(f *frame, why *Failure) {
	at := f.wait.node
	n := r.node(f, at)
	r.abandon(f)
	r.mark(f, at, failedAt)
	if !n.Attempt {
		r.fail(f, why)
		return
	}
	if err := r.resume(f, n, &Result{Error: why}); err != nil {
		r.fail(f, failureOf(err))
	}
}

// await waits for a signal, or for a condition.
func (r *Run) await(f *frame, n *Node, at int) error {
	name, seconds, err := r.awaited(f, n)
	if err != nil {
		return err
	}
	if n.Until != nil {
		return r.awaitCondition(f, n, at, seconds)
	}
	f.wait = &activation{node: at, signal: name, since: r.now}
	if i := slices.IndexFunc(r.signals.kept, func(s Signal) bool { return s.Name == name }); i >= 0 {
		value := r.signals.kept[i].Value
		r.signals.kept = slices.Delete(r.signals.kept, i, i+1)
		return r.signalled(f, value)
	}
	r.signals.enter(f, name)
	switch {
	case seconds < 0:
	case seconds == 0:
		r.timedOut(f)
	default:
		r.setTimer(f, waitID(f, at), seconds)
	}
	return nil
}

// awaited returns the name, "" of a condition, and the timeout of a wait, -1 if it has none.
func (r *Run) awaited(f *frame, n *Node) (name string, seconds float64, err error) {
	v, err := r.eval(n.Code, f.vars)
	if err != nil {
		return "", 0, err
	}
	pair, is := v.(starlark.Tuple)
	if !is || len(pair) != 2 {
		return "", 0, fmt.Errorf("a wait has no pair of a name and a timeout")
	}
	name, is = starlark.AsString(pair[0])
	if (!is || name == "") && n.Until == nil {
		return "", 0, fmt.Errorf("wait takes the name of a signal, not %s", pair[0].Type())
	}
	if pair[1] == starlark.None {
		return name, -1, nil
	}
	if seconds, err = Seconds(pair[1]); err != nil {
		return "", 0, fmt.Errorf("wait(%q): the timeout: %w", name, err)
	}
	return name, max(seconds, 0), nil
}
