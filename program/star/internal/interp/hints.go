package interp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

// Python programmers use names and methods that do not exist here. Without the hints most of these
// mistakes would be reported as errors about NoneType, because a value that does not exist is None.

// foreignMethods are methods of other languages, which no type has here.
var foreignMethods = []string{"sort", "reverse", "copy", "push"}

// replaceWhole has, by method, the code that replaces an array with the changed one.
var replaceWhole = map[string]string{
	"remove":  "x.set([v for v in x if ...])",
	"discard": "x.set([v for v in x if ...])",
	"sort":    "x.set(sorted(x))",
	"reverse": "x.set(reversed(x))",
	"extend":  "x.set(list(x) + [...])",
	"insert":  "x.set([...] + list(x))",
	"clear":   "x.set([])",
}

// insteadOf has, by method, what to use in its place on lists and dicts.
var insteadOf = map[string]string{
	"sort": "use sorted(x)", "reverse": "use reversed(x)", "copy": "use list(x) or dict(x)",
	"push": "use append", "index": "loop: for i, v in enumerate(x)",
}

// noMethod is the error for a method that x does not have. It names what to use.
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
			hint = "replace the whole value: " + replaceWhole[name]
		case v.Kind() == model.KindObject && name == "clear":
			hint = "replace the whole value: x.set({})"
		}
		what = fmt.Sprintf("%s is %s, which", x, meter.Article(what))
		if hint == "" {
			hint = "its methods are " + strings.Join(slices.Sorted(maps.Keys(placeMethods)), ", ")
		}
		return fmt.Errorf("%s has no method %s; %s", what, name, hint)
	case *value.View:
		if replaceWhole[name] != "" || name == "append" || name == "set" || name == "update" || name == "pop" || name == "delete" {
			hint = "a value that was read cannot be changed; copy it with list(x) or dict(x)"
		}
	}
	if hint != "" {
		hint = "; " + hint
	}
	return fmt.Errorf("%s has no method %s%s", meter.Article(what), name, hint)
}

// Explain adds to the message of an error about None which place does not exist: missed, if that is not
// nil.
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

// missingNames has, for names that authors expect from other languages, what to use.
var missingNames = map[string]string{
	"print":    "there is no print; use log(...)",
	"random":   "there is no randomness: a repeated run must give the same result; take random values from the payload of the event",
	"uuid":     "there is no randomness; event().id is unique",
	"time":     "there is no clock but now() in a handler; to act later, use cron, set_timer or send(after = ...)",
	"datetime": "there is no clock but now() in a handler; to act later, use cron, set_timer or send(after = ...)",
	"sleep":    "a program cannot wait; use send(after = ...) or set_timer",
	"open":     "a program has no files, no network and no environment",
	"os":       "a program has no files, no network and no environment",
	"http":     "a program has no network; start a task for a request: start_task(action, key, http_get(url)), or http_post(url, body)",
	"requests": "a program has no network; start a task for a request: start_task(action, key, http_get(url)), or http_post(url, body)",
	"bytes":    "there are no bytes: documents hold strings, numbers, lists and objects",
	"eval":     "a program cannot compile code while it runs",
	"exec":     "a program cannot compile code while it runs",
	"globals":  "a program cannot inspect itself",
	"id":       "values have no identity; compare them with ==",
	"hash":     "there is no hash: a key can be any string, and name_of(key) turns it into a name",
	"dir":      "a program cannot inspect itself; x.keys() returns the keys of an object",
}

// NameHint adds what to use to the message "undefined: x".
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
