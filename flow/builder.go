package flow

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/workflow"
)

// Value is a value that a run will have: its arguments, the result of an action or function, an element of a list.
type Value[T any] struct{ name string }

// Action is the name of an action, with the types of its argument and its result.
type Action[In, Out any] struct{ name string }

// NewAction returns an action of that name.
func NewAction[In, Out any](name string) Action[In, Out] { return Action[In, Out]{name} }

// Builder builds the graph of a workflow, a node after the other.
type Builder struct {
	g *workflow.Graph
	f *workflow.Func
	// open are the edges that lead to the next node.
	open      []edge
	depth     int
	names     int
	version   string
	functions starlark.StringDict
	err       error // the first mistake
}

// edge is an edge without a target yet.
type edge struct{ node, number int }

// Define adds a workflow to a program. build is called once, by Define, and describes the steps: each function that it
// calls with its Builder adds nodes to the graph. The functions that it passes to Map, If, While and Check are executed in
// the steps of runs, maybe more than once: what they return must follow from their arguments alone.
//
// The arguments of a run are the fields of In; others refuse its start. A run goes on only with the version that it began with, for the
// functions belong to it: choose another version, of letters and digits, whenever one of them changes.
func Define[In, Out any](w *Workflows, name, version string, build func(b *Builder, in Value[In]) Value[Out]) {
	if version == "" || strings.ContainsFunc(version, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) {
		w.note(fmt.Errorf("workflow %s: the version %q must be letters and digits", name, version))
		return
	}
	g := &workflow.Graph{Format: workflow.Format, Name: name, Funcs: []workflow.Func{{Name: "run", Params: []workflow.Param{{Name: "arguments"}}, Whole: true}}}
	b := &Builder{g: g, f: &g.Funcs[0], version: version, functions: starlark.StringDict{}}
	out := build(b, Value[In]{"arguments"})
	b.add(workflow.Node{Kind: workflow.Return, Code: b.code(out.name, out.name)})
	if b.err != nil {
		w.note(fmt.Errorf("workflow %s: %w", name, b.err))
		return
	}
	if w.add(g, b.functions); w.err == nil {
		w.note(w.set.Fits(name, fits[In](name)))
	}
}

// line returns the line outside of the builder that describes the node.
func line() int32 {
	for skip := 2; ; skip++ {
		_, file, at, is := runtime.Caller(skip)
		if !is {
			return 2
		}
		if !strings.HasSuffix(file, "/flow/builder.go") && !strings.HasSuffix(file, "/flow/child.go") && !strings.HasSuffix(file, "/flow/condition.go") {
			return int32(max(at, 2))
		}
	}
}

// code returns an expression that reads variables.
func (b *Builder) code(text string, reads ...string) *workflow.Code {
	slices.Sort(reads)
	return &workflow.Code{Text: text, Line: line(), Col: 1, Reads: slices.Compact(reads)}
}

// assign returns a statement that sets a variable.
func (b *Builder) assign(name, text string, reads ...string) *workflow.Code {
	c := b.code(" "+name+" = "+text, reads...)
	c.Writes = []string{name}
	return c
}

// result returns the assignment of a node's result.
func (b *Builder) result(name string) *workflow.Code {
	return b.assign(name, workflow.ResultName, workflow.ResultName)
}

func (b *Builder) variable() string {
	b.names++
	return "v" + strconv.Itoa(b.names)
}

// add adds a node as the target of the open edges.
func (b *Builder) add(n workflow.Node) int {
	n.Line, n.Depth = line(), b.depth
	i := len(b.f.Nodes)
	b.f.Nodes = append(b.f.Nodes, n)
	for _, e := range b.open {
		b.f.Nodes[e.node].Edges[e.number].To = i
	}
	b.open = nil
	return i
}

// step adds a node with one edge, to the next node.
func (b *Builder) step(n workflow.Node) int {
	n.Edges = []workflow.Edge{{Kind: workflow.Forward}}
	i := b.add(n)
	b.open = []edge{{i, 0}}
	return i
}

