package workflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// A run can wait for a condition of documents. The run itself sees no documents: it names what it waits for (Conditions),
// what is outside evaluates that whenever a document has changed that it reads (Program.Holds), and the input Met has the
// value.

// Bounds of the conditions that a run waits for at a time, of their variables in bytes, and of the code of one evaluation in
// steps of the interpreter.
const (
	MaxConditions     = 256
	maxCaptured       = 64 << 10
	maxConditionSteps = 1_000_000
)

// Condition is a condition that a run waits for.
type Condition struct {
	// ID names the activation that waits.
	ID string
	// Func and Node are the place in the graph, and Vars the encoded variables that the condition reads, as they were when the
	// wait began.
	Func, Node int
	Vars       jsontext.Value
}

// Met reports that a condition holds, or that its evaluation has failed.
type Met struct {
	Wait   string         `json:"wait"`            // Condition.ID
	Value  jsontext.Value `json:"value,omitzero"`  // of the condition
	Failed *Failed        `json:"failed,omitzero"` // with its Type and Message
}

// conditions are the waits of a run for conditions.
type conditions struct {
	frames map[string]*frame // by Condition.ID
	bytes  int               // of their variables
}

func (c *conditions) enter(id string, f *frame) {
	if c.frames == nil {
		c.frames = map[string]*frame{}
	}
	c.frames[id] = f
	c.bytes += len(f.wait.until)
}

// leave removes the wait of a frame, if it is one for a condition.
func (c *conditions) leave(f *frame) {
	a := f.wait
	if a == nil || a.until == nil {
		return
	}
	delete(c.frames, waitID(f, a.node))
	c.bytes -= len(a.until)
}

// waitID is the ID of a wait of a frame at a node, and of its timer.
func waitID(f *frame, node int) string { return "wait " + f.key(node) }

// Conditions returns the conditions that the run waits for, sorted by ID.
func (r *Run) Conditions() []Condition {
	if len(r.conditions.frames) == 0 || r.outcome != nil {
		return nil
	}
	list := make([]Condition, 0, len(r.conditions.frames))
	for _, id := range slices.Sorted(maps.Keys(r.conditions.frames)) {
		f := r.conditions.frames[id]
		list = append(list, Condition{ID: id, Func: f.fn, Node: f.wait.node, Vars: f.wait.until})
	}
	return list
}

// awaitCondition waits for a condition, at most for some seconds if they are not negative.
func (r *Run) awaitCondition(f *frame, n *Node, at int, seconds float64) error {
	vars, err := r.program.capture(n.Until, f.vars)
	switch {
	case err != nil:
	case len(r.conditions.frames) >= MaxConditions:
		err = &Failure{Name: LimitError, Message: fmt.Sprintf("the run waits for more than %d conditions at a time", MaxConditions)}
	case r.conditions.bytes+len(vars) > maxCaptured:
		err = &Failure{Name: LimitError, Message: fmt.Sprintf("the variables in the conditions that the run waits for have more than %d bytes; use parts of them, in variables of their own", maxCaptured)}
	}
	if err != nil {
		f.wait = &activation{node: at}
		r.waitFailed(f, failureOf(err))
		return nil
	}
	f.wait = &activation{node: at, until: vars, since: r.now}
	r.conditions.enter(waitID(f, at), f)
	if seconds >= 0 {
		r.setTimer(f, waitID(f, at), max(seconds, 0.001)) // at least so long that the condition is evaluated
	}
	return nil
}

// met continues a frame whose condition holds, or fails it.
func (r *Run) met(in *Met) error {
	f := r.conditions.frames[in.Wait]
	if f == nil {
		return nil
	}
	if in.Failed != nil {
		r.waitFailed(f, &Failure{Name: in.Failed.Type, Ancestors: in.Failed.Ancestors, Message: in.Failed.Message})
		return nil
	}
	return r.waited(f, in.Value)
}

// captured are variables with what they refer to.
type captured struct {
	Vars map[string]jsontext.Value `json:"vars,omitzero"`
	Heap []object                  `json:"heap,omitzero"`
}

