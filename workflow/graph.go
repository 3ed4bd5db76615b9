package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
)

// Format is the version of the encoding of graphs.
const Format = 1

// Graph is a workflow as it is stored. A run begins with the first function.
type Graph struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// Deadline is how long a run may take, in milliseconds; 0 means without end.
	Deadline int64 `json:"deadline,omitzero"`
	// Prelude has the constants and functions without actions that the code of nodes uses.
	Prelude []Code `json:"prelude,omitzero"`
	Funcs   []Func `json:"funcs"`
}

// Func is a function with actions. It begins with the first node.
type Func struct {
	Name   string  `json:"name"`
	Params []Param `json:"params,omitzero"`
	// Whole makes the only parameter the object of all arguments, of the first function of a graph.
	Whole bool   `json:"whole,omitzero"`
	Nodes []Node `json:"nodes"`
}

// Param is a parameter. One without a default is required.
type Param struct {
	Name    string `json:"name"`
	Default *Code  `json:"default,omitzero"`
}

// Kind is the kind of a node.
type Kind string

// Kinds of Node.
const (
	Do     Kind = "do"     // statements without actions, executed in the step
	Branch Kind = "branch" // follows the edge of the value of Code: "true" or "false"
	Merge  Kind = "merge"  // where alternatives meet
	Loop   Kind = "loop"   // the head of a loop, executed in the step
	Action Kind = "action" // one call
	Child  Kind = "child"  // one run of another workflow
	Fan    Kind = "fan"    // concurrent calls: literal ones, or one for each element
	Join   Kind = "join"   // waits for all calls of a fan-out, and lists their results in order
	Sleep  Kind = "sleep"  // continues after a time
	Wait   Kind = "wait"   // continues with the value of a signal, or of a condition
	Return Kind = "return" // ends the function
	// Compensate registers the one call that it has as an undo step, whose arguments it evaluates.
	Compensate Kind = "compensate"
)

// Node is one step of a function.
type Node struct {
	Kind Kind `json:"kind"`
	// Line and Col are the position in the source.
	Line int32 `json:"line,omitzero"`
	Col  int32 `json:"col,omitzero"`
	// Depth is the number of enclosing loops in its function; the head of a loop is not inside the loop.
	Depth int `json:"depth,omitzero"`
	// Code has the statements of a do, the condition of a branch or a while loop, the value that a for loop
	// iterates over, the seconds of a sleep, the name and the timeout in seconds (or None) of a wait, as a pair,
	// or the value of a return.
	Code *Code `json:"code,omitzero"`
	// Until is the condition of a wait for documents, which is evaluated outside of the run; the name in Code is None then.
	Until *Code `json:"until,omitzero"`
	// While marks a loop head whose Code is a condition.
	While bool `json:"while,omitzero"`
	// Calls are the calls of an action, a child or a compensate (one) or a fan-out. With Each, there is one call for each element, and
	// Calls has its pattern.
	Calls []Call `json:"calls,omitzero"`
	Each  *Each  `json:"each,omitzero"`
	// Into assigns the result, which it reads as ResultName: of an action, a child, a join or a wait, or the element of a loop.
	Into *Code `json:"into,omitzero"`
	// Attempt makes a failure of the call or of the wait part of the result, in place of failing the run.
	Attempt bool `json:"attempt,omitzero"`
	// Collect makes failed calls of a fan-out errors in the list of results.
	Collect bool `json:"collect,omitzero"`
	// List makes the results of a fan-out a list, in place of a tuple.
	List  bool   `json:"list,omitzero"`
	Edges []Edge `json:"edges,omitzero"`
}

// ResultName is the variable from which Node.Into reads the result.
const ResultName = "_result"

// Call is the call of an action, of a function of the graph, or of a child: a run of another workflow.
type Call struct {
	Action string `json:"action,omitzero"`
	Func   string `json:"func,omitzero"`
	// Child is the workflow that the call starts a run of. Away means that it names the space of the run.
	Child string `json:"child,omitzero"`
	Away  bool   `json:"away,omitzero"`
	// Args evaluates to a pair: a tuple of the positional arguments, and a dict of the named ones. Of a child, they are
	// the arguments of its run, a dict by name, and its id and space.
	Args   *Code   `json:"args"`
	Policy *Policy `json:"policy,omitzero"`
}

// name returns the name of what is called.
func (c *Call) name() string { return c.Action + c.Func }

// Each is the iteration of a fan-out.
type Each struct {
	// Over is the iterable. Target assigns an element, which it reads as ResultName, to the names that If and
	// the arguments of the call read.
	Over   *Code `json:"over"`
	Target *Code `json:"target"`
	If     *Code `json:"if,omitzero"`
}

