package workflow

import (
	"slices"
	"strconv"
	"strings"
)

// ActionOf returns the action that work of that ID calls, or the workflow that it starts a run of, and the line of the
// call; "" if the graph has no such call. Of an undo step it is the first call that can be meant.
func (g *Graph) ActionOf(work string) (action string, line int32) {
	fn := 0
	segments := strings.Split(work, ".")
	if undo, is := strings.CutPrefix(segments[0], "undo"); is && len(segments) > 1 && undo != "" {
		segments = segments[1:]
		if fn = g.registers(segments[0]); fn < 0 {
			return "", 0
		}
	}
	for i, segment := range segments { // each but the last is a call of a function
		if fn < 0 || fn >= len(g.Funcs) {
			return "", 0
		}
		n, call := g.Funcs[fn].callAt(segment)
		switch {
		case call == nil:
			return "", 0
		case i == len(segments)-1:
			return call.Action + call.Child, n.Line
		}
		if fn = g.funcNamed(call.Func); fn < 0 {
			return "", 0
		}
	}
	return "", 0
}

// OfUndoStep reports whether work of that ID is of an undo step.
func OfUndoStep(work string) bool { return strings.HasPrefix(work, "undo") }

// Undoes reports whether a graph registers undo steps.
func (g *Graph) Undoes() bool {
	return slices.ContainsFunc(g.Funcs, func(f Func) bool {
		return slices.ContainsFunc(f.Nodes, func(n Node) bool { return n.Kind == Compensate })
	})
}

// LineOf returns the line of a wait, 0 if the graph has no such wait.
func (g *Graph) LineOf(wait string) int32 {
	key, is := strings.CutPrefix(wait, "wait ")
	calls := strings.Split(key, ".")
	node, _, _ := strings.Cut(calls[len(calls)-1], "[")
	at, err := strconv.Atoi(node)
	if !is || err != nil || at < 0 {
		return 0
	}
	fn := 0
	for i, place := range calls[:len(calls)-1] {
		if undo, is := strings.CutPrefix(place, "undo"); is && i == 0 && undo != "" {
			if fn = g.registers(calls[1]); fn < 0 {
				return 0
			}
			continue
		}
		_, call := g.Funcs[fn].callAt(place)
		if call == nil || call.Func == "" {
			return 0
		}
		if fn = g.funcNamed(call.Func); fn < 0 {
			return 0
		}
	}
	if at >= len(g.Funcs[fn].Nodes) || g.Funcs[fn].Nodes[at].Kind != Wait {
		return 0
	}
	return g.Funcs[fn].Nodes[at].Line
}

// registers returns the first function that registers an undo step at a place, -1 if none does.
func (g *Graph) registers(place string) int {
	for i := range g.Funcs {
		if n, _ := g.Funcs[i].callAt(place); n != nil && n.Kind == Compensate {
			return i
		}
	}
	return -1
}

func (g *Graph) funcNamed(name string) int {
	for i := range g.Funcs {
		if g.Funcs[i].Name == name {
			return i
		}
	}
	return -1
}

// callAt returns a call of the function, and its node. The place is "NODE[ITERATION,...]/SLOT", in which the node is
// the one that waits for the call: of a fan-out, the join.
func (f *Func) callAt(place string) (*Node, *Call) {
	at, slot, is := strings.Cut(place, "/")
	at, _, _ = strings.Cut(at, "[")
	node, err1 := strconv.Atoi(at)
	i, err2 := strconv.Atoi(slot)
	if !is || err1 != nil || err2 != nil || i < 0 || node < 0 || node >= len(f.Nodes) {
		return nil, nil
	}
	n := &f.Nodes[node]
	if n.Kind == Join {
		for k := range f.Nodes {
			if fan := &f.Nodes[k]; fan.Kind == Fan && len(fan.Edges) > 0 && fan.Edges[0].To == node {
				n = fan
			}
		}
	}
	if n.Each != nil {
		i = 0
	}
	if i >= len(n.Calls) {
		return nil, nil
	}
	return n, &n.Calls[i]
}
