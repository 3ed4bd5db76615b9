package interp

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/program/star/internal/value"
)

// Bounds of what a program keeps: of everything that its globals hold.
const (
	maxGlobals      = 200_000
	maxGlobalsDepth = 200
)

// mayFreeze refuses globals that cannot be gone through: freezing, fingerprints and much
// else follow what they hold to its end.
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

// keeping goes through values. Lists, dicts and sets are looked at once, tuples and functions
// as often as they are met, since freezing does the same: a function that holds another twice,
// which holds another twice, has no end, and neither has one that holds itself.
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
	case *starlark.Builtin: // a method that is kept
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

// met reports whether x was met before.
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
