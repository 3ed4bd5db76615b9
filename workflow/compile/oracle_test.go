package compile

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/settlehq/settle/internal/randomstar"
	"github.com/settlehq/settle/workflow"
)

var mixedPrograms = flag.Int("mixed-programs", 5000, "how many random programs with every construct are compared with the interpreter")

// Random programs with every construct, whose actions fail at random, have the outcome of the ordinary interpreter, and
// call the same actions: if one thing happens after the other, in the same order; if actions end and timers fire in any
// order, answers arrive twice, and the run is loaded at any time from a snapshot or from its inputs. A program that differs is
// shrunk. For more of them: go test ./workflow/compile -run HaveTheOutcome -timeout 3h -args -mixed-programs=1000000
func TestRandomPrograms_HaveTheOutcomeOfTheInterpreter(t *testing.T) {
	const parts = 4
	stats := make([]*statistics, parts)
	t.Run("programs", func(t *testing.T) {
		for part := range parts {
			stats[part] = newStatistics()
			t.Run(strconv.Itoa(part), func(t *testing.T) {
				t.Parallel()
				for i := part; i < *mixedPrograms; i += parts {
					seed := *firstProgram + uint64(i)
					src := randomstar.Mixed(seed)
					if seed%6 == 0 {
						src = randomstar.Lambdas(seed)
					}
					why := compared(seed, src, stats[part])
					if why == "" {
						if n := i / parts; n > 0 && n%2_500 == 0 {
							t.Logf("%d programs", n)
						}
						continue
					}
					src = shrunk(seed, src)
					t.Fatalf("seed %d: %s\n%s\nin the interpreter:\n%s", seed, compared(seed, src, newStatistics()), src.Workflow(), src.Oracle())
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	all := newStatistics()
	for _, s := range stats {
		all.add(s)
	}
	all.check(t, *mixedPrograms)
}

// A lambda that uses a variable of its function means what it does in the interpreter, also after calls of actions, or it is
// refused: random programs in which lambdas use any variable.
func TestRandomPrograms_LambdasMeanWhatTheyDoInTheInterpreter(t *testing.T) {
	s := newStatistics()
	s.captures = true
	n := *mixedPrograms / 5
	for i := range n {
		seed := *firstProgram + uint64(i)
		if src := randomstar.Capturing(seed); compared(seed, src, s) != "" {
			src = shrunk(seed, src)
			t.Fatalf("seed %d: %s\n%s", seed, compared(seed, src, newStatistics()), src.Workflow())
		}
	}
	if kept := s.outcomes["result"] + s.outcomes["error"]; s.outcomes["refused"] < n/10 || kept < n/2 {
		t.Errorf("of %d programs these were refused, and proved something: %v", n, s.outcomes)
	}
	t.Log(s.outcomes)
}

// statistics count what the programs were like.
type statistics struct {
	constructs map[string]int // programs with the construct
	outcomes   map[string]int // programs by their outcome, and unordered ones
	patterns   map[string]*regexp.Regexp
	captures   bool // programs may be refused because of what a lambda uses
}

func newStatistics() *statistics {
	s := &statistics{constructs: map[string]int{}, outcomes: map[string]int{}, patterns: map[string]*regexp.Regexp{}}
	for name, text := range randomstar.Constructs {
		s.patterns[name] = regexp.MustCompile(text)
	}
	return s
}

func (s *statistics) add(o *statistics) {
	for name, n := range o.constructs {
		s.constructs[name] += n
	}
	for name, n := range o.outcomes {
		s.outcomes[name] += n
	}
}

// check fails the test if programs of some kind were too rare to prove anything.
func (s *statistics) check(t *testing.T, programs int) {
	t.Helper()
	least := programs / 200
	for name := range s.patterns {
		if s.constructs[name] < least {
			t.Errorf("of %d programs only %d have %s, want %d", programs, s.constructs[name], name, least)
		}
	}
	if s.outcomes["long"] > programs/100 || s.outcomes["result"] < programs/3 || s.outcomes["error"] < programs/10 {
		t.Errorf("of %d programs these proved something: %v", programs, s.outcomes)
	}
	t.Log(s.outcomes)
}

// shrunk removes lines of a program as long as it is a program and the outcomes differ.
func shrunk(seed uint64, src *randomstar.Source) *randomstar.Source {
	for again := true; again; {
		again = false
		for at := 0; at < src.Lines(); {
			less := src.Without(at)
			if why := compared(seed, less, newStatistics()); why != "" && !strings.HasPrefix(why, notAProgram) {
				src, again = less, true
				continue
			}
			at++
		}
	}
	return src
}

// notAProgram begins the reasons that are none of the workflow.
const notAProgram = "no program: "

// compared returns how the outcomes of a program differ, "" if they do not.
func compared(seed uint64, src *randomstar.Source, s *statistics) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	text := src.Workflow()
	for name, p := range s.patterns { // any order: each on its own
		if p.MatchString(text) {
			s.constructs[name]++
		}
	}
	if p, err := prepared(text, seed); err == nil {
		why = played(seed, src, p, s)
	} else if s.captures && strings.Contains(err.Error(), "after the lambda is made") {
		s.outcomes["refused"]++
	} else {
		why = notAProgram + "it is refused: " + err.Error()
	}
	return why
}

// played returns how the outcomes of a workflow differ from that of its source in the interpreter.
func played(seed uint64, src *randomstar.Source, p *workflow.Program, s *statistics) string {
	actions := &chance{seed: seed}
	args := fmt.Sprintf(`{"n":%d}`, seed%4)
	want, err := interpreted(src.Oracle(), args, actions)
	if err != nil {
		return notAProgram + err.Error()
	}
	if len(want.log) > maxCalls {
		s.outcomes["long"]++
		return ""
	}
	s.outcomes[strings.Fields(want.outcome + " ")[0]]++
	if want.racy {
		s.outcomes["racy"]++
	}
	modes := []int{inOrder, anyOrder, loaded}
	if seed%8 > 0 {
		modes = modes[:2]
	}
	for _, mode := range modes {
		pl := newPlay(p, actions, mode, seed)
		got, err := pl.play(args)
		if err != nil {
			return fmt.Sprintf("mode %d: %v", mode, err)
		}
		if want.atOnce || mode == anyOrder && want.racy { // the failure of which call is the first one depends on the order
			continue
		}
		if got.outcome != want.outcome {
			return fmt.Sprintf("mode %d: %s (%s) after %v\nthe interpreter: %s after %v", mode, got.outcome, pl.why, got.log, want.outcome, want.log)
		}
		if want.partial { // then other calls of the fan-out may have been made or not
			continue
		}
		wantLog := want.log
		if mode == anyOrder {
			wantLog = slices.Sorted(slices.Values(wantLog))
			slices.Sort(got.log)
		}
		if !slices.Equal(got.log, wantLog) {
			return fmt.Sprintf("mode %d: it calls %v\nthe interpreter calls %v", mode, got.log, wantLog)
		}
	}
	return ""
}

// prepared compiles a program: for some seeds from a text with other ends of lines, from its stored form, or as a part
// of a file of a program.
func prepared(text string, seed uint64) (*workflow.Program, error) {
	switch seed % 16 {
	case 1:
		text = strings.ReplaceAll(text, "\n", "\r\n")
	case 2:
		return partOfAFile(text)
	}
	p, err := program("w.star", []byte(text))
	if err != nil || seed%16 != 3 {
		return p, err
	}
	data, err := p.Graph.Encode()
	if err != nil {
		return nil, err
	}
	g, err := workflow.Decode(data)
	if err != nil {
		return nil, err
	}
	return workflow.Prepare(g)
}

// declarations are the declarations of the actions in a file of a program.
const declarations = `add = action("add"); echo = action("echo"); inc = action("inc"); part = action("part"); small = action(name = "small")`

func partOfAFile(text string) (*workflow.Program, error) {
	_, rest, _ := strings.Cut(text, "\n")
	text = declarations + "\n" + rest + "\nhandle('e', plain)\n"
	f, err := workflow.Dialect().Parse("w.star", text, 0)
	if err != nil {
		return nil, err
	}
	list, actions, err := Declarations(f)
	if err != nil {
		return nil, err
	}
	g, err := Within(Source{Filename: "w.star", Text: []byte(text), Name: list[0].Name, Entry: list[0].Entry, Actions: actions})
	if err != nil {
		return nil, err
	}
	return workflow.Prepare(g)
}

// chance answers actions: as a function of the seed, the call and the attempt.
type chance struct{ seed uint64 }

func (c *chance) roll(text string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, c.seed, text)
	x := h.Sum64()
	x ^= x >> 33 // the last bits of short texts are alike
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// answer returns the result of an action, or an error.
func (c *chance) answer(action string, args starlark.Tuple, named starlark.StringDict, attempt int) (starlark.Value, *workflow.Failure) {
	text := shown(action, args, named)
	if n := c.roll(fmt.Sprint(text, attempt)) % 100; action != "echo" && action != "small" && n < 5*(c.seed%3) {
		switch n % 3 {
		case 0:
			return nil, &workflow.Failure{Name: "A", Message: text}
		case 1:
			return nil, &workflow.Failure{Name: "B", Ancestors: []string{"Base"}, Message: text}
		}
		return nil, &workflow.Failure{Name: workflow.TimeoutError, Message: text}
	}
	var numbers []int
	for _, v := range append(slices.Clone(args), slices.Collect(maps.Values(named))...) {
		n, err := starlark.AsInt32(v)
		if err != nil && action != "echo" {
			return nil, &workflow.Failure{Name: "TypeError", Message: text}
		}
		numbers = append(numbers, n)
	}
	switch action {
	case "small":
		return starlark.Bool(numbers[0] < 4), nil
	case "part":
		d := starlark.NewDict(2)
		_ = d.SetKey(starlark.String("a"), starlark.NewList([]starlark.Value{starlark.MakeInt(numbers[0]), starlark.String("é")})) // a new dict takes all
		_ = d.SetKey(starlark.String("n"), starlark.MakeInt(numbers[0]%5))
		return d, nil
	case "echo":
		return args[0], nil
	case "add":
		return starlark.MakeInt((numbers[0] + numbers[1]) % 50), nil
	}
	return starlark.MakeInt((numbers[0] + 1) % 50), nil
}

// outcomeOf is how a program has ended: "result JSON" or "error TYPE".
type outcomeOf struct {
	outcome string
	log     []string
	// partial means that a call of a fan-out has failed, and racy that several have. AtOnce means that a later one of
	// them fails in its own code, or without a call of an action: it may fail when it starts, before an action of an earlier one can answer.
	partial, racy, atOnce bool
}

// oracle executes a program in the ordinary interpreter, in which a call inside of a combinator is a value.
type oracle struct {
	outcomeOf
	actions *chance
	signals int
	// answered reports that the last error is that of an action, and may be tried again.
	answered bool
}

// thunk is a call to be made.
type thunk struct {
	starlark.Value
	make func(th *starlark.Thread, attempt int) (starlark.Value, error)
}

func newThunk(f func(th *starlark.Thread, attempt int) (starlark.Value, error)) (starlark.Value, error) {
	return &thunk{starlark.None, f}, nil
}

func interpreted(src, args string, actions *chance) (*outcomeOf, error) {
	o := &oracle{actions: actions}
	pre := workflow.Builtins()
	builtin := func(name string, f func(th *starlark.Thread, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error)) {
		pre[name] = starlark.NewBuiltin(name, func(th *starlark.Thread, _ *starlark.Builtin, a starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			return f(th, a, kw)
		})
	}
	builtin("later", o.later)
	builtin("retry", o.retry)
	builtin("timeout", func(_ *starlark.Thread, a starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return a[0], nil
	})
	builtin("parallel", o.parallel)
	builtin("now", func(th *starlark.Thread, a starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return a[0].(*thunk).make(th, 1)
	})
	builtin("attempt", func(th *starlark.Thread, a starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		v, err := a[0].(*thunk).make(th, 1)
		if err != nil {
			return &workflow.Result{Error: asFailure(err)}, nil
		}
		return &workflow.Result{Value: v}, nil
	})
	builtin("sleep", func(_ *starlark.Thread, a starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		_, err := workflow.Seconds(a[0])
		return starlark.None, err
	})
	builtin("get", func(_ *starlark.Thread, a starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return documentOf(string(a[0].(starlark.String))), nil
	})
	builtin("until", func(_ *starlark.Thread, a starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
		if _, err := workflow.Seconds(kw[0][1]); err != nil {
			return nil, err
		}
		return newThunk(func(th *starlark.Thread, _ int) (starlark.Value, error) { return o.until(th, a[0]) })
	})
	builtin("wait", func(th *starlark.Thread, a starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if _, is := a[0].(starlark.Callable); is {
			return o.until(th, a[0])
		}
		o.signals++
		return starlark.MakeInt(o.signals), nil
	})
	builtin("waiting", func(*starlark.Thread, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return newThunk(func(*starlark.Thread, int) (starlark.Value, error) {
			return nil, &workflow.Failure{Name: workflow.TimeoutError}
		})
	})
	th := &starlark.Thread{Load: func(*starlark.Thread, string) (starlark.StringDict, error) {
		fns := starlark.StringDict{}
		for _, name := range []string{"add", "echo", "inc", "part", "small"} {
			fns[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, a starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
				return o.act(name, a, kw, 1)
			})
		}
		return fns, nil
	}}
	th.SetMaxExecutionSteps(10_000_000)
	globals, err := starlark.ExecFileOptions(workflow.Dialect(), th, "w.star", src, pre)
	if err != nil {
		return nil, err
	}
	v, err := workflow.FromJSON(jsontext.Value(args))
	if err != nil {
		return nil, err
	}
	if globals["run"] == nil {
		return nil, errors.New("it has no function run")
	}
	got, err := starlark.Call(th, globals["run"], nil, v.(*starlark.Dict).Items())
	var data jsontext.Value
	if err == nil {
		data, err = workflow.ToJSON(got)
	}
	if o.outcome = "result " + string(data); err != nil {
		o.outcome = "error " + typeOf(err)
	}
	return &o.outcomeOf, nil
}

func asFailure(err error) *workflow.Failure {
	var f *workflow.Failure
	if errors.As(err, &f) {
		return f
	}
	return &workflow.Failure{Name: workflow.CodeError, Message: err.Error()}
}

// maxCalls bounds the calls of a program.
const maxCalls = 2000

// act performs an action. Its arguments and its result pass through JSON.
func (o *oracle) act(name string, a starlark.Tuple, kw []starlark.Tuple, attempt int) (starlark.Value, error) {
	o.answered = false
	d := starlark.NewDict(len(kw))
	for _, pair := range kw {
		_ = d.SetKey(pair[0], pair[1]) // a new dict takes all
	}
	args, named, err := throughJSON(a, d)
	if err != nil {
		return nil, err
	}
	if o.log = append(o.log, shown(name, args, named)); len(o.log) > maxCalls {
		return nil, errors.New("it does not end")
	}
	v, fail := o.actions.answer(name, args, named, attempt)
	if fail != nil {
		o.answered = true
		return nil, fail
	}
	data, err := workflow.ToJSON(v)
	if err != nil {
		return nil, err
	}
	return workflow.FromJSON(data)
}

func throughJSON(a starlark.Tuple, kw *starlark.Dict) (starlark.Tuple, starlark.StringDict, error) {
	args, err := workflow.ToJSON(a)
	if err != nil {
		return nil, nil, err
	}
	named, err := workflow.ToJSON(kw)
	if err != nil {
		return nil, nil, err
	}
	return fromJSON(args, named)
}

func fromJSON(args, named jsontext.Value) (starlark.Tuple, starlark.StringDict, error) {
	list, err := workflow.FromJSON(args)
	if err != nil {
		return nil, nil, err
	}
	dict, err := workflow.FromJSON(named)
	if err != nil {
		return nil, nil, err
	}
	out := starlark.StringDict{}
	for _, item := range dict.(*starlark.Dict).Items() {
		out[string(item[0].(starlark.String))] = item[1]
	}
	return slices.Collect(list.(*starlark.List).Elements()), out, nil
}

func (o *oracle) later(_ *starlark.Thread, a starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	fn := a[0].(starlark.Callable)
	return newThunk(func(th *starlark.Thread, attempt int) (starlark.Value, error) {
		if _, is := fn.(*starlark.Builtin); is {
			return o.act(fn.Name(), a[1:], kw, attempt)
		}
		return starlark.Call(th, fn, a[1:], kw)
	})
}

func (o *oracle) retry(_ *starlark.Thread, a starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	attempts, on := 1, []string(nil)
	for _, pair := range kw {
		switch pair[0].(starlark.String) {
		case "attempts":
			attempts, _ = starlark.AsInt32(pair[1])
		case "on":
			for v := range pair[1].(*starlark.List).Elements() {
				on = append(on, string(v.(starlark.String)))
			}
		}
	}
	return newThunk(func(th *starlark.Thread, _ int) (v starlark.Value, err error) {
		for n := 1; n <= attempts; n++ {
			v, err = a[0].(*thunk).make(th, n)
			var f *workflow.Failure
			if err == nil || !errors.As(err, &f) || !o.answered {
				return v, err
			}
			if len(on) > 0 && !slices.ContainsFunc(on, func(typ string) bool { return typ == f.Name || slices.Contains(f.Ancestors, typ) }) {
				return nil, err
			}
		}
		return nil, err
	})
}

// parallel makes all calls, one after the other.
func (o *oracle) parallel(_ *starlark.Thread, a starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	collect := len(kw) > 0 && kw[0][1] == starlark.String("collect")
	calls, isList := []starlark.Value(a), false
	if len(a) == 1 {
		var list *starlark.List
		if list, isList = a[0].(*starlark.List); isList {
			calls = slices.Collect(list.Elements())
		}
	}
	return newThunk(func(th *starlark.Thread, _ int) (starlark.Value, error) {
		var out []starlark.Value
		var first error
		for _, c := range calls {
			called := len(o.log)
			v, err := c.(*thunk).make(th, 1)
			if err != nil && !collect {
				o.partial, o.racy = true, o.racy || first != nil
				o.atOnce = o.atOnce || first != nil && (asFailure(err).Name == workflow.CodeError || len(o.log) == called)
				if first == nil {
					first = err
				}
				continue
			}
			if err != nil {
				v = asFailure(err)
			}
			out = append(out, v)
		}
		if first != nil {
			return nil, first
		}
		if isList {
			return starlark.NewList(out), nil
		}
		return starlark.Tuple(out), nil
	})
}

// documentOf returns a document: t is true, f is false, and v3 is 3.
func documentOf(name string) starlark.Value {
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "v")); err == nil {
		return starlark.MakeInt(n)
	}
	switch name {
	case "t":
		return starlark.True
	case "f":
		return starlark.False
	}
	return starlark.None
}

// until waits for a condition: documents do not change, so one that does not hold is not met in time.
func (o *oracle) until(th *starlark.Thread, condition starlark.Value) (starlark.Value, error) {
	v, err := starlark.Call(th, condition, nil, nil)
	if err != nil {
		return nil, err
	}
	if !v.Truth() {
		return nil, &workflow.Failure{Name: workflow.TimeoutError}
	}
	data, err := workflow.ToJSON(v)
	if err != nil {
		return nil, err
	}
	return workflow.FromJSON(data)
}
