package workflow

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// A child is a run of another workflow that a run starts and waits for. To this package it is work like an action: what
// starts it, and reports its end, is outside.

// Children returns the names of the workflows that a graph starts runs of in the space of its own run, sorted.
func (g *Graph) Children() []string {
	var names []string
	for i := range g.Funcs {
		for j := range g.Funcs[i].Nodes {
			for _, c := range g.Funcs[i].Nodes[j].Calls {
				if c.Child != "" && !c.Away && !slices.Contains(names, c.Child) {
					names = append(names, c.Child)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// namesOne reports whether the call is of one thing: an action, a function or a child.
func (c *Call) namesOne() bool {
	n := 0
	for _, name := range []string{c.Action, c.Func, c.Child} {
		if name != "" {
			n++
		}
	}
	return n == 1 && (c.Child != "" || !c.Away)
}

// describe names what is called, in an error.
func (c *Call) describe() string {
	switch {
	case c.Child != "":
		return "child " + c.Child
	case c.Func != "":
		return "function " + c.Func
	}
	return "action " + c.Action
}

// label is the call in a picture, in a node of a kind.
func (c *Call) label(in Kind) string {
	if c.Child != "" && in != Child {
		return "child " + c.Child
	}
	return c.Action + c.Func + c.Child
}

// take encodes the arguments of a call.
func (w *work) take(c *called) (err error) {
	if c.call.Child != "" {
		w.args, w.named, err = childArguments(c.args, c.named)
		return err
	}
	if w.args, err = ToJSON(c.args); err == nil {
		w.named, err = ToJSON(c.named)
	}
	return err
}

// childArguments returns the arguments of a child's run, and its id and space as far as they are given.
func childArguments(args starlark.Tuple, named *starlark.Dict) (in, options jsontext.Value, err error) {
	in = jsontext.Value("{}")
	if len(args) > 0 && args[0] != starlark.None {
		if _, is := args[0].(*starlark.Dict); !is {
			return nil, nil, fmt.Errorf(`a dict by name, such as {"n": 1}, is needed, not a %s`, args[0].Type())
		}
		if in, err = ToJSON(args[0]); err != nil {
			return nil, nil, err
		}
	}
	given := starlark.NewDict(2)
	for _, item := range named.Items() {
		if item[1] == starlark.None {
			continue
		}
		if _, is := item[1].(starlark.String); !is {
			return nil, nil, fmt.Errorf("%s must be a text, not a %s", item[0], item[1].Type())
		}
		_ = given.SetKey(item[0], item[1]) // a new dict takes all texts
	}
	options, err = ToJSON(given)
	return in, options, err
}
