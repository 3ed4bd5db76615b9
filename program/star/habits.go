package star

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
)

// What people write who know Python, and what they are told. Most of it would otherwise be
// reported as something about NoneType: what is not there is None here.

// habits are methods of other languages, which no type has here.
var habits = []string{"sort", "reverse", "copy", "push"}

// anew are ways to change an array as a whole.
var anew = map[string]string{
	"remove":  "x.set([v for v in x if ...])",
	"discard": "x.set([v for v in x if ...])",
	"sort":    "x.set(sorted(x))",
	"reverse": "x.set(reversed(x))",
	"extend":  "x.set(list(x) + [...])",
	"insert":  "x.set([...] + list(x))",
	"clear":   "x.set([])",
}

// instead are ways to do without a method of lists and dicts.
var instead = map[string]string{
	"sort": "use sorted(x)", "reverse": "use reversed(x)", "copy": "use list(x) or dict(x)",
	"push": "use append", "index": "loop: for i, v in enumerate(x)",
}

// noMethod says that something has no method of a name, and what to do.
func noMethod(x starlark.Value, name string) error {
	what := x.Type()
	hint := instead[name]
	switch x := x.(type) {
	case *place:
		v := x.outline()
		what = typeOf(v)
		switch {
		case v.IsAbsent():
			return fmt.Errorf("%s is not there, and has no method %s", x, name)
		case !isContainer(v):
			what = v.Kind().String()
		case v.Kind() == model.KindArray && anew[name] != "":
			hint = "set it anew: " + anew[name]
		case v.Kind() == model.KindObject && name == "clear":
			hint = "set it anew: x.set({})"
		}
		what = fmt.Sprintf("%s is %s, which", x, article(what))
		if hint == "" {
			hint = "it has " + strings.Join(slices.Sorted(maps.Keys(placeMethods)), ", ")
		}
		return fmt.Errorf("%s has no method %s; %s", what, name, hint)
	case *view:
		if anew[name] != "" || name == "append" || name == "set" || name == "update" || name == "pop" || name == "delete" {
			hint = "what was read never changes, list(x) or dict(x) makes something that does"
		}
	}
	if hint != "" {
		hint = "; " + hint
	}
	return fmt.Errorf("%s has no method %s%s", article(what), name, hint)
}

func article(what string) string {
	if what != "" && strings.ContainsAny(what[:1], "aeio") {
		return "an " + what
	}
	return "a " + what
}

// explained says of an error about None what it is that is not there.
func (l *level) explained(err error) error {
	e, ok := err.(*Error) //nolint:errorlint // as it was made, a line above
	if !ok || l.missed == nil || !strings.Contains(e.Message, "NoneType") {
		return err
	}
	x := l.missed
	switch name, isField := strings.CutPrefix(e.Message, "NoneType has no ."); {
	case e.Message == "invalid call of non-function (NoneType)" && len(x.path) > 0:
		up := *x
		up.path = x.path[:len(x.path)-1]
		e.Message = fmt.Sprintf("%s has no method %s", &up, x.path[len(x.path)-1])
	case isField:
		name, _, _ = strings.Cut(name, " ")
		e.Message = fmt.Sprintf("%s is not there (None), so it has no .%s", x, name)
	default:
		e.Message += fmt.Sprintf("; %s is not there (None)", x)
	}
	return e
}

// syntaxHint adds to what the parser says what it may be about.
func syntaxHint(msg string) string {
	if strings.HasPrefix(msg, "got string literal, want") {
		return msg + "; there are no f-strings: use % or .format"
	}
	return msg
}
