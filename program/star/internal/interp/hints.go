package interp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

// What people write who know Python, and what they are told. Most of it would otherwise be
// reported as something about NoneType: what is not there is None here.

// habits are methods of other languages, which no type has here.
var foreignMethods = []string{"sort", "reverse", "copy", "push"}

// anew are ways to change an array as a whole.
var replaceWhole = map[string]string{
	"remove":  "x.set([v for v in x if ...])",
	"discard": "x.set([v for v in x if ...])",
	"sort":    "x.set(sorted(x))",
	"reverse": "x.set(reversed(x))",
	"extend":  "x.set(list(x) + [...])",
	"insert":  "x.set([...] + list(x))",
	"clear":   "x.set([])",
}

// instead are ways to do without a method of lists and dicts.
var insteadOf = map[string]string{
	"sort": "use sorted(x)", "reverse": "use reversed(x)", "copy": "use list(x) or dict(x)",
	"push": "use append", "index": "loop: for i, v in enumerate(x)",
}

// noMethod says that something has no method of a name, and what to do.
func noMethod(x starlark.Value, name string) error {
	what := x.Type()
	hint := insteadOf[name]
	switch x := x.(type) {
	case *value.Place:
		v := x.ReadShallow()
		what = value.TypeOf(v)
		switch {
		case v.IsAbsent():
			return fmt.Errorf("%s is not there, and has no method %s", x, name)
		case !value.IsContainer(v):
			what = v.Kind().String()
		case v.Kind() == model.KindArray && replaceWhole[name] != "":
			hint = "set it anew: " + replaceWhole[name]
		case v.Kind() == model.KindObject && name == "clear":
			hint = "set it anew: x.set({})"
		}
		what = fmt.Sprintf("%s is %s, which", x, Article(what))
		if hint == "" {
			hint = "it has " + strings.Join(slices.Sorted(maps.Keys(placeMethods)), ", ")
		}
		return fmt.Errorf("%s has no method %s; %s", what, name, hint)
	case *value.View:
		if replaceWhole[name] != "" || name == "append" || name == "set" || name == "update" || name == "pop" || name == "delete" {
			hint = "what was read never changes, list(x) or dict(x) makes something that does"
		}
	}
	if hint != "" {
		hint = "; " + hint
	}
	return fmt.Errorf("%s has no method %s%s", Article(what), name, hint)
}

func Article(what string) string {
	if what != "" && strings.ContainsAny(what[:1], "aeio") {
		return "an " + what
	}
	return "a " + what
}

// explain adds to the message of an error about None what it is that is not there: missed, if that is
// not nil.
func Explain(message string, missed *space.Address) string {
	if missed == nil || !strings.Contains(message, "NoneType") {
		return message
	}
	switch name, isField := strings.CutPrefix(message, "NoneType has no ."); {
	case message == "invalid call of non-function (NoneType)" && len(missed.Path) > 0:
		up := *missed
		up.Path = missed.Path[:len(missed.Path)-1]
		return fmt.Sprintf("%s has no method %s", &up, missed.Path[len(missed.Path)-1])
	case isField:
		name, _, _ = strings.Cut(name, " ")
		return fmt.Sprintf("%s is not there (None), so it has no .%s", missed, name)
	}
	return fmt.Sprintf("%s; %s is not there (None)", message, missed)
}

// absent are names that people look for in vain, and what there is instead.
var missingNames = map[string]string{
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
func NameHint(msg string) string {
	name, ok := strings.CutPrefix(msg, "undefined: ")
	if !ok {
		return msg
	}
	name, _, _ = strings.Cut(name, " ")
	if hint := missingNames[name]; hint != "" {
		return "undefined: " + name + ": " + hint
	}
	return msg
}
