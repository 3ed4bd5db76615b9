package space

import (
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// Violation is a computation that is not idempotent: run again over the same documents,
// it came to something else (seed 001 section 4.2). A scheduler may run it at any time,
// so its result would depend on chance.
type Violation struct {
	Node string
	// Differences are the places of which the runs made different things.
	Differences []Difference
	// Moved says that what the node reads was changed by its own writes: it feeds itself,
	// and how often it runs is how far it gets.
	Moved bool
}

// Difference is a place of which two runs made different things. One of them is absent if
// only the other run made something of it.
type Difference struct {
	Place         string
	First, Second model.Value
}

// OfSecond are the differences at places of which the second run made something: what a
// repetition would have added or replaced, without what it left out.
func (v Violation) OfSecond() []Difference {
	return slices.DeleteFunc(slices.Clone(v.Differences), func(d Difference) bool { return d.Second.IsAbsent() })
}

func (v Violation) String() string {
	var parts []string
	for _, d := range v.Differences {
		parts = append(parts, fmt.Sprintf("%s: %s, then %s", d.Place, d.First, d.Second))
	}
	line := fmt.Sprintf("node %s is not idempotent: %s", v.Node, strings.Join(parts, "; "))
	if v.Moved {
		line += "; it reads what it has written itself"
	}
	return line
}

// validate repeats a run that has just been applied, and reports if the repetition
// would have changed anything. Nothing of it is kept. A repetition that fails says
// nothing: functions may fail. after is what the run has changed.
func (s *Space) validate(n *node, after []docValue, v model.Value) {
	switch {
	case !s.cfg.CheckIdempotency || n.kind != Computation:
		return
	case n.status != Clean:
		return // what it pulled has changed what it had read: the repetition would read that
	}
	moved := slices.ContainsFunc(after, func(w docValue) bool {
		return slices.ContainsFunc(n.deps, func(d *dep) bool { return d.doc == w.doc && d.indexed })
	})
	s.nested++ // it gets a transaction of its own
	again := s.begin(n)
	again.rehearsal = true
	u, err := callNode(n, again)
	s.nested--
	if err != nil || again.err != nil || again.missing != nil {
		return
	}
	violation := Violation{Node: n.id(), Moved: moved}
	if d := n.own.doc; d != nil && !model.Equal(u, v) {
		violation.Differences = differences(d.key.doc, v, u)
	}
	for _, w := range again.after {
		violation.Differences = append(violation.Differences, differences(w.doc.key.doc, w.doc.value, w.value)...)
	}
	if len(violation.Differences) > 0 {
		s.violated(n, violation)
	}
}

// differences lists where two values of a document differ, key by key.
func differences(doc string, first, second model.Value) []Difference {
	var out []Difference
	for _, w := range model.Diff(doc, first, second) {
		out = append(out, Difference{Place: doc + w.Path.String(), First: first.At(w.Path), Second: second.At(w.Path)})
	}
	return out
}

func (s *Space) violated(n *node, v Violation) {
	s.stats.Violations++
	if f := s.cfg.Trace.Violated; f != nil {
		f(v)
	}
	s.report(ErrorInfo{Node: v.Node, Err: &IdempotencyError{v}, Attempt: int(n.runs)})
}

// IdempotencyError reports a Violation to OnError.
type IdempotencyError struct{ Violation }

func (e *IdempotencyError) Error() string { return e.String() }
