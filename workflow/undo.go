package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// Bounds of the undo steps that a run has registered, and of their arguments in bytes. Beyond them, registering
// another one fails with a LimitError.
const (
	maxUndo      = 10_000
	maxUndoBytes = 4 << 20
)

// maxUndoErrors is the largest number of errors that Undone keeps.
const maxUndoErrors = 10

// Undone is how the undo steps have ended that a failure has caused.
type Undone struct {
	Steps   int `json:"steps,omitzero"`   // that succeeded
	Failed  int `json:"failed,omitzero"`  // that failed, after all their attempts
	Skipped int `json:"skipped,omitzero"` // that were not finished, because the run was ended at once
	// Cause is why it was ended at once, if that is not the error itself.
	Cause string `json:"cause,omitzero"`
	// Errors are the errors of the first steps that failed, at most ten.
	Errors []UndoError `json:"errors,omitzero"`
}

// UndoError is the error of an undo step.
type UndoError struct {
	Step    string `json:"step"` // the action or the function
	Line    int32  `json:"line,omitzero"`
	Type    string `json:"type"`
	Message string `json:"message,omitzero"`
}

func (u *Undone) add(o *Undone) {
	if o == nil {
		return
	}
	u.Steps, u.Failed, u.Skipped = u.Steps+o.Steps, u.Failed+o.Failed, u.Skipped+o.Skipped
	u.Cause = cmp.Or(u.Cause, o.Cause)
	u.Errors = append(slices.Clip(u.Errors), o.Errors[:min(len(o.Errors), maxUndoErrors-len(u.Errors))]...)
}

// undo is a registered undo step: a call whose arguments are known.
type undo struct {
	number   int // in the order of registration, and part of the ID of its work
	fn, node int // where it was registered
	args     jsontext.Value
	named    jsontext.Value
}

func (u *undo) size() int { return len(u.args) + len(u.named) }

// undoing executes the undo steps that a failure has caused, the last one first, and one at a time. It belongs to
// the frame that takes the place of the failed call.
type undoing struct {
	why     *Failure
	todo    []undo // in the order of registration
	running []*frame
	undone  Undone
}

func (u *undoing) idle() bool { return len(u.todo) == 0 && len(u.running) == 0 && u.undone.zero() }

func (u *Undone) zero() bool { return u.Steps == 0 && u.Failed == 0 && u.Skipped == 0 }

func (u *undoing) add(o undoing) {
	u.todo = append(u.todo, o.todo...)
	u.running = append(u.running, o.running...)
	u.undone.add(&o.undone)
}

// compensate registers an undo step.
func (r *Run) compensate(f *frame, n *Node, at int) error {
	args, named, err := r.arguments(f, &n.Calls[0])
	if err != nil {
		return err
	}
	u := undo{number: r.undos.last + 1, fn: f.fn, node: at}
	if u.args, err = ToJSON(args); err == nil {
		u.named, err = ToJSON(named)
	}
	switch {
	case err != nil:
		return fmt.Errorf("arguments of undo step %s: %w", n.Calls[0].name(), err)
	case u.size() > MaxValue:
		return &Failure{Name: LimitError, Message: fmt.Sprintf("the arguments of undo step %s have %d bytes; at most %d are possible: pass a reference to what is large", n.Calls[0].name(), u.size(), MaxValue)}
	case r.undos.n >= maxUndo || r.undos.bytes+u.size() > maxUndoBytes:
		return &Failure{Name: LimitError, Message: fmt.Sprintf("more than %d undo steps, or more than %d bytes of their arguments", maxUndo, maxUndoBytes)}
	}
	r.undos.last++
	r.undos.count(&u, 1)
	f.undos = append(f.undos, u)
	r.follow(f, n, 0)
	return nil
}

// undos counts the undo steps of a run that have been registered and not begun.
type undos struct {
	last     int // the number of the last one
	n, bytes int
}

func (c *undos) count(u *undo, by int) { c.n, c.bytes = c.n+by, c.bytes+by*u.size() }

// undo executes undo steps in place of a call that has failed, before its caller continues; of the run itself, if there
// is no caller. Steps that are running already continue.
func (r *Run) undo(caller *frame, slot int, left undoing) {
	p := &frame{caller: caller, slot: slot, undoing: &left}
	if caller != nil {
		p.id = caller.key(caller.wait.node) + "/" + strconv.Itoa(slot) + "."
	}
	if _, twice := r.frames[p.id]; twice {
		r.bug = fmt.Errorf("%w: call %q is under way", ErrOverflow, p.id)
	}
	slices.SortFunc(left.todo, func(a, b undo) int { return cmp.Compare(a.number, b.number) })
	for _, s := range left.running {
		s.caller = p
	}
	r.frames[p.id] = p
	r.push(p, 0, Forward)
}

