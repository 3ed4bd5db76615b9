package workflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Failure is an error as programs see it: a type, its ancestors (the nearest first), and a message. As a
// Starlark value it has the attributes type, message, detail and undone.
type Failure struct {
	Name      string // its type
	Ancestors []string
	Message   string
	Detail    starlark.Value // nil if there is none
	Undone    *Undone        // how the undo steps have ended that it has caused, nil if there were none
}

// Types of failures that are not those of an action.
const (
	CodeError      = "CodeError"      // the code of the workflow failed
	TimeoutError   = "TimeoutError"   // an attempt took too long
	CancelledError = "CancelledError" // the run was cancelled
	DeadlineError  = "DeadlineError"  // the run did not end before its deadline; a kind of TimeoutError
	LimitError     = "LimitError"     // the run exceeded a bound
)

// Error returns the type and the message.
func (f *Failure) Error() string { return f.Name + ": " + f.Message }

// is reports whether the failure has a type or descends from it.
func (f *Failure) is(typ string) bool { return f.Name == typ || slices.Contains(f.Ancestors, typ) }

var (
	_ starlark.HasAttrs   = (*Failure)(nil)
	_ starlark.Comparable = (*Failure)(nil)
)

// String returns the text that print shows.
func (f *Failure) String() string { return fmt.Sprintf("error(%q, %q)", f.Name, f.Message) }

// Type returns the name of the type in Starlark.
func (f *Failure) Type() string { return "error" }

// Freeze freezes the detail.
func (f *Failure) Freeze() {
	if f.Detail != nil {
		f.Detail.Freeze()
	}
}

// Truth of an error is true.
func (f *Failure) Truth() starlark.Bool { return true }

// Hash fails: an error cannot be a key.
func (f *Failure) Hash() (uint32, error) { return 0, errors.New("unhashable type: error") }

// CompareSameType compares errors by value: a run that is loaded has other objects.
func (f *Failure) CompareSameType(op syntax.Token, other starlark.Value, depth int) (bool, error) {
	o := other.(*Failure)
	same := f == o
	if !same && f.Name == o.Name && f.Message == o.Message && slices.Equal(f.Ancestors, o.Ancestors) {
		var err error
		if same, err = starlark.EqualDepth(orNone(f.Detail), orNone(o.Detail), depth-1); err != nil {
			return false, err
		}
	}
	return equality(op, same, "errors")
}

// equality is the result of == or !=, the only comparisons of values without an order.
func equality(op syntax.Token, same bool, what string) (bool, error) {
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("%s have no order", what)
}

func orNone(v starlark.Value) starlark.Value {
	if v == nil {
		return starlark.None
	}
	return v
}

// Attr returns an attribute of an error.
func (f *Failure) Attr(name string) (starlark.Value, error) {
	switch name {
	case "type":
		return starlark.String(f.Name), nil
	case "message":
		return starlark.String(f.Message), nil
	case "detail":
		return orNone(f.Detail), nil
	case "undone":
		if f.Undone == nil {
			return starlark.None, nil
		}
		return FromJSON(f.Undone.json())
	}
	return nil, nil // no such attribute
}

// AttrNames returns its attributes.
func (f *Failure) AttrNames() []string { return []string{"detail", "message", "type", "undone"} }

// withUndone returns the failure with undo steps that have ended, beside those that it has already.
func (f *Failure) withUndone(u *Undone) *Failure {
	if u.zero() {
		return f
	}
	own := *f
	own.Undone = &Undone{}
	own.Undone.add(f.Undone)
	own.Undone.add(u)
	return &own
}

// newError is error(type, message, detail=None) in Starlark.
func newError(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	f := &Failure{}
	err := starlark.UnpackArgs(b.Name(), args, kwargs, "type", &f.Name, "message?", &f.Message, "detail?", &f.Detail)
	return f, err
}

// fail is fail(error) or fail(message...) in Starlark: it ends the run with the error.
func fail(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(kwargs) > 0 {
		return nil, fmt.Errorf("%s takes no named arguments", b.Name())
	}
	if len(args) == 1 {
		if f, is := args[0].(*Failure); is {
			return nil, f
		}
	}
	text := make([]string, len(args))
	for i, v := range args {
		s, is := starlark.AsString(v)
		if text[i] = s; !is {
			text[i] = v.String()
		}
	}
	return nil, &Failure{Name: "Error", Message: strings.Join(text, " ")}
}

// Result is the outcome of an attempted call: in Starlark a value with the attributes ok, value and error, and
// the method failed(type=None).
type Result struct {
	Value starlark.Value // nil if it has failed
	Error *Failure
}

var (
	_ starlark.HasAttrs   = (*Result)(nil)
	_ starlark.Comparable = (*Result)(nil)
)

// String returns the text that print shows.
func (r *Result) String() string {
	if r.Error != nil {
		return fmt.Sprintf("attempt(error = %v)", r.Error)
	}
	return fmt.Sprintf("attempt(value = %v)", r.Value)
}

// Type returns the name of the type.
func (r *Result) Type() string { return "attempt" }

// Freeze freezes the value.
func (r *Result) Freeze() {
	if r.Error != nil {
		r.Error.Freeze()
	} else {
		r.Value.Freeze()
	}
}

// Truth is false for a failure.
func (r *Result) Truth() starlark.Bool { return r.Error == nil }

// Hash fails: a result cannot be a key.
func (r *Result) Hash() (uint32, error) { return 0, errors.New("unhashable type: attempt") }

// CompareSameType compares results by value.
func (r *Result) CompareSameType(op syntax.Token, other starlark.Value, depth int) (bool, error) {
	o := other.(*Result)
	same := r == o
	if !same && (r.Error == nil) == (o.Error == nil) {
		a, b := r.Value, o.Value
		if r.Error != nil {
			a, b = r.Error, o.Error
		}
		var err error
		if same, err = starlark.EqualDepth(a, b, depth-1); err != nil {
			return false, err
		}
	}
	return equality(op, same, "results of attempts")
}

// Attr returns an attribute of a result.
func (r *Result) Attr(name string) (starlark.Value, error) {
	switch name {
	case "ok":
		return starlark.Bool(r.Error == nil), nil
	case "value":
		if r.Error != nil {
			return starlark.None, nil
		}
		return r.Value, nil
	case "error":
		if r.Error == nil {
			return starlark.None, nil
		}
		return r.Error, nil
	case "failed":
		return starlark.NewBuiltin("failed", r.failed), nil
	}
	return nil, nil // no such attribute
}

// AttrNames returns its attributes.
func (r *Result) AttrNames() []string { return []string{"error", "failed", "ok", "value"} }

func (r *Result) failed(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	typ := ""
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "type?", &typ); err != nil {
		return nil, err
	}
	return starlark.Bool(r.Error != nil && (typ == "" || r.Error.is(typ))), nil
}

// failureOf converts an error of code to a failure.
func failureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	f = &Failure{Name: CodeError, Message: err.Error()}
	var in *starlark.EvalError
	if errors.As(err, &in) {
		for i := range in.CallStack {
			if at := in.CallStack.At(i).Pos; at.IsValid() && at.Line > 0 { // that of a builtin has no line
				f.Message = fmt.Sprintf("%s: %s", at, in.Msg)
				break
			}
		}
	}
	return f
}