// Code is source text with its variables. Statements are whole lines with their indentation.
type Code struct {
	Text string `json:"text"`
	// Line and Col are the position in the source.
	Line   int32    `json:"line,omitzero"`
	Col    int32    `json:"col,omitzero"`
	Reads  []string `json:"reads,omitzero"`
	Writes []string `json:"writes,omitzero"` // of statements: the variables that have a value afterwards
}

// EdgeKind is the condition for following an edge.
type EdgeKind string

// Kinds of Edge.
const (
	Forward  EdgeKind = "forward"
	Continue EdgeKind = "continue" // from a loop head into another iteration
	Break    EdgeKind = "break"    // from a loop head out of the loop
	Back     EdgeKind = "back"     // to a loop head after an iteration
)

// Edge leads to another node of the function.
type Edge struct {
	Kind EdgeKind `json:"kind"`
	To   int      `json:"to"`
	// When is the value of a branch for which the edge is followed.
	When string `json:"when,omitzero"`
}

// Policy has the retries and the timeout of a call.
type Policy struct {
	// Attempts is the largest number of attempts; 0 means 1.
	Attempts int `json:"attempts,omitzero"`
	// On are the types of errors that are retried; if it is empty, all are.
	On []string `json:"on,omitzero"`
	// Backoff is the pause before the second attempt, in milliseconds. Each further pause is Factor times as long (0 means
	// 1), or longer by Step, up to MaxBackoff (0 means a day). Without Backoff, the first pause is Step.
	Backoff    int64   `json:"backoff,omitzero"`
	Factor     float64 `json:"factor,omitzero"`
	Step       int64   `json:"step,omitzero"`
	MaxBackoff int64   `json:"max_backoff,omitzero"`
	// Timeout is the longest time of an attempt from its delivery, in milliseconds; 0 means the performer's
	// default.
	Timeout int64 `json:"timeout,omitzero"`
}

// Encode returns the graph as it is stored: the same bytes for the same graph.
func (g *Graph) Encode() ([]byte, error) {
	data, err := json.Marshal(g, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode workflow %s: %w", g.Name, err)
	}
	return data, nil
}