// undoNext starts the next undo step when none is running. After the last one, the failure is handled where it would
// have been without undo steps.
func (r *Run) undoNext(p *frame) {
	left := p.undoing
	if len(left.running) > 0 {
		return
	}
	if len(left.todo) == 0 {
		r.drop(p)
		why := left.why.withUndone(&left.undone)
		if p.caller == nil {
			r.end(&Outcome{Error: why})
			return
		}
		r.failCall(p.caller, p.slot, why, undoing{})
		return
	}
	u := left.todo[len(left.todo)-1]
	left.todo = left.todo[:len(left.todo)-1]
	r.undos.count(&u, -1)
	s := &frame{id: "undo" + strconv.Itoa(u.number) + ".", fn: u.fn, vars: starlark.StringDict{}, caller: p}
	r.frames[s.id] = s
	left.running = append(left.running, s)
	c := called{node: u.node, call: &r.node(s, u.node).Calls[0]}
	var err error
	if c.args, c.named, err = u.arguments(); err != nil {
		r.bug = err
		return
	}
	if err := r.start(s, u.node, []called{c}); err != nil {
		r.stepEnded(s, failureOf(err))
	}
}

// arguments returns the arguments of an undo step.
func (u *undo) arguments() (starlark.Tuple, *starlark.Dict, error) {
	args, err := FromJSON(u.args)
	if err != nil {
		return nil, nil, err
	}
	named, err := FromJSON(u.named)
	if err != nil {
		return nil, nil, err
	}
	list, isList := args.(*starlark.List)
	dict, isDict := named.(*starlark.Dict)
	if !isList || !isDict {
		return nil, nil, fmt.Errorf("the arguments of undo step %d are no list and no object", u.number)
	}
	return slices.Collect(list.Elements()), dict, nil
}

// isStep reports whether a frame is an undo step.
func (f *frame) isStep() bool { return f.caller != nil && f.caller.undoing != nil }

// stepEnded records the end of an undo step, with a failure or without one.
func (r *Run) stepEnded(s *frame, fail *Failure) {
	left := s.caller.undoing
	left.running = slices.DeleteFunc(left.running, func(o *frame) bool { return o == s })
	node := s.wait.node
	n := r.node(s, node)
	s.wait = nil
	r.drop(s)
	if fail != nil {
		r.mark(s, node, failedAt)
		left.undone.add(&Undone{Failed: 1, Errors: []UndoError{{Step: n.Calls[0].name(), Line: n.Line, Type: valid(fail.Name), Message: valid(fail.Message)}}})
	} else {
		left.undone.Steps++
	}
	r.push(s.caller, 0, Forward)
}

// maxUndoText bounds the texts of an UndoError, in characters.
const maxUndoText = 500

// valid returns a text that JSON can have, and that is not too long.
func valid(text string) string { return shorten(strings.ToValidUTF8(text, "\uFFFD"), maxUndoText) }

// stop ends the run with an error, after its undo steps.
func (r *Run) stop(why *Failure, left undoing) {
	r.dropDeadline()
	if left.idle() {
		r.end(&Outcome{Error: why})
		return
	}
	r.visits, r.steps = 0, 0 // undo steps are not the cause of an exceeded bound
	left.why, r.effects.Undoing = why, why
	r.undo(nil, 0, left)
}

// interrupt ends the run with an error from outside of its code: after its undo steps, or at once. During the undo
// steps of the run, only at once has an effect.
func (r *Run) interrupt(why *Failure, atOnce bool) {
	root := r.frames[""]
	switch {
	case atOnce || root == nil:
		r.endAtOnce(why)
	case root.undoing == nil:
		r.failWith(root, why, undoing{})
	}
}

// endAtOnce ends the run with an error, without the undo steps that have not ended. If there are undo steps because of
// another error, the outcome is that one.
func (r *Run) endAtOnce(why *Failure) {
	if root := r.frames[""]; root != nil {
		left := undoing{todo: root.undos, why: why}
		if root.undoing != nil {
			left = *root.undoing
			left.undone.Cause = valid(why.Error())
		} else {
			left.add(r.abandon(root))
		}
		for _, s := range left.running {
			r.abandon(s)
			r.drop(s)
		}
		left.undone.Skipped += len(left.todo) + len(left.running)
		why = left.why.withUndone(&left.undone)
		r.drop(root)
	}
	r.dropDeadline()
	r.end(&Outcome{Error: why})
}

// Undoing returns the error that will be that of the run, while its undo steps are executed, and nil at any other time.
func (r *Run) Undoing() *Failure {
	if root := r.frames[""]; root != nil && root.undoing != nil {
		return root.undoing.why
	}
	return nil
}

// json returns the encoding.
func (u *Undone) json() jsontext.Value {
	data, _ := json.Marshal(u) // numbers and texts
	return data
}
