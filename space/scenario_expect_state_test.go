package space

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Further expectations: the causes and gates of nodes, what effects have seen, and the state of a space.
func init() {
	maps.Copy(expectations, map[string]func(a *actor, name string) (string, error){
		"debounce": ofGates(func(g GateSpec) string { return g.Debounce.String() }),
		"throttle": ofGates(func(g GateSpec) string { return g.Throttle.String() }),
		"seen": func(a *actor, name string) (string, error) {
			if v, ok := a.saw[name]; ok {
				return v, nil
			}
			return "nothing", nil
		},
		"reasons": func(a *actor, name string) (string, error) {
			if a.core.graph.byID[name] == nil {
				return "", fmt.Errorf("there is no node %q", name)
			}
			return names(a.reasons[name]), nil
		},
		"passes":  ofRuntime(func(a *actor) string { return strconv.Itoa(a.passes) }),
		"idle":    ofRuntime(func(a *actor) string { return strconv.FormatBool(a.core.Idle()) }),
		"durable": ofRuntime(func(a *actor) string { return strconv.FormatBool(a.core.Durable()) }),
		"wake": ofRuntime(func(a *actor) string {
			if a.wake == 0 {
				return "none"
			}
			return a.wake.String()
		}),
		"deferred": ofRuntime(func(a *actor) string {
			var passes []string
			for _, m := range a.core.Recorder().Markers() {
				passes = append(passes, fmt.Sprintf("%d: %s", m.Deferred, strings.Join(m.Nodes, ", ")))
			}
			if passes == nil {
				return "none"
			}
			return strings.Join(passes, "; ")
		}),
		"settling": ofRuntime(func(a *actor) string { return strconv.FormatBool(!a.core.Inspect().History().NonSettling) }),
		"failures": ofRuntime(func(a *actor) string { return strconv.FormatUint(a.core.Stats().NodeErrors+a.core.Stats().Failed, 10) }),
	})
}

func ofGates(find func(GateSpec) string) func(*actor, string) (string, error) {
	return func(a *actor, name string) (string, error) {
		g, ok := a.core.Gate(name)
		if !ok {
			return "", fmt.Errorf("there is no node %q", name)
		}
		return find(g), nil
	}
}

// ofRuntime is about the runtime as a whole, under the name of its space.
func ofRuntime(find func(*actor) string) func(*actor, string) (string, error) {
	return func(a *actor, name string) (string, error) {
		if name != a.cfg.Space {
			return "", fmt.Errorf("the runtime has space %s", a.cfg.Space)
		}
		return find(a), nil
	}
}
