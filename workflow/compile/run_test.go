package compile

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/settlehq/settle/workflow"
)

// deeds are actions: functions of JSON-like values.
type deeds map[string]func(args starlark.Tuple, named starlark.StringDict) (starlark.Value, error)

// outcome is the result of a program, and its actions.
type outcome struct {
	result string // JSON, or "error " and its type
	log    []string
}

// stock runs a program in the ordinary interpreter, which performs actions at once.
func stock(t *testing.T, src, args string, d deeds) outcome {
	t.Helper()
	var out outcome
	pre := workflow.Builtins()
	var run starlark.Callable
	pre["workflow"] = starlark.NewBuiltin("workflow", func(_ *starlark.Thread, _ *starlark.Builtin, a starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		run = a[1].(starlark.Callable)
		return starlark.None, nil
	})
	pre["parallel"] = starlark.NewBuiltin("parallel", func(_ *starlark.Thread, _ *starlark.Builtin, a starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
		if len(a) == 1 {
			if l, is := a[0].(*starlark.List); is {
				return l, nil
			}
		}
		return a, nil
	})
	pre["sleep"] = starlark.NewBuiltin("sleep", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return starlark.None, nil
	})
	first := func(_ *starlark.Thread, _ *starlark.Builtin, a starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return a[0], nil
	}
	pre["retry"], pre["timeout"] = starlark.NewBuiltin("retry", first), starlark.NewBuiltin("timeout", first)
	thread := &starlark.Thread{Load: func(_ *starlark.Thread, module string) (starlark.StringDict, error) {
		fns := starlark.StringDict{}
		for name, do := range d {
			fns[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, a starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
				named := starlark.StringDict{}
				for _, pair := range kw {
					named[string(pair[0].(starlark.String))] = pair[1]
				}
				out.log = append(out.log, shown(name, a, named))
				return do(a, named)
			})
		}
		return fns, nil
	}}
	if _, err := starlark.ExecFileOptions(workflow.Dialect(), thread, "w.star", src, pre); err != nil {
		t.Fatal(err)
	}
	var kw []starlark.Tuple
	v, err := workflow.FromJSON(jsontext.Value(args))
	if err != nil {
		t.Fatal(err)
	}
	kw = append(kw, v.(*starlark.Dict).Items()...)
	got, err := starlark.Call(thread, run, nil, kw)
	if err != nil {
		out.result = "error " + typeOf(err)
		return out
	}
	data, err := workflow.ToJSON(got)
	if out.result = string(data); err != nil {
		out.result = "error " + workflow.CodeError
	}
	return out
}

func typeOf(err error) string {
	var f *workflow.Failure
	if errors.As(err, &f) {
		return f.Name
	}
	return workflow.CodeError
}

func shown(name string, args starlark.Tuple, named starlark.StringDict) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, a.String())
	}
	for _, k := range slices.Sorted(maps.Keys(named)) {
		parts = append(parts, k+"="+named[k].String())
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

// driven runs a program as a workflow, whose actions are performed in the order of their starts. With reload,
// the run is stored and loaded after every step.
func driven(t *testing.T, src, args string, d deeds, reload bool) outcome {
	t.Helper()
	g, err := Compile("w.star", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	data, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if g, err = workflow.Decode(data); err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		t.Fatal(err)
	}
	run := workflow.New(p)
	var out outcome
	inputs := []workflow.Input{{Begin: jsontext.Value(args)}}
	for n := 0; len(inputs) > 0; n++ {
		if n > 100_000 {
			t.Fatal("it does not end")
		}
		e, err := run.Step(inputs[0])
		if err != nil {
			t.Fatal(err)
		}
		inputs = inputs[1:]
		if e.Outcome != nil {
			if out.result = string(e.Outcome.Result); e.Outcome.Error != nil {
				out.result = "error " + e.Outcome.Error.Name
			}
			return out
		}
		if reload {
			snap, err := run.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if run, err = workflow.Load(p, snap); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range e.Start {
			inputs = append(inputs, perform(t, &out, d, w))
		}
		for _, timer := range e.Timers {
			inputs = append(inputs, workflow.Input{Now: timer.At, Timer: timer.ID})
		}
	}
	t.Fatalf("it waits without end; so far %v", out.log)
	return out
}

func perform(t *testing.T, out *outcome, d deeds, w workflow.Work) workflow.Input {
	t.Helper()
	a, err := workflow.FromJSON(w.Args)
	if err != nil {
		t.Fatal(err)
	}
	var args starlark.Tuple
	for i := range a.(*starlark.List).Len() {
		args = append(args, a.(*starlark.List).Index(i))
	}
	n, err := workflow.FromJSON(w.Named)
	if err != nil {
		t.Fatal(err)
	}
	named := starlark.StringDict{}
	for _, item := range n.(*starlark.Dict).Items() {
		named[string(item[0].(starlark.String))] = item[1]
	}
	out.log = append(out.log, shown(w.Action, args, named))
	v, err := d[w.Action](args, named)
	if err == nil {
		var data jsontext.Value
		if data, err = workflow.ToJSON(v); err == nil {
			return workflow.Input{Done: &workflow.Done{Work: w.ID, Attempt: w.Attempt, Result: data}}
		}
	}
	return workflow.Input{Failed: &workflow.Failed{Work: w.ID, Attempt: w.Attempt, Type: typeOf(err), Message: err.Error()}}
}

// same runs a program in all ways, and compares the outcomes.
func same(t *testing.T, src, args string, d deeds) outcome {
	t.Helper()
	want := stock(t, src, args, d)
	for _, reload := range []bool{false, true} {
		got := driven(t, src, args, d, reload)
		if strings.Contains(src, "parallel(") { // concurrent calls have no order
			slices.Sort(got.log)
			slices.Sort(want.log)
			if strings.HasPrefix(want.result, "error") { // nor have the calls before an error
				got.log = want.log
			}
		}
		if got.result != want.result || !slices.Equal(got.log, want.log) {
			t.Fatalf("reloaded %v: %s after %v\nthe interpreter: %s after %v\n%s", reload, got.result, got.log, want.result, want.log, src)
		}
	}
	return want
}
