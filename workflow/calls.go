package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// arguments evaluates the arguments of a call.
func (r *Run) arguments(f *frame, c *Call) (args starlark.Tuple, named *starlark.Dict, err error) {
	v, err := r.eval(c.Args, f.vars)
	if err != nil {
		return nil, nil, err
	}
	pair, ok := v.(starlark.Tuple)
	if ok && len(pair) == 2 {
		args, ok = pair[0].(starlark.Tuple)
		if named, _ = pair[1].(*starlark.Dict); ok && named != nil {
			return args, named, nil
		}
	}
	return nil, nil, fmt.Errorf("the arguments of %s are no pair of a tuple and a dict", c.describe())
}

// called is a call with its evaluated arguments.
type called struct {
	node   int
	number int
	call   *Call
	args   starlark.Tuple
	named  *starlark.Dict
}

func (r *Run) call(f *frame, n *Node, at int) error {
	args, named, err := r.arguments(f, &n.Calls[0])
	if err != nil {
		return err
	}
	return r.start(f, at, []called{{at, 0, &n.Calls[0], args, named}})
}

// fan starts all calls of a fan-out. It evaluates all arguments before it starts the first call.
func (r *Run) fan(f *frame, n *Node, at int) error {
	if n.Each == nil {
		var list []called
		for i := range n.Calls {
			args, named, err := r.arguments(f, &n.Calls[i])
			if err != nil {
				return err
			}
			list = append(list, called{at, i, &n.Calls[i], args, named})
		}
		return r.start(f, n.Edges[0].To, list)
	}
	list, err := r.elements(f, n, at)
	if err != nil {
		return err
	}
	return r.start(f, n.Edges[0].To, list)
}

// elements evaluates the calls of a fan-out over elements.
func (r *Run) elements(f *frame, n *Node, at int) (list []called, err error) {
	over, err := r.eval(n.Each.Over, f.vars)
	if err != nil {
		return nil, err
	}
	l := loop{}
	if err := l.iterate(over); err != nil {
		return nil, err
	}
	defer l.iter.Done()
	inner := &frame{fn: f.fn, vars: maps.Clone(f.vars)} // with its own scope for the names of its elements
	for v := starlark.Value(nil); l.iter.Next(&v); {
		if len(list) == maxOpen {
			return nil, &Failure{Name: LimitError, Message: fmt.Sprintf("a fan-out of more than %d", maxOpen)}
		}
		if err := r.assign(inner, n.Each.Target, v); err != nil {
			return nil, err
		}
		if n.Each.If != nil {
			is, err := r.eval(n.Each.If, inner.vars)
			if err != nil {
				return nil, err
			}
			if !is.Truth() {
				continue
			}
		}
		args, named, err := r.arguments(inner, &n.Calls[0])
		if err != nil {
			return nil, err
		}
		list = append(list, called{at, 0, &n.Calls[0], args, named})
	}
	return list, nil
}

// start starts calls that the frame then waits for at a node. Without calls the frame continues at once.
func (r *Run) start(f *frame, at int, list []called) error {
	f.wait = &activation{node: at, need: len(list), results: make([]starlark.Value, len(list)), since: r.now}
	if len(list) == 0 {
		return r.complete(f)
	}
	if len(r.works)+len(list) > maxOpen {
		return &Failure{Name: LimitError, Message: fmt.Sprintf("more than %d calls at once", maxOpen)}
	}
	key := f.key(at)
	for i := range list {
		c := &list[i]
		if f.gone || f.wait == nil || r.bug != nil {
			return nil // a call that could not start has failed the others
		}
		if c.call.Func != "" {
			child, err := r.enter(f, i, r.program.funcs[c.call.Func], c.args, c.named)
			if err != nil {
				if err := r.settle(f, i, nil, failureOf(err), undoing{}); err != nil {
					return err
				}
				continue
			}
			r.push(child, 0, Forward)
			continue
		}
		w := &work{id: key + "/" + strconv.Itoa(i), frame: f, slot: i, node: c.node, number: c.number, call: c.call, attempt: 1}
		if err := w.take(c); err != nil {
			err = fmt.Errorf("arguments of %s: %w", c.call.describe(), err)
			if err := r.settle(f, i, nil, failureOf(err), undoing{}); err != nil {
				return err
			}
			continue
		}
		if r.works[w.id] != nil {
			r.bug = fmt.Errorf("%w: work %q is under way", ErrOverflow, w.id)
			return nil
		}
		r.works[w.id] = w
		r.attempt(w)
	}
	return nil
}

func (r *Run) attempt(w *work) {
	w.step, w.since = r.step, r.now
	r.effects.Start = append(r.effects.Start, w.next())
}

func (r *Run) done(w *work, result jsontext.Value) error {
	var v starlark.Value = starlark.None
	if len(result) > 0 {
		var err error
		if v, err = FromJSON(result); err != nil {
			return fmt.Errorf("the result of %s (%s): %w", w.call.describe(), w.id, err)
		}
	}
	delete(r.works, w.id)
	r.settled(w.frame, w.slot, v, nil)
	return nil
}