// Version returns the hash of the graph.
func (g *Graph) Version() (string, error) {
	data, err := g.Encode()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// Decode is the inverse of Encode. It checks the graph.
func Decode(data []byte) (*Graph, error) {
	var g Graph
	if err := json.Unmarshal(data, &g, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("decode a workflow: %w", err)
	}
	return &g, g.Check()
}

// Actions returns the names of the actions that a graph calls, sorted.
func (g *Graph) Actions() []string {
	var names []string
	for i := range g.Funcs {
		for j := range g.Funcs[i].Nodes {
			for _, c := range g.Funcs[i].Nodes[j].Calls {
				if c.Action != "" && !slices.Contains(names, c.Action) {
					names = append(names, c.Action)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// maxNodes is the largest number of nodes of a graph.
const maxNodes = 20_000

// Check returns an error for an invalid graph.
func (g *Graph) Check() error {
	if g.Format != Format {
		return fmt.Errorf("workflow %s has format %d, and this program reads %d; upgrade it", g.Name, g.Format, Format)
	}
	if g.Deadline < 0 || g.Deadline > maxSleep*1000 {
		return fmt.Errorf("workflow %s has a deadline of %d milliseconds; it must be from 0, for none, to %d", g.Name, g.Deadline, int64(maxSleep)*1000)
	}
	if len(g.Funcs) == 0 {
		return fmt.Errorf("workflow %s has no function", g.Name)
	}
	c := checker{g: g, funcs: map[string]int{}}
	for i := range g.Funcs {
		if _, twice := c.funcs[g.Funcs[i].Name]; twice {
			return fmt.Errorf("workflow %s has two functions %s", g.Name, g.Funcs[i].Name)
		}
		c.funcs[g.Funcs[i].Name] = i
	}
	nodes := 0
	for i := range g.Funcs {
		f := &g.Funcs[i]
		if f.Whole && (i > 0 || len(f.Params) != 1) {
			return fmt.Errorf("workflow %s: function %s takes all arguments as one object, which only the first function can, with one parameter", g.Name, f.Name)
		}
		if nodes += len(f.Nodes); len(f.Nodes) == 0 || nodes > maxNodes {
			return fmt.Errorf("workflow %s: function %s has no nodes, or the workflow more than %d", g.Name, f.Name, maxNodes)
		}
		for n := range f.Nodes {
			if err := c.node(f, n); err != nil {
				return fmt.Errorf("workflow %s: function %s, node %d: %w", g.Name, f.Name, n, err)
			}
		}
	}
	if err := c.noRecursion(); err != nil {
		return err
	}
	return c.undoRegistersNothing()
}

type checker struct {
	g     *Graph
	funcs map[string]int
}

// node checks one node. Fields that its kind does not use may be missing.
func (c *checker) node(f *Func, at int) error {
	n := &f.Nodes[at]
	for _, e := range n.Edges {
		if e.To < 0 || e.To >= len(f.Nodes) {
			return fmt.Errorf("an edge leads to node %d of %d", e.To, len(f.Nodes))
		}
		if e.Kind == Back && f.Nodes[e.To].Kind != Loop {
			return fmt.Errorf("a back edge leads to a %s", f.Nodes[e.To].Kind)
		}
	}
	want := map[Kind][]Edge{
		Do: {{Kind: Forward}}, Merge: {{Kind: Forward}}, Action: {{Kind: Forward}}, Child: {{Kind: Forward}}, Compensate: {{Kind: Forward}}, Fan: {{Kind: Forward}}, Join: {{Kind: Forward}}, Sleep: {{Kind: Forward}}, Wait: {{Kind: Forward}},
		Branch: {{Kind: Forward, When: "true"}, {Kind: Forward, When: "false"}},
		Loop:   {{Kind: Continue}, {Kind: Break}},
		Return: nil,
	}
	edges, known := want[n.Kind]
	switch {
	case !known:
		return fmt.Errorf("there is no kind %q", n.Kind)
	case len(edges) != len(n.Edges):
		return fmt.Errorf("a %s has %d edges, this one %d", n.Kind, len(edges), len(n.Edges))
	case n.Until != nil && n.Kind != Wait:
		return fmt.Errorf("a %s waits for no condition", n.Kind)
	case n.Code == nil && (n.Kind == Do || n.Kind == Branch || n.Kind == Loop || n.Kind == Sleep || n.Kind == Wait || n.Kind == Return):
		return fmt.Errorf("a %s needs code", n.Kind)
	case (n.Kind == Action || n.Kind == Child || n.Kind == Compensate) && len(n.Calls) != 1:
		return fmt.Errorf("a node of kind %s has one call, this one %d", n.Kind, len(n.Calls))
	case (n.Kind == Action || n.Kind == Child || n.Kind == Compensate) && (n.Calls[0].Child != "") != (n.Kind == Child):
		return fmt.Errorf("a call of another kind than its node, which is of kind %s", n.Kind)
	case n.Kind == Fan && n.Each != nil && (len(n.Calls) != 1 || n.Each.Over == nil || n.Each.Target == nil):
		return fmt.Errorf("a fan-out over elements has one call, and says over what it goes")
	case n.Kind == Fan && f.Nodes[n.Edges[0].To].Kind != Join:
		return fmt.Errorf("a fan-out leads to a join")
	}
	for i, e := range edges {
		got := n.Edges[i]
		if got.When != e.When || got.Kind != e.Kind && (got.Kind != Back || e.Kind != Forward) {
			return fmt.Errorf("edge %d of a %s is %s %q, want %s %q", i, n.Kind, got.Kind, got.When, e.Kind, e.When)
		}
	}
	for i := range n.Calls {
		call := &n.Calls[i]
		if _, ours := c.funcs[call.Func]; call.Args == nil || !call.namesOne() || call.Func != "" && !ours {
			return fmt.Errorf("call %d names no action, no function of the workflow and no child", i)
		}
	}
	return nil
}

// undoRegistersNothing refuses undo steps that register others.
func (c *checker) undoRegistersNothing() error {
	known := map[int]bool{}
	var visit func(fn int) bool
	visit = func(fn int) bool {
		is, met := known[fn]
		if !met {
			is = slices.ContainsFunc(c.g.Funcs[fn].Nodes, func(n Node) bool {
				return n.Kind == Compensate || slices.ContainsFunc(n.Calls, func(call Call) bool { return call.Func != "" && visit(c.funcs[call.Func]) })
			})
			known[fn] = is
		}
		return is
	}
	for i := range c.g.Funcs {
		for _, n := range c.g.Funcs[i].Nodes {
			if n.Kind == Compensate && n.Calls[0].Func != "" && visit(c.funcs[n.Calls[0].Func]) {
				return fmt.Errorf("workflow %s: function %s is an undo step, and registers undo steps itself", c.g.Name, n.Calls[0].Func)
			}
		}
	}
	return nil
}

// noRecursion refuses functions that call themselves, so that the depth of calls in a run is bounded.
func (c *checker) noRecursion() error {
	state := make([]int, len(c.g.Funcs)) // 1: being visited, 2: done
	var visit func(i int) error
	visit = func(i int) error {
		switch state[i] {
		case 1:
			return fmt.Errorf("workflow %s: function %s calls itself", c.g.Name, c.g.Funcs[i].Name)
		case 2:
			return nil
		}
		state[i] = 1
		for n := range c.g.Funcs[i].Nodes {
			for _, call := range c.g.Funcs[i].Nodes[n].Calls {
				if call.Func != "" {
					if err := visit(c.funcs[call.Func]); err != nil {
						return err
					}
				}
			}
		}
		state[i] = 2
		return nil
	}
	for i := range c.g.Funcs {
		if err := visit(i); err != nil {
			return err
		}
	}
	return nil
}
