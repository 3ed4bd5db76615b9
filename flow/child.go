package flow

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/workflow"
)

// childCall is a call of a child as its options describe it.
type childCall struct {
	b      *Builder
	in     string // the variable of the arguments
	named  []string
	id     bool
	away   bool
	policy *workflow.Policy
}

// ChildOption configures a child: InSpace, WithID, Within, or Retry.
type ChildOption interface{ ofChild(c *childCall) }

// ofChild makes the options of actions those of children: Within limits the run from its start, and cancels it then.
func (o CallOption) ofChild(c *childCall) {
	if c.policy == nil {
		c.policy = &workflow.Policy{}
	}
	o(c.policy)
}

type childOption func(c *childCall)

func (o childOption) ofChild(c *childCall) { o(c) }

// InSpace has the child live in another space, whose name follows from its arguments. By default it lives in the space of
// its parent.
func InSpace[In any](name func(in In) string) ChildOption {
	return childOption(func(c *childCall) {
		c.away = true
		c.name("space", textOf(name))
	})
}

// WithID gives the child an ID, which follows from its arguments. If a run of that ID exists with the same workflow and
// arguments, the call waits for that one. By default the ID follows from the run and the call, and is new for each attempt.
func WithID[In any](id func(in In) string) ChildOption {
	return childOption(func(c *childCall) {
		c.id = true
		c.name("id", textOf(id))
	})
}

// textOf returns a function with a text as its result as one of the graph.
func textOf[In any](f func(In) string) func(starlark.Tuple) (starlark.Value, error) {
	return func(args starlark.Tuple) (starlark.Value, error) {
		in, err := toGo[In](args[0])
		if err != nil {
			return nil, err
		}
		return starlark.String(f(in)), nil
	}
}

// name adds a named argument of the call.
func (c *childCall) name(key string, f func(starlark.Tuple) (starlark.Value, error)) {
	c.named = append(c.named, fmt.Sprintf("%q: %s(%s)", key, c.b.function(f), c.in))
}

// child returns the call of a child.
func (b *Builder) child(name, in string, options []ChildOption) workflow.Call {
	c := childCall{b: b, in: in}
	for _, o := range options {
		o.ofChild(&c)
	}
	if c.id && c.policy != nil && c.policy.Attempts > 1 && b.err == nil {
		b.err = fmt.Errorf("child %s has Retry and WithID: a child with an ID is one run, which is not started again; without one, each attempt has a run of its own", name)
	}
	return workflow.Call{
		Child: name, Away: c.away, Policy: c.policy,
		Args: b.code("("+in+",), {"+strings.Join(c.named, ", ")+"}", in),
	}
}

// Child starts a run of another workflow, and waits for its result: flow.Child[Parcel](b, "shipping", address). The arguments
// of the run are the fields of In. Its failure is that of this run, which cancels it when it ends first.
func Child[Out, In any](b *Builder, workflowName string, in Value[In], options ...ChildOption) Value[Out] {
	v := b.variable()
	b.step(workflow.Node{Kind: workflow.Child, Calls: []workflow.Call{b.child(workflowName, in.name, options)}, Into: b.result(v)})
	return Value[Out]{v}
}

// TryChild is Child, and a failure is part of the value.
func TryChild[Out, In any](b *Builder, workflowName string, in Value[In], options ...ChildOption) Value[Outcome[Out]] {
	v := b.variable()
	b.step(workflow.Node{Kind: workflow.Child, Attempt: true, Calls: []workflow.Call{b.child(workflowName, in.name, options)}, Into: b.outcome(v)})
	return Value[Outcome[Out]]{v}
}

// EachChild starts a run for each element of a list, all at the same time, and waits for the results, in order.
func EachChild[Out, In any](b *Builder, workflowName string, list Value[[]In], options ...ChildOption) Value[[]Out] {
	element, v := b.variable(), b.variable()
	b.fan(list.name, element, v, b.child(workflowName, element, options))
	return Value[[]Out]{v}
}

// TryEachChild is EachChild, and a failure is part of its element's value: the other runs go on.
func TryEachChild[Out, In any](b *Builder, workflowName string, list Value[[]In], options ...ChildOption) Value[[]Outcome[Out]] {
	element, v := b.variable(), b.variable()
	b.tryFan(list.name, element, v, b.child(workflowName, element, options))
	return Value[[]Outcome[Out]]{v}
}

// describeChild describes the wait for a child.
func describeChild(s *Status, w workflow.Open) string {
	text := "child " + w.Child
	if w.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", w.Attempt)
	}
	if s.Queued[w.ID] {
		text += ", queued"
	}
	if at, set := s.Timers["retry "+w.ID]; set && w.Retry {
		text += ", at " + timeText(at)
	}
	if at, set := s.Timers["child "+w.ID]; set {
		text += ", until " + timeText(at)
	}
	return text
}