// function makes a function of the process callable in the code of the graph, and returns its name.
func (b *Builder) function(f func(args starlark.Tuple) (starlark.Value, error)) string {
	name := fmt.Sprintf("go%s_%d", b.version, len(b.functions)+1)
	b.functions[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (v starlark.Value, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		return f(args)
	})
	return name
}

// set adds a node that sets a variable to the result of a function.
func (b *Builder) set(f func(args starlark.Tuple) (starlark.Value, error), args ...string) string {
	v := b.variable()
	b.step(workflow.Node{Kind: workflow.Do, Code: b.assign(v, b.function(f)+"("+strings.Join(args, ", ")+")", args...)})
	return v
}

// CallOption configures a call of an action.
type CallOption func(*workflow.Policy)

// Retry makes several attempts, attempts in all: the second after the backoff, each further pause twice as long, up to
// a day. With types, only errors of one of these types are tried again. Factor, Step and MaxBackoff, behind it, change
// the pauses.
func Retry(attempts int, backoff time.Duration, types ...string) CallOption {
	return func(p *workflow.Policy) {
		p.Attempts, p.Backoff, p.Factor, p.On = attempts, backoff.Milliseconds(), 2, types
	}
}

// Within limits each attempt: it fails with a TimeoutError.
func Within(d time.Duration) CallOption {
	return func(p *workflow.Policy) { p.Timeout = d.Milliseconds() }
}

// Factor makes each pause of a Retry so many times as long as the one before; 1 makes all equally long.
func Factor(f float64) CallOption { return func(p *workflow.Policy) { p.Factor, p.Step = f, 0 } }

// Step makes each pause of a Retry longer than the one before by a duration.
func Step(d time.Duration) CallOption {
	return func(p *workflow.Policy) { p.Factor, p.Step = 0, d.Milliseconds() }
}

// MaxBackoff bounds the pauses of a Retry; a day unless it is set.
func MaxBackoff(d time.Duration) CallOption {
	return func(p *workflow.Policy) { p.MaxBackoff = d.Milliseconds() }
}

func (b *Builder) call(action, in string, options []CallOption) workflow.Call {
	c := workflow.Call{Action: action, Args: b.code("("+in+",), {}", in)}
	if len(options) > 0 {
		c.Policy = &workflow.Policy{}
		for _, set := range options {
			set(c.Policy)
		}
		if err := c.Policy.Check(); err != nil && b.err == nil {
			b.err = fmt.Errorf("the call of action %s (line %d): %w", action, line(), err)
		}
	}
	return c
}

// Deadline limits the runs of the workflow: one that has not ended after a duration fails with a DeadlineError, once its
// undo steps have ended. A run keeps the deadline that it began with.
func Deadline(b *Builder, d time.Duration) {
	if b.g.Deadline = d.Milliseconds(); d < time.Millisecond && b.err == nil {
		b.err = fmt.Errorf("the deadline %v is shorter than a millisecond", d)
	}
}

// Compensate registers an undo step: a call of an action with the value that in has now. If the run fails, is cancelled or
// exceeds its deadline, its undo steps are executed, the last one first. One that fails, after its attempts, is recorded in
// the error of the run, and the others go on.
func Compensate[In, Out any](b *Builder, a Action[In, Out], in Value[In], options ...CallOption) {
	b.step(workflow.Node{Kind: workflow.Compensate, Calls: []workflow.Call{b.call(a.name, in.name, options)}})
}

// Call calls an action, and waits for its result. Its failure is that of the run.
func Call[In, Out any](b *Builder, a Action[In, Out], in Value[In], options ...CallOption) Value[Out] {
	v := b.variable()
	b.step(workflow.Node{Kind: workflow.Action, Calls: []workflow.Call{b.call(a.name, in.name, options)}, Into: b.result(v)})
	return Value[Out]{v}
}

// Outcome is a value, or the error in its place.
type Outcome[T any] struct {
	Value T      `json:"value"`
	Error *Error `json:"error"`
}