// capture encodes the variables that code reads.
func (p *Program) capture(c *Code, vars starlark.StringDict) (jsontext.Value, error) {
	s := &saver{p: p, ids: map[starlark.Value]int{}}
	out := captured{Vars: map[string]jsontext.Value{}}
	var err error
	for _, name := range c.Reads {
		if vars[name] == nil {
			return nil, fmt.Errorf("variable %s has no value here", name)
		}
		if out.Vars[name], err = s.value(vars[name], 0); err != nil {
			return nil, fmt.Errorf("variable %s in a condition: %w", name, err)
		}
	}
	if out.Heap, err = s.heap(); err != nil {
		return nil, fmt.Errorf("the variables of a condition: %w", err)
	}
	return json.Marshal(&out, json.Deterministic(true))
}

// Reader returns the value at a path of documents, of which the first element is the name of one; None where there is no
// value.
type Reader func(path []string) (starlark.Value, error)

// readerKey is the local variable of a thread that has the Reader.
const readerKey = "settle.reader"

// HasConditions reports whether a run of the graph can wait for a condition of documents.
func (g *Graph) HasConditions() bool {
	for i := range g.Funcs {
		if slices.ContainsFunc(g.Funcs[i].Nodes, func(n Node) bool { return n.Until != nil }) {
			return true
		}
	}
	return false
}

// Holds evaluates the condition of a wait. It returns its value if that is true, and else nil. An error is that of the condition.
func (p *Program) Holds(fn, node int, vars jsontext.Value, read Reader) (jsontext.Value, *Failure) {
	if fn < 0 || fn >= len(p.Graph.Funcs) || node < 0 || node >= len(p.Graph.Funcs[fn].Nodes) || p.Graph.Funcs[fn].Nodes[node].Until == nil {
		return nil, &Failure{Name: CodeError, Message: fmt.Sprintf("node %d of function %d waits for no condition", node, fn)}
	}
	c := p.Graph.Funcs[fn].Nodes[node].Until
	args, err := p.arguments(c, vars)
	if err != nil {
		return nil, failureOf(err)
	}
	thread := &starlark.Thread{Name: p.Graph.Name, Print: silent}
	thread.SetLocal(readerKey, read)
	thread.SetLocal(memoryKey, &memory{limit: maxConditionMemory})
	thread.SetMaxExecutionSteps(maxConditionSteps)
	v, err := starlark.Call(thread, p.code[c], args, nil)
	switch {
	case err != nil && thread.ExecutionSteps() >= maxConditionSteps:
		return nil, &Failure{Name: LimitError, Message: fmt.Sprintf("line %d: the condition takes more than %d operations; derive what it needs by a computation", c.Line, maxConditionSteps)}
	case err != nil:
		return nil, failureOf(err)
	case !bool(v.Truth()):
		return nil, nil
	}
	data, err := ToJSON(v)
	switch {
	case err != nil:
		return nil, &Failure{Name: CodeError, Message: fmt.Sprintf("the value of the condition (line %d): %v", c.Line, err)}
	case len(data) > MaxValue:
		return nil, &Failure{Name: LimitError, Message: fmt.Sprintf("the value of the condition (line %d) has %d bytes; at most %d are possible: compare it, or take a part", c.Line, len(data), MaxValue)}
	}
	return data, nil
}

// arguments decodes the variables of a condition, in the order in which its code reads them.
func (p *Program) arguments(c *Code, vars jsontext.Value) (starlark.Tuple, error) {
	var in captured
	if err := json.Unmarshal(vars, &in); err != nil {
		return nil, err
	}
	l := &loader{p: p}
	if err := l.load(in.Heap); err != nil {
		return nil, err
	}
	args := make(starlark.Tuple, len(c.Reads))
	for i, name := range c.Reads {
		v, err := l.value(in.Vars[name])
		if err != nil {
			return nil, fmt.Errorf("variable %s of a condition: %w", name, err)
		}
		v.Freeze() // each evaluation sees what the wait began with
		args[i] = v
	}
	return args, nil
}

// get is get(document, *path) in Starlark, in the condition of a wait.
func get(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	read, is := t.Local(readerKey).(Reader)
	if !is {
		return nil, errors.New(`documents can be read in the condition of a wait only, such as wait(lambda: get("order", "approved"))`)
	}
	if len(kwargs) > 0 || len(args) == 0 {
		return nil, fmt.Errorf(`%s takes the name of a document, and a path in it: get("order", "lines", "tea")`, b.Name())
	}
	path := make([]string, len(args))
	for i, arg := range args {
		text, is := starlark.AsString(arg)
		if !is {
			return nil, fmt.Errorf("%s takes texts, and not a %s; take the element of a list from what get returns", b.Name(), arg.Type())
		}
		path[i] = text
	}
	return read(path)
}
