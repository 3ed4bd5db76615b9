package interp

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/program/star/internal/value"
)

// Bounds of the values that the globals of a program hold.
const (
	maxGlobals      = 200_000
	maxGlobalsDepth = 200
)

// CheckFreeze refuses globals that hold too much: freezing and fingerprints follow them to their end.
func CheckFreeze(run *value.Run, g starlark.StringDict, registered []starlark.Callable) error {
	w := freezeCheck{room: maxGlobals, seen: map[any]bool{}}
	for _, name := range g.Keys() {
		if !w.value(g[name], 0) {
			return fmt.Errorf("the global %s holds more than %d values, or is nested more than %d deep", name, maxGlobals, maxGlobalsDepth)
		}
	}
	for _, fn := range registered {
		if !w.value(fn, 0) {
			return fmt.Errorf("function %s holds more than %d values, or is nested more than %d deep", fn.Name(), maxGlobals, maxGlobalsDepth)
		}
	}
	return run.Charge((maxGlobals-w.room)/16, 0)
}

// freezeCheck goes through values. It counts lists, dicts and sets once, tuples and functions each time
// that they are reached, as freezing does: a function that holds another twice, which holds another
// twice, takes very long to freeze, and one that holds itself never ends.
type freezeCheck struct {
	room int
	seen map[any]bool
}

func (w *freezeCheck) value(x starlark.Value, depth int) bool {
	if w.room--; w.room < 0 || depth > maxGlobalsDepth {
		return false
	}
	switch x := x.(type) {
	case *starlark.List:
		return w.seenBefore(x) || w.all(x.Elements(), depth)
	case starlark.Tuple:
		return w.all(x.Elements(), depth)
	case *starlark.Set:
		return w.seenBefore(x) || w.all(x.Elements(), depth)
	case *starlark.Dict:
		if w.seenBefore(x) {
			return true
		}
		for k, v := range x.Entries() {
			if !w.value(k, depth+1) || !w.value(v, depth+1) {
				return false
			}
		}
	case *starlark.Builtin: // a method, which holds its receiver
		return x.Receiver() == nil || w.value(x.Receiver(), depth+1)
	case *starlark.Function:
		for i := range x.NumParams() {
			if v := x.ParamDefault(i); v != nil && !w.value(v, depth+1) {
				return false
			}
		}
		for i := range x.NumFreeVars() {
			if _, v := x.FreeVar(i); v != nil && !w.value(v, depth+1) {
				return false
			}
		}
	}
	return true
}

// seenBefore reports whether x was reached before.
func (w *freezeCheck) seenBefore(x any) bool {
	before := w.seen[x]
	w.seen[x] = true
	return before
}

func (w *freezeCheck) all(elems func(yield func(starlark.Value) bool), depth int) bool {
	ok := true
	elems(func(e starlark.Value) bool {
		ok = w.value(e, depth+1)
		return ok
	})
	return ok
}
