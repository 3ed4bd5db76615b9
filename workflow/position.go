package workflow

import (
	"maps"
	"slices"

	"go.starlark.net/starlark"
)

// maxNote is the largest number of characters that are kept of the error of an attempt.
const maxNote = 100

// Position is where one call of a function is. A run has one for itself, and one for each function that it has called and that
// has not returned.
type Position struct {
	// ID is that of the call, "" for the run itself; Func is its function, and Node the node that it waits at: an action, the join
	// of a fan-out, a sleep or a wait.
	ID         string
	Func, Node int
	// Got and Need are how many calls of an action or a fan-out have ended, and how many there are; both are 0 at a sleep or a wait.
	Got, Need int
	// Since is when it began to wait there, in milliseconds since 1970, or 0 as in Open.
	Since int64
	// Rounds are the loops that it is in, the outermost first.
	Rounds []Round
}

// Round is an iteration of a loop.
type Round struct {
	// Node is the head of the loop, Index the number of the iteration from 0 on, and Of the number of all of them, -1 if it is not
	// known: in a while loop.
	Node, Index, Of int
}

// Positions returns where a run is, sorted by ID: callers before what they have called.
func (r *Run) Positions() []Position {
	var list []Position
	for _, id := range slices.Sorted(maps.Keys(r.frames)) {
		f := r.frames[id]
		if f.wait == nil {
			continue
		}
		p := Position{ID: id, Func: f.fn, Node: f.wait.node, Got: f.wait.got, Need: f.wait.need, Since: f.wait.since}
		for i := range f.loops {
			l := &f.loops[i]
			p.Rounds = append(p.Rounds, Round{Node: l.head, Index: l.index, Of: l.length()})
		}
		list = append(list, p)
	}
	return list
}

// length returns the number of iterations of a loop, -1 if it is not known.
func (l *loop) length() int {
	if l.over == nil {
		return -1
	}
	return starlark.Len(l.over)
}

// Passed returns how often a run has come to a node, in all calls of its function. Nodes that a run had passed before a version of
// this package counted them are not among them.
func (r *Run) Passed(fn, node int) int { return r.passed.at(fn, node) }

// Passes returns Passed as of now: later steps do not change what it says.
func (r *Run) Passes() func(fn, node int) int {
	now := make(passes, len(r.passed))
	for i := range r.passed {
		now[i] = slices.Clone(r.passed[i])
	}
	return now.at
}

// passes counts how often a run has come to each node, by function and node. A join, to which no edge is followed, counts as
// its fan-out does.
type passes [][]int

func (p *passes) add(fn, node int) {
	for len(*p) <= fn {
		*p = append(*p, nil)
	}
	list := &(*p)[fn]
	if more := node + 1 - len(*list); more > 0 {
		*list = append(*list, make([]int, more)...)
	}
	(*list)[node]++
}

func (p passes) at(fn, node int) int {
	if fn < 0 || fn >= len(p) || node < 0 || node >= len(p[fn]) {
		return 0
	}
	return p[fn][node]
}
