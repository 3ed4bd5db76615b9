package interp

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
)

// libraryMethods are the methods of the types of the library, and those that authors expect from other
// languages.
var libraryMethods = func() map[string]bool {
	names := map[string]bool{}
	for _, x := range []starlark.HasAttrs{starlark.String(""), starlark.NewList(nil), starlark.NewDict(0), starlark.NewSet(0)} {
		for _, n := range x.AttrNames() {
			names[n] = true
		}
	}
	for _, n := range foreignMethods {
		names[n] = true
	}
	return names
}()

// isMethod reports whether some type, a place or a value of a document has a method of a name. A call
// x.name(...) of such a name is charged.
func isMethod(name string) bool { return libraryMethods[name] || placeMethods[name] != nil }

// callMethod is x.name(args): a method of a builtin type, which is charged, a method of a place, or a
// function that is the value of a field.
func callMethod(run *value.Run, name string, t *starlark.Thread, x starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	switch x := x.(type) {
	case *value.Place:
		if f := placeMethods[name]; f != nil {
			return f(run, x, name, args, kwargs)
		}
	case *value.View:
		if f := viewMethods[name]; f != nil {
			return f(run, x, name, args, kwargs)
		}
	case starlark.String:
		return stringMethod(run, name, t, x, args, kwargs)
	case *starlark.List:
		return listMethod(run, name, t, x, args, kwargs)
	case *starlark.Dict:
		return dictMethod(run, name, t, x, args, kwargs)
	case *starlark.Set:
		return setMethod(run, name, t, x, args, kwargs)
	}
	f, err := fieldOf(x, name)
	if _, callable := f.(starlark.Callable); !callable {
		return nil, noMethod(x, name)
	}
	if err != nil {
		return nil, err
	}
	return starlark.Call(t, f, args, kwargs)
}

// native calls the library's method.
func native(name string, t *starlark.Thread, x starlark.HasAttrs, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	f, err := fieldOf(x, name)
	if err != nil {
		return nil, noMethod(x, name)
	}
	return f.(*starlark.Builtin).CallInternal(t, args, kwargs)
}

// stringMethod charges for the string and the arguments, and for a result that may be longer.
func stringMethod(run *value.Run, name string, t *starlark.Thread, s starlark.String, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	steps, bytes := sizeOf(s)
	for _, a := range args {
		n, _ := sizeOf(a)
		steps += n
	}
	var err error
	switch name {
	case "strip", "lstrip", "rstrip":
		if len(args) > 0 {
			if chars, ok := args[0].(starlark.String); ok { // each character is searched for among them
				steps += len(s) / meter.TextStep * len(chars)
			}
		}
	case "startswith", "endswith":
		if len(args) > 0 {
			steps += prefixSteps(s, args[0])
		}
	case "join":
		if args, bytes, err = joinArguments(run, s, args); err != nil {
			return nil, err
		}
		steps += bytes / meter.TextStep
	case "replace":
		bytes = replacedLen(string(s), args)
		steps += bytes / meter.TextStep
	case "format":
		if args, kwargs, bytes, err = formatArguments(run, string(s), args, kwargs); err != nil {
			return nil, err
		}
		steps += bytes / meter.TextStep
	case "split", "rsplit":
		bytes = 2 * meter.SlotBytes * (splitCount(string(s), args) + 1)
		steps += bytes / meter.TextStep
	case "splitlines":
		bytes = 2 * meter.SlotBytes * (strings.Count(string(s), "\n") + strings.Count(string(s), "\r") + 1)
	case "upper", "lower", "title", "capitalize":
		bytes *= 4
	}
	if err := run.Charge(steps, bytes); err != nil {
		return nil, err
	}
	return native(name, t, s, args, kwargs)
}

// prefixSteps returns how many steps it takes to compare the start, or the end, of s with each of
// several strings.
func prefixSteps(s starlark.String, x starlark.Value) (steps int) {
	several, _ := x.(starlark.Tuple)
	for _, e := range several {
		if p, ok := e.(starlark.String); ok && len(p) <= len(s) {
			steps += len(p) / meter.TextStep
		}
	}
	return steps
}

// joinArguments returns the strings to be joined, as a list, and the length of the result.
func joinArguments(run *value.Run, sep starlark.String, args starlark.Tuple) (starlark.Tuple, int, error) {
	if len(args) != 1 {
		return args, 0, nil
	}
	elems, err := collect(run, args[0])
	if err != nil {
		return nil, 0, fmt.Errorf("join: %w", err)
	}
	n := len(sep) * len(elems)
	for _, e := range elems {
		if s, ok := e.(starlark.String); ok {
			n += len(s)
		}
	}
	return starlark.Tuple{starlark.NewList(elems)}, 2 * n, nil
}

// replacedLen returns how long s.replace(old, new) can be.
func replacedLen(s string, args starlark.Tuple) int {
	if len(args) < 2 {
		return 0
	}
	from, ok1 := starlark.AsString(args[0])
	to, ok2 := starlark.AsString(args[1])
	if !ok1 || !ok2 {
		return 0
	}
	return len(s) + strings.Count(s, from)*len(to)
}

