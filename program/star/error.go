package star

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/settlehq/settle/program/star/internal/interp"
	"github.com/settlehq/settle/program/star/internal/meter"
)

// Error is a mistake in a program, found when it was compiled or when it ran.
type Error struct {
	// File, Line and Col are the position; Line is 0 if it is not known.
	File      string
	Line, Col int
	Message   string
	// Stack are the calls that led there, the innermost first; nil for an error of the compiler.
	Stack []Frame

	cause error
}

// Frame is a call: a function, and the position in it that was being executed.
type Frame struct {
	Function  string
	File      string
	Line, Col int
}

func (f Frame) String() string {
	return fmt.Sprintf("%s:%d:%d: in %s", f.File, f.Line, f.Col, f.Function)
}

// Error returns "file:line:col: message", and the calls on lines of their own.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	for _, f := range e.Stack {
		b.WriteString("\n  ")
		b.WriteString(f.String())
	}
	return b.String()
}

// Unwrap returns the error from which e was made.
func (e *Error) Unwrap() error { return e.cause }

// maxFrames bounds the calls in an error.
const maxFrames = 20

// errorAt returns an Error with a position.
func errorAt(pos syntax.Position, format string, args ...any) *Error {
	return &Error{File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col), Message: meter.Clip(fmt.Sprintf(format, args...))}
}

// asError converts an error of parsing, resolving or running to an *Error.
func asError(file string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var eval *starlark.EvalError
	if errors.As(err, &eval) {
		return evalError(eval)
	}
	var list resolve.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		e := errorAt(list[0].Pos, "%s", interp.NameHint(list[0].Msg))
		e.cause = err
		return e
	}
	var syn syntax.Error
	if errors.As(err, &syn) {
		e := errorAt(syn.Pos, "%s", syntaxHint(syn.Msg))
		e.cause = err
		return e
	}
	return &Error{File: file, Message: meter.Clip(err.Error()), cause: err}
}

// evalError converts an error of a run. Its position is the innermost one in the program's own files.
func evalError(eval *starlark.EvalError) *Error {
	e := &Error{Message: meter.Clip(strings.TrimPrefix(eval.Msg, "Starlark computation cancelled: ")), cause: eval.Unwrap()}
	for i := range eval.CallStack {
		f := eval.CallStack.At(i)
		if f.Pos.Line == 0 {
			continue // a builtin
		}
		if len(e.Stack) < maxFrames {
			e.Stack = append(e.Stack, Frame{f.Name, f.Pos.Filename(), int(f.Pos.Line), int(f.Pos.Col)})
		}
	}
	if len(e.Stack) > 0 {
		e.File, e.Line, e.Col = e.Stack[0].File, e.Stack[0].Line, e.Stack[0].Col
	}
	return e
}

// syntaxHint adds the likely cause to a message of the parser.
func syntaxHint(msg string) string {
	if strings.HasPrefix(msg, "got string literal, want") {
		return msg + "; there are no f-strings: use % or .format"
	}
	return msg
}
