package star

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Error is a mistake in a program, found when it was compiled or when it ran.
type Error struct {
	// File, Line and Col say where; Line is 0 if there is no place to name.
	File      string
	Line, Col int
	Message   string
	// Stack are the calls that led there, the innermost first; nil for what was found
	// before anything ran.
	Stack []Frame

	cause error
}

// Frame is a call: a function, and the place in it that was being executed.
type Frame struct {
	Function  string
	File      string
	Line, Col int
}

func (f Frame) String() string {
	return fmt.Sprintf("%s:%d:%d: in %s", f.File, f.Line, f.Col, f.Function)
}

// Error is "file:line:col: message", with the calls on lines of their own.
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

// Unwrap is what the error was made of.
func (e *Error) Unwrap() error { return e.cause }

// maxMessage bounds the text of an error in bytes: it becomes part of a receipt.
const maxMessage = 2000

func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "..."
}

// maxFrames is how many calls an error tells.
const maxFrames = 20

// errorAt is an Error at a place.
func errorAt(pos syntax.Position, format string, args ...any) *Error {
	return &Error{File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col), Message: clip(fmt.Sprintf(format, args...))}
}

// asError turns what parsing, resolving or running has reported into an Error.
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
		e := errorAt(list[0].Pos, "%s", hinted(list[0].Msg))
		e.cause = err
		return e
	}
	var syn syntax.Error
	if errors.As(err, &syn) {
		e := errorAt(syn.Pos, "%s", syntaxHint(syn.Msg))
		e.cause = err
		return e
	}
	return &Error{File: file, Message: clip(err.Error()), cause: err}
}

// evalError names the innermost place in the program's own text.
func evalError(eval *starlark.EvalError) *Error {
	e := &Error{Message: clip(strings.TrimPrefix(eval.Msg, "Starlark computation cancelled: ")), cause: eval.Unwrap()}
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

// absent are names that people look for in vain, and what there is instead.
var absent = map[string]string{
	"print":    "there is no print; use log(...)",
	"random":   "there is no randomness: a run that is made again must come to the same; take it from the payload of the event",
	"uuid":     "there is no randomness; event().id is unique",
	"time":     "there is no clock but now() in a handler, and cron, timers and send(after = ...)",
	"datetime": "there is no clock but now() in a handler, and cron, timers and send(after = ...)",
	"sleep":    "nothing waits in a program; use send(after = ...) or set_timer",
	"open":     "a program has no files, no network and no environment",
	"os":       "a program has no files, no network and no environment",
	"http":     "a program has no files, no network and no environment",
	"requests": "a program has no files, no network and no environment",
	"bytes":    "there are no bytes: documents have strings, numbers, lists and objects",
	"eval":     "a program is its text; nothing is compiled while it runs",
	"exec":     "a program is its text; nothing is compiled while it runs",
	"globals":  "a program cannot look into itself",
	"id":       "values have no identity that a run could see",
	"hash":     "there is no hash: a key can be any string, and name_of(key) makes a name of it",
	"dir":      "a program cannot look into itself; keys() are those of an object",
}

// hinted adds to "undefined: x" what to use instead.
func hinted(msg string) string {
	name, ok := strings.CutPrefix(msg, "undefined: ")
	if !ok {
		return msg
	}
	name, _, _ = strings.Cut(name, " ")
	if hint := absent[name]; hint != "" {
		return "undefined: " + name + ": " + hint
	}
	return msg
}