// failed retries an action, or fails the call.
func (r *Run) failed(w *work, f *Failed) error {
	fail := &Failure{Name: f.Type, Ancestors: f.Ancestors, Message: f.Message}
	if len(f.Detail) > 0 {
		v, err := FromJSON(f.Detail)
		if err != nil {
			return fmt.Errorf("the error of %s (%s): %w", w.call.describe(), w.id, err)
		}
		fail.Detail = v
	}
	if pause, again := w.call.Policy.again(fail, w.attempt-w.spent); again {
		w.attempt++
		w.failed = shorten(fail.Error(), maxNote)
		if pause == 0 {
			r.attempt(w)
			return nil
		}
		w.retry, w.since = "retry "+w.id, r.now
		r.retries[w.retry] = w
		r.effects.Timers = append(r.effects.Timers, Timer{ID: w.retry, At: r.now + pause})
		return nil
	}
	delete(r.works, w.id)
	r.settled(w.frame, w.slot, nil, fail)
	return nil
}

// settled is settle, and fails the frame if it cannot continue.
func (r *Run) settled(f *frame, slot int, v starlark.Value, why *Failure) {
	if err := r.settle(f, slot, v, why, undoing{}); err != nil {
		r.fail(f, failureOf(err))
	}
}

// failCall is settled for a call that has failed, and left the undo steps of calls that have failed with it.
func (r *Run) failCall(f *frame, slot int, why *Failure, left undoing) {
	if err := r.settle(f, slot, nil, why, left); err != nil {
		r.fail(f, failureOf(err))
	}
}

// settle records the outcome of a call: a value, which may be an error that a function has returned, or a failure. Undo
// steps are executed where a failure is handled, before it is.
func (r *Run) settle(f *frame, slot int, v starlark.Value, why *Failure, left undoing) error {
	a := f.wait
	if a == nil || slot >= len(a.results) || a.results[slot] != nil || a.got >= a.need {
		r.bug = fmt.Errorf("%w: call %d of %s", ErrOverflow, slot, f.id)
		return nil
	}
	n := r.node(f, a.node)
	switch {
	case f.isStep():
		r.stepEnded(f, why)
		return nil
	case why != nil && !n.Collect:
		return r.settleFailure(f, n, why, left)
	case why != nil && !left.idle():
		left.why = why
		r.undo(f, slot, left)
		return nil
	case why != nil:
		v = why
		r.mark(f, a.node, failedAt)
	}
	a.results[slot] = v
	if a.got++; a.got == a.need {
		return r.complete(f)
	}
	return nil
}

// settleFailure handles the failure of a call that ends the other calls of its fan-out.
func (r *Run) settleFailure(f *frame, n *Node, why *Failure, left undoing) error {
	at := f.wait.node
	r.mark(f, at, failedAt)
	left.add(r.abandon(f))
	switch {
	case !n.Attempt:
		r.failWith(f, why, left)
		return nil
	case left.idle():
		return r.resume(f, n, &Result{Error: why})
	}
	f.wait = &activation{node: at, need: 1, results: make([]starlark.Value, 1)}
	left.why = why
	r.undo(f, 0, left)
	return nil
}

// complete continues after an activation that has all its results.
func (r *Run) complete(f *frame) error {
	a := f.wait
	n := r.node(f, a.node)
	if n.Kind == Join && !slices.ContainsFunc(a.results, isFailure) {
		r.mark(f, a.node, passed)
	}
	var v starlark.Value
	switch {
	case n.Kind == Action || n.Kind == Child:
		v = a.results[0]
	case n.List:
		v = starlark.NewList(a.results)
	default:
		v = starlark.Tuple(a.results)
	}
	f.wait = nil
	if n.Attempt {
		v = &Result{Value: v}
	}
	return r.resume(f, n, v)
}

func isFailure(v starlark.Value) bool {
	_, is := v.(*Failure)
	return is
}

func (r *Run) resume(f *frame, n *Node, v starlark.Value) error {
	if err := r.assign(f, n.Into, v); err != nil {
		return err
	}
	r.follow(f, n, 0)
	return nil
}

// abandon cancels all that a frame waits for, and returns the undo steps of the calls that it has ended. Undo steps that
// are running continue.
func (r *Run) abandon(f *frame) (left undoing) {
	a := f.wait
	r.conditions.leave(f)
	if f.wait = nil; a == nil {
		return left
	}
	r.signals.leave(f, a.signal)
	if a.timer != "" {
		delete(r.timers, a.timer)
		r.effects.Drop = append(r.effects.Drop, a.timer)
	}
	key := f.key(a.node)
	for i := range a.need {
		id := key + "/" + strconv.Itoa(i)
		if w := r.works[id]; w != nil {
			r.cancel(w)
		} else if child := r.frames[id+"."]; child != nil {
			if child.undoing != nil {
				left.add(*child.undoing)
			} else {
				left.add(r.abandon(child))
				left.todo = append(left.todo, child.undos...)
			}
			r.drop(child)
		}
	}
	return left
}

// cancel cancels an action that is no longer needed.
func (r *Run) cancel(w *work) {
	delete(r.works, w.id)
	if w.retry != "" {
		delete(r.retries, w.retry)
		r.effects.Drop = append(r.effects.Drop, w.retry)
		return
	}
	if w.step == r.step { // then nothing outside of the run knows this attempt
		if r.undone == nil {
			r.undone = map[string]bool{}
		}
		r.undone[w.id] = true
		if w.attempt == 1 {
			return
		}
	}
	r.effects.Cancel = append(r.effects.Cancel, w.id)
}
