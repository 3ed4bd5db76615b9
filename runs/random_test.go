package runs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/settlehq/settle/internal/randomstar"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

// randomPrograms is how many random programs are tried.
const randomPrograms = 60

// A run in a space has the outcome of a run in memory, which package compile compares with the interpreter, and calls
// the same actions; also if every process ends before each end of an action.
func TestRandomPrograms_ComeToTheSameInASpace(t *testing.T) {
	d := inStarlark(t, randomstar.Actions)
	for seed := range uint64(randomPrograms) {
		src, args := randomstar.Program(10_000+seed), fmt.Sprintf(`{"n":%d}`, seed%5)
		result, log := inMemory(t, src, args, d)
		for _, restart := range []bool{false, true} {
			w := newWorld(t, src, d, simkit.Options{})
			w.restart = restart
			w.start("r", args)
			w.perform()
			got, log := w.outcome("r"), slices.Clone(log)
			if strings.Contains(src, "parallel(") { // concurrent calls have no order
				slices.Sort(w.log)
				slices.Sort(log)
			}
			// Before an error, concurrent calls may end in another order, and others not at all.
			if failed := strings.HasPrefix(result, "error") && strings.HasPrefix(got, result); !failed && (got != result || !slices.Equal(w.log, log)) {
				t.Fatalf("seed %d, restart %v: %s after %v\nin memory: %s after %v\n%s", seed, restart, got, w.log, result, log, src)
			}
			w.clean()
		}
	}
}

// A run that is reset to any of its steps comes to the same again; one that failed does so after a retry. Its
// actions are functions of their arguments.
func TestRandomPrograms_ComeToTheSameAfterAReset(t *testing.T) {
	t.Parallel()
	d := inStarlark(t, randomstar.Actions)
	for seed := range uint64(randomPrograms / 3) {
		src, args := randomstar.Program(20_000+seed), fmt.Sprintf(`{"n":%d}`, seed%5)
		w := newWorld(t, src, d, simkit.Options{})
		w.restart = seed%2 == 0
		w.start("r", args)
		w.perform()
		want := w.outcome("r")
		for try := range uint64(3) {
			steps, err := headOf(w.s.Value(Doc("r")))
			if err != nil || steps.n < 2 {
				break
			}
			stream, payload := StreamReset, fmt.Sprintf(`{"run":"r","step":%d}`, 1+(seed*7+try*13)%uint64(steps.n-1))
			if strings.HasPrefix(want, "error") && try == 0 {
				stream, payload = StreamRetry, `{"run":"r"}`
			}
			w.operate(stream, payload)
			// Concurrent calls may fail in another order.
			if got := w.outcome("r"); got != want && !(strings.HasPrefix(want, "error") && strings.HasPrefix(got, "error")) {
				t.Fatalf("seed %d, %s %s: %s, not %s\n%s", seed, stream, payload, got, want, src)
			}
		}
		w.clean()
	}
}

// inMemory runs a program as a workflow without a space. The result of a failure is "error" and its type.
func inMemory(t *testing.T, src, args string, d deeds) (result string, log []string) {
	t.Helper()
	g, err := compile.Compile("w.star", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		t.Fatal(err)
	}
	run, inputs := workflow.New(p), []workflow.Input{{Begin: jsontext.Value(args)}}
	for len(inputs) > 0 {
		e, err := run.Step(inputs[0])
		if err != nil {
			t.Fatal(err)
		}
		if o := e.Outcome; o != nil && o.Error != nil {
			return "error " + o.Error.Name, log
		} else if o != nil {
			return string(o.Result), log
		}
		inputs = inputs[1:]
		for _, w := range e.Start {
			in, line := performed(t, w, d)
			inputs, log = append(inputs, in), append(log, line)
		}
	}
	t.Fatalf("it waits without end; so far %v", log)
	return "", nil
}

// performed performs an action in memory.
func performed(t *testing.T, w workflow.Work, d deeds) (workflow.Input, string) {
	t.Helper()
	args, err := workflow.FromJSON(w.Args)
	if err != nil {
		t.Fatal(err)
	}
	named, err := workflow.FromJSON(w.Named)
	if err != nil {
		t.Fatal(err)
	}
	list := slices.Collect(args.(*starlark.List).Elements())
	line := shown(w.Action, list, named.(*starlark.Dict))
	v, err := starlark.Call(&starlark.Thread{}, d[w.Action], list, named.(*starlark.Dict).Items())
	if err != nil {
		f := &workflow.Failed{Work: w.ID, Attempt: w.Attempt, Type: "Error", Message: err.Error()}
		var own *workflow.Failure
		if errors.As(err, &own) {
			f.Type, f.Message = own.Name, own.Message
		}
		return workflow.Input{Failed: f}, line
	}
	data, err := workflow.ToJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return workflow.Input{Done: &workflow.Done{Work: w.ID, Attempt: w.Attempt, Result: data}}, line
}