// outcome returns the assignment of the result of an attempt.
func (b *Builder) outcome(v string) *workflow.Code {
	return b.assign(v, `{"value": `+workflow.ResultName+`.value, "error": `+workflow.ResultName+`.error}`, workflow.ResultName)
}

// Try is Call, and a failure is part of the value.
func Try[In, Out any](b *Builder, a Action[In, Out], in Value[In], options ...CallOption) Value[Outcome[Out]] {
	v := b.variable()
	b.step(workflow.Node{Kind: workflow.Action, Attempt: true, Calls: []workflow.Call{b.call(a.name, in.name, options)}, Into: b.outcome(v)})
	return Value[Outcome[Out]]{v}
}

// Each calls an action for each element of a list, all at the same time, and waits for the results, in order.
func Each[In, Out any](b *Builder, a Action[In, Out], list Value[[]In], options ...CallOption) Value[[]Out] {
	element, v := b.variable(), b.variable()
	b.fan(list.name, element, v, b.call(a.name, element, options))
	return Value[[]Out]{v}
}

// TryEach is Each, and a failure is part of its element's value: the other calls go on.
func TryEach[In, Out any](b *Builder, a Action[In, Out], list Value[[]In], options ...CallOption) Value[[]Outcome[Out]] {
	element, v := b.variable(), b.variable()
	b.tryFan(list.name, element, v, b.call(a.name, element, options))
	return Value[[]Outcome[Out]]{v}
}

// fan adds a call for each element of a list, with its results in the variable v.
func (b *Builder) fan(list, element, v string, call workflow.Call) {
	b.calls(list, element, call)
	b.step(workflow.Node{Kind: workflow.Join, List: true, Into: b.result(v)})
}

// tryFan is fan with outcomes as results.
func (b *Builder) tryFan(list, element, v string, call workflow.Call) {
	b.calls(list, element, call)
	b.step(workflow.Node{
		Kind: workflow.Join, List: true, Collect: true,
		Into: b.assign(v, `[{"value": None, "error": r} if type(r) == "error" else {"value": r, "error": None} for r in `+workflow.ResultName+"]", workflow.ResultName),
	})
}

func (b *Builder) calls(list, element string, call workflow.Call) {
	b.step(workflow.Node{
		Kind: workflow.Fan, Calls: []workflow.Call{call}, Each: &workflow.Each{Over: b.code(list, list), Target: b.result(element)},
	})
}

// Const returns a value that is known now.
func Const[T any](b *Builder, v T) Value[T] {
	return Value[T]{b.set(func(starlark.Tuple) (starlark.Value, error) { return fromGo(v) })}
}

// Map derives a value.
func Map[A, R any](b *Builder, v Value[A], f func(A) R) Value[R] {
	return Value[R]{b.set(func(args starlark.Tuple) (starlark.Value, error) {
		x, err := toGo[A](args[0])
		if err != nil {
			return nil, err
		}
		return fromGo(f(x))
	}, v.name)}
}

// Map2 derives a value from two.
func Map2[A, B, R any](b *Builder, v Value[A], w Value[B], f func(A, B) R) Value[R] {
	return Value[R]{b.set(func(args starlark.Tuple) (starlark.Value, error) {
		x, err := toGo[A](args[0])
		if err != nil {
			return nil, err
		}
		y, err := toGo[B](args[1])
		if err != nil {
			return nil, err
		}
		return fromGo(f(x, y))
	}, v.name, w.name)}
}

// Check fails the run with the error of a function. An *Error has a type.
func Check[A any](b *Builder, v Value[A], f func(A) error) {
	b.set(func(args starlark.Tuple) (starlark.Value, error) {
		x, err := toGo[A](args[0])
		if err == nil {
			err = f(x)
		}
		if err != nil {
			e := typed(err)
			return nil, &workflow.Failure{Name: e.Type, Ancestors: e.Ancestors, Message: e.Message}
		}
		return starlark.None, nil
	}, v.name)
}