// splitCount returns into how many parts a string is split at most.
func splitCount(s string, args starlark.Tuple) int {
	if len(args) > 0 {
		if sep, ok := starlark.AsString(args[0]); ok && sep != "" {
			return strings.Count(s, sep) + 1
		}
	}
	return len(s)/2 + 1
}

// formatArguments converts the arguments of a format to values whose text is no longer than has been
// charged.
func formatArguments(run *value.Run, s string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple, int, error) {
	longest := 0
	plain := func(x starlark.Value) (starlark.Value, error) {
		y, n, err := formatArgument(run, x)
		longest = max(longest, n)
		return y, err
	}
	own := make(starlark.Tuple, len(args))
	named := make([]starlark.Tuple, len(kwargs))
	var err error
	for i, a := range args {
		if own[i], err = plain(a); err != nil {
			return nil, nil, 0, err
		}
	}
	for i, kv := range kwargs {
		v, err := plain(kv[1])
		if err != nil {
			return nil, nil, 0, err
		}
		named[i] = starlark.Tuple{kv[0], v}
	}
	return own, named, len(s) + strings.Count(s, "{")*longest, nil
}

func listMethod(run *value.Run, name string, t *starlark.Thread, x *starlark.List, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	switch name {
	case "append":
		if len(args) == 1 && len(kwargs) == 0 {
			if err := run.Charge(0, 2*meter.SlotBytes); err != nil {
				return nil, err
			}
			return starlark.None, x.Append(args[0])
		}
	case "extend":
		if len(args) == 1 {
			return starlark.None, extend(run, x, args[0])
		}
	case "index", "remove":
		if len(args) > 0 {
			return findIn(run, name, t, x, args, kwargs)
		}
	}
	if err := run.Charge(1+x.Len()/8, x.Len()); err != nil { // insert, pop: the rest is moved
		return nil, err
	}
	return native(name, t, x, args, kwargs)
}

// findIn implements index and remove; elements are compared like ==.
func findIn(run *value.Run, name string, t *starlark.Thread, x *starlark.List, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if name == "index" && len(args) > 1 {
		for i := range x.Len() { // the library searches between two indexes
			if _, err := Equal(run, args[0], x.Index(i), 0); err != nil {
				return nil, err
			}
		}
		return native(name, t, x, args, kwargs)
	}
	for i := range x.Len() {
		same, err := Equal(run, args[0], x.Index(i), 0)
		if err != nil {
			return nil, err
		}
		if !same {
			continue
		}
		if name == "index" {
			return starlark.MakeInt(i), nil
		}
		if err := run.Charge(1+x.Len()/8, 0); err != nil { // the rest is moved
			return nil, err
		}
		return native("pop", t, x, starlark.Tuple{starlark.MakeInt(i)}, nil)
	}
	return nil, fmt.Errorf("%s: the value is not in the list", name)
}

func dictMethod(run *value.Run, name string, t *starlark.Thread, x *starlark.Dict, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	steps, bytes := 1, 0
	switch name {
	case "get", "pop", "setdefault":
		if len(args) > 0 {
			if err := run.ChargeKey(args[0]); err != nil {
				return nil, err
			}
		}
		if name == "setdefault" {
			bytes = meter.EntryBytes
		}
	case "popitem": // the first one
	default:
		steps, bytes = 1+x.Len(), x.Len()*3*meter.SlotBytes
		for i, a := range args {
			v, err := asView(a)
			if err != nil {
				return nil, err
			}
			if v != nil && v.V.Kind() == model.KindObject {
				if args[i], err = dictOf(run, v); err != nil {
					return nil, err
				}
			}
			if _, ok := args[i].(*starlark.Dict); !ok && name == "update" {
				pairs, err := pairs(run, args[i])
				if err != nil {
					return nil, err
				}
				args[i] = starlark.NewList(pairs)
			}
			n, b := sizeOf(args[i])
			steps, bytes = steps+n, bytes+b+n*meter.EntryBytes
		}
	}
	if err := run.Charge(steps, bytes); err != nil {
		return nil, err
	}
	return native(name, t, x, args, kwargs)
}

func setMethod(run *value.Run, name string, t *starlark.Thread, x *starlark.Set, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	own := make(starlark.Tuple, len(args))
	for i, a := range args {
		own[i] = a
		switch name {
		case "add", "discard", "remove":
			if err := run.ChargeKey(a); err != nil {
				return nil, err
			}
			if err := run.Charge(1, meter.EntryBytes); err != nil {
				return nil, err
			}
			continue
		}
		elems, err := keysIn(run, a)
		if err != nil {
			return nil, err
		}
		own[i] = starlark.NewList(elems)
	}
	switch name {
	case "add", "discard", "remove", "pop":
	default:
		if err := run.Charge(1+x.Len()+rehash(x), meter.DictBytes+x.Len()*meter.EntryBytes); err != nil {
			return nil, err
		}
	}
	return native(name, t, x, own, kwargs)
}