// condition returns code that calls a function with a bool as its result.
func condition[A any](b *Builder, v string, f func(A) bool) *workflow.Code {
	return b.code(b.function(func(args starlark.Tuple) (starlark.Value, error) {
		x, err := toGo[A](args[0])
		if err != nil {
			return nil, err
		}
		return starlark.Bool(f(x)), nil
	})+"("+v+")", v)
}

// If takes one of two ways. Its value is that of the way.
func If[A, R any](b *Builder, v Value[A], is func(A) bool, then, otherwise func(b *Builder) Value[R]) Value[R] {
	out := b.variable()
	branch := b.add(workflow.Node{
		Kind: workflow.Branch, Code: condition(b, v.name, is),
		Edges: []workflow.Edge{{Kind: workflow.Forward, When: "true"}, {Kind: workflow.Forward, When: "false"}},
	})
	var open []edge
	for i, way := range []func(*Builder) Value[R]{then, otherwise} {
		b.open = []edge{{branch, i}}
		value := way(b)
		b.step(workflow.Node{Kind: workflow.Do, Code: b.assign(out, value.name, value.name)})
		open = append(open, b.open...)
	}
	b.open = open
	b.step(workflow.Node{Kind: workflow.Merge})
	return Value[R]{out}
}

// loop adds a loop. body describes an iteration; its last node is the one before the next iteration.
func (b *Builder) loop(head workflow.Node, body func()) {
	head.Kind, head.Edges = workflow.Loop, []workflow.Edge{{Kind: workflow.Continue}, {Kind: workflow.Break}}
	h := b.add(head)
	b.open = []edge{{h, 0}}
	b.depth++
	body()
	b.depth--
	for _, e := range b.open {
		back := &b.f.Nodes[e.node].Edges[e.number]
		back.Kind, back.To = workflow.Back, h
	}
	b.open = []edge{{h, 1}}
}

// Loop does something for one element of a list after the other, and collects the values.
func Loop[A, R any](b *Builder, list Value[[]A], body func(b *Builder, element Value[A]) Value[R]) Value[[]R] {
	all, element := b.variable(), b.variable()
	b.step(workflow.Node{Kind: workflow.Do, Code: b.assign(all, "[]")})
	b.loop(workflow.Node{Code: b.code(list.name, list.name), Into: b.result(element)}, func() {
		v := body(b, Value[A]{element})
		b.step(workflow.Node{Kind: workflow.Do, Code: b.code(" "+all+".append("+v.name+")", all, v.name)})
	})
	return Value[[]R]{all}
}

// While repeats body as long as a condition holds of a state, which body returns anew.
func While[S any](b *Builder, state Value[S], is func(S) bool, body func(b *Builder, state Value[S]) Value[S]) Value[S] {
	v := b.variable()
	b.step(workflow.Node{Kind: workflow.Do, Code: b.assign(v, state.name, state.name)})
	b.loop(workflow.Node{While: true, Code: condition(b, v, is)}, func() {
		next := body(b, Value[S]{v})
		b.step(workflow.Node{Kind: workflow.Do, Code: b.assign(v, next.name, next.name)})
	})
	return Value[S]{v}
}

// Sleep continues after a duration.
func Sleep(b *Builder, d time.Duration) {
	b.step(workflow.Node{Kind: workflow.Sleep, Code: b.code(strconv.FormatFloat(d.Seconds(), 'f', -1, 64))})
}

// Wait waits for a signal, and has its value.
func Wait[T any](b *Builder, signal string) Value[T] {
	v := b.variable()
	b.step(workflow.Node{Kind: workflow.Wait, Code: b.code("(" + strconv.Quote(signal) + ", None)"), Into: b.result(v)})
	return Value[T]{v}
}

// TryWait is Wait with a timeout, after which the value has a TimeoutError.
func TryWait[T any](b *Builder, signal string, timeout time.Duration) Value[Outcome[T]] {
	v := b.variable()
	seconds := strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64)
	b.step(workflow.Node{Kind: workflow.Wait, Attempt: true, Code: b.code("(" + strconv.Quote(signal) + ", " + seconds + ")"), Into: b.outcome(v)})
	return Value[Outcome[T]]{v}
}
