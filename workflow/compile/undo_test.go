package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/workflow"
)

// undone returns how undo steps have ended, as JSON.
func undone(t *testing.T, e workflow.Effects) string {
	t.Helper()
	if e.Outcome == nil || e.Outcome.Error == nil {
		t.Fatalf("it has not failed: %s", said(e))
	}
	v, err := workflow.ToJSON(e.Outcome.Error)
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

func TestCompensate_UndoStepsRunInReverseOrderWhenTheRunFails(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    for i in range(n):\n        x = a(i)\n        compensate(undo(x, i = i))\n    b(9)")
	for i := range 3 {
		e = b.done(e.Start[0], fmt.Sprint(10+i))
	}
	b.want(e, "start b [9]#1")
	e = b.want(b.failed(e.Start[0], "E"), "start undo [12]#1")
	if e.Undoing == nil || e.Undoing.Name != "E" || string(e.Start[0].Named) != `{"i":2}` {
		t.Errorf("%v, %s", e.Undoing, e.Start[0].Named)
	}
	last := e.Start[0]
	e = b.want(b.done(last, "null"), "start undo [11]#1")
	b.want(b.done(last, "null"), "")
	e = b.want(b.done(e.Start[0], "null"), "start undo [10]#1")
	e = b.want(b.done(e.Start[0], "null"), "failed E: it is so")
	if got := undone(t, e); got != `{"type":"E","message":"it is so","undone":{"steps":3}}` {
		t.Error(got)
	}
}

func TestCompensate_ARunThatSucceedsUndoesNothing(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    compensate(undo(1))\n    return a(n)")
	b.want(b.done(e.Start[0], "7"), "result 7")
}

func TestCompensate_TheCallIsEvaluatedWhenItIsRegistered(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    xs = [n]\n    compensate(undo(xs))\n    xs.append(4)\n    n = 5\n    a(xs)")
	b.want(e, "start a [[3,4]]#1")
	b.want(b.failed(e.Start[0], "E"), "start undo [[3]]#1")

	_, e = begin(t, "    compensate(undo(len))\n    return 0")
	b.want(e, "failed CodeError: arguments of undo step undo: a builtin_function_or_method cannot be given away; make it a number, a text, a list or a dict")
}

// A function with undo steps, for the tests of attempt.
const nestedCalls = `    compensate(undo("outer"))
    r = attempt(inner(n))
    if r.failed(): b(r.error.type, r.error.undone)
    a("end")
    return r.ok
def inner(n):
    compensate(undo("inner 1"))
    x = deep(n)
    compensate(undo("inner 2"))
    return a(x)
def deep(n):
    x = a(n)
    compensate(undo("deep"))
    return x`

func TestCompensate_AttemptUndoesTheCallThatHasFailedBeforeItContinues(t *testing.T) {
	t.Parallel()
	b, e := begin(t, nestedCalls)
	e = b.want(b.done(e.Start[0], "10"), "start a [10]#1")
	for _, step := range []string{"inner 2", "deep", "inner 1"} { // deep was successful, and is part of inner
		if e.Start[0].Action == "a" {
			e = b.failed(e.Start[0], "E")
		} else {
			e = b.done(e.Start[0], "null")
		}
		b.want(e, fmt.Sprintf("start undo [%q]#1", step))
	}
	if e.Undoing != nil {
		t.Error("the run itself has not failed")
	}
	e = b.want(b.done(e.Start[0], "null"), `start b ["E",{"steps":3}]#1`)
	e = b.want(b.done(e.Start[0], "null"), `start a ["end"]#1`)
	e = b.want(b.failed(e.Start[0], "F"), `start undo ["outer"]#1`)
	b.want(b.done(e.Start[0], "null"), "failed F: it is so")
}

func TestCompensate_AfterASuccessfulAttemptTheStepsAreThoseOfTheCaller(t *testing.T) {
	t.Parallel()
	b, e := begin(t, nestedCalls)
	e = b.done(e.Start[0], "10")
	e = b.want(b.done(e.Start[0], "11"), `start a ["end"]#1`)
	e = b.failed(e.Start[0], "F")
	for _, step := range []string{"inner 2", "deep", "inner 1", "outer"} {
		b.want(e, fmt.Sprintf("start undo [%q]#1", step))
		e = b.done(e.Start[0], "null")
	}
	b.want(e, "failed F: it is so")
}

const branches = `    r = attempt(parallel([branch(i) for i in range(n)]%s))
    b(r.ok)
def branch(i):
    x = a(i)
    compensate(undo(i))
    return a(x)`

func TestCompensate_AFailureInAParallelUndoesTheOtherCallsToo(t *testing.T) {
	t.Parallel()
	b, e := begin(t, fmt.Sprintf(branches, ""))
	calls := e.Start
	first := b.done(calls[1], "11").Start[0]
	b.done(calls[0], "10")
	e = b.want(b.failed(first, "E"), "start undo [0]#1, cancel, cancel")
	e = b.want(b.done(e.Start[0], "null"), "start undo [1]#1")
	b.want(b.done(e.Start[0], "null"), "start b [false]#1")
}

func TestCompensate_ACollectedFailureUndoesItsCallAndNoOther(t *testing.T) {
	t.Parallel()
	b, e := begin(t, fmt.Sprintf(branches, ", on_error = 'collect'"))
	calls := e.Start
	second := b.done(calls[1], "11").Start[0]
	zeroth := b.done(calls[0], "10").Start[0]
	e = b.want(b.failed(second, "E"), "start undo [1]#1")
	b.want(b.done(zeroth, "20"), "")
	b.want(b.failed(calls[2], "E"), "")
	b.want(b.done(e.Start[0], "null"), "start b [true]#1")
}

// An undo step that runs when the run fails as a whole continues, under its key.
func TestCompensate_AStepThatRunsIsNotStartedTwice(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    compensate(undo('run'))\n    parallel(parts(n), a('other'))\ndef parts(n):\n    r = attempt(part(n))\n    return r.ok\ndef part(n):\n    compensate(undo('first'))\n    compensate(undo('second'))\n    return a(n)")
	other := e.Start[1]
	part := e.Start[0]
	if string(part.Args) != "[3]" {
		part, other = other, part
	}
	running := b.want(b.failed(part, "E"), `start undo ["second"]#1`).Start[0]
	b.want(b.failed(other, "F"), "")
	e = b.want(b.done(running, "null"), `start undo ["first"]#1`)
	e = b.want(b.done(e.Start[0], "null"), `start undo ["run"]#1`)
	e = b.want(b.done(e.Start[0], "null"), "failed F: it is so")
	if got := undone(t, e); got != `{"type":"F","message":"it is so","undone":{"steps":3}}` {
		t.Error(got)
	}
}

func TestCompensate_AStepThatFailsIsRetriedThenRecordedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    compensate(undo(1))\n    compensate(retry(undo(2), attempts = 2, backoff = '1s', on = ['Busy']))\n    fail('no')")
	b.want(e, "start undo [2]#1")
	timer := b.want(b.failed(e.Start[0], "Busy"), "timer 1000").Timers[0]
	e = b.want(b.step(workflow.Input{Timer: timer.ID}), "start undo [2]#2")
	e = b.want(b.failed(e.Start[0], "Gone"), "start undo [1]#1")
	e = b.want(b.done(e.Start[0], "null"), "failed Error: no")
	if got, want := undone(t, e), `{"type":"Error","message":"no","undone":{"steps":1,"failed":1,"errors":[{"step":"undo","line":7,"type":"Gone","message":"it is so"}]}}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// What an inner attempt could not undo stays in the error, also if the function raises it again.
func TestCompensate_AnErrorThatIsRaisedAgainKeepsWhatWasNotUndone(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    compensate(undo('outer'))\n    r = attempt(part(n))\n    fail(r.error)\ndef part(n):\n    compensate(undo('inner'))\n    return a(n)")
	e = b.failed(e.Start[0], "E")
	e = b.want(b.failed(e.Start[0], "Gone"), `start undo ["outer"]#1`)
	e = b.done(e.Start[0], "null")
	if got := undone(t, e); !strings.Contains(got, `"undone":{"steps":1,"failed":1,"errors":[{"step":"undo","line":10,"type":"Gone"`) {
		t.Error(got)
	}
}

func TestCompensate_AStepMayBeAFunction(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    compensate(back(n))\n    return a(n)\ndef back(n):\n    sleep('1s')\n    r = attempt(undo(n))\n    if r.failed(): fail(r.error)\n    by = wait('go')\n    return by")
	timer := b.want(b.failed(e.Start[0], "E"), "timer 1000").Timers[0]
	e = b.want(b.step(workflow.Input{Timer: timer.ID}), "start undo [3]#1")
	b.want(b.done(e.Start[0], "null"), "")
	b.want(b.step(workflow.Input{Signal: &workflow.Signal{Name: "go"}}), "failed E: it is so")

	_, e = begin(t, "    compensate(back((n, 1.5)))\n    fail('no')\ndef back(x):\n    undo(type(x), x[1])")
	if got := said(e); got != `start undo ["list",1.5]#1` { // a tuple becomes a list
		t.Error(got)
	}
}

func TestCancel_RunsTheUndoStepsAndAtOnceDoesNot(t *testing.T) {
	t.Parallel()
	body := "    compensate(undo(1))\n    compensate(undo(2))\n    return a(n)"
	b, e := begin(t, body)
	pending := e.Start[0]
	e = b.want(b.step(workflow.Input{Cancel: "not wanted"}), "start undo [2]#1, cancel")
	b.want(b.step(workflow.Input{Cancel: "again"}), "") // it is cancelled already
	b.want(b.done(pending, "1"), "")
	e = b.want(b.step(workflow.Input{Cancel: "hopeless", AtOnce: true}), "cancel, failed CancelledError: not wanted")
	if got, want := undone(t, e), `{"type":"CancelledError","message":"not wanted","undone":{"skipped":2,"cause":"CancelledError: hopeless"}}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}

	b, _ = begin(t, body)
	e = b.want(b.step(workflow.Input{Cancel: "not wanted", AtOnce: true}), "cancel, failed CancelledError: not wanted")
	if got, want := undone(t, e), `{"type":"CancelledError","message":"not wanted","undone":{"skipped":2}}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Whatever ends a run with an error, its undo steps run.
func TestCompensate_EveryFailureOfTheRunUndoes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"    compensate(undo(1))\n    return 1 // 0":                                                     "CodeError",
		"    compensate(undo(1))\n    return len":                                                        "CodeError",
		"    compensate(undo(1))\n    return 'x' * 200000":                                               "LimitError",
		"    compensate(undo(1))\n    while n:\n        if n == 4: a(1)":                                 "LimitError",
		"    compensate(undo(1))\n    for i in range(10001): compensate(undo(i))":                        "LimitError",
		"    compensate(undo(1))\n    xs = range(100)\n    compensate(undo('x' * 200000))":               "LimitError",
		"    compensate(undo(1))\n    for i in range(100):\n        compensate(undo('x' * 100000, i=i))": "LimitError",
	} {
		_, e := begin(t, body)
		if e.Undoing == nil || e.Undoing.Name != want || len(e.Start) != 1 || e.Start[0].Action != "undo" {
			t.Errorf("%s: %v, %s", body, e.Undoing, said(e))
		}
	}
}

// An undo step of an attempted call that exceeds a bound ends the run; it does not leave it waiting.
func TestCompensate_AnUndoStepOfAnAttemptThatDoesNotEndEndsTheRun(t *testing.T) {
	t.Parallel()
	b, e := begin(t, "    compensate(undo('outer'))\n    r = attempt(part(n))\n    return r.ok\ndef part(n):\n    compensate(spin())\n    return a(n)\ndef spin():\n    i = 1\n    while i:\n        if i == 2: a(i)")
	e = b.want(b.failed(e.Start[0], "E"), `start undo ["outer"]#1`)
	if e.Undoing == nil || e.Undoing.Name != workflow.LimitError {
		t.Errorf("it undoes because of %v", e.Undoing)
	}
	e = b.done(e.Start[0], "null")
	if got := undone(t, e); !strings.Contains(got, `"type":"LimitError"`) || !strings.Contains(got, `"undone":{"steps":1,"failed":1`) {
		t.Error(got)
	}
}

// During the undo steps, a bound that they exceed ends the run; its error is the first one.
func TestCompensate_UndoStepsAreBounded(t *testing.T) {
	t.Parallel()
	_, e := begin(t, "    compensate(undo(1))\n    compensate(endless(1))\n    fail('no')\ndef endless(x):\n    while x:\n        if x == 2: undo(1)")
	if got := undone(t, e); !strings.HasPrefix(got, `{"type":"Error","message":"no","undone":{"skipped":2,"cause":"LimitError: 1000000 steps`) {
		t.Error(got)
	}
	b, _ := begin(t, "    compensate(undo(1))\n    fail('no')")
	for range 1100 {
		b.want(b.step(workflow.Input{Signal: &workflow.Signal{Name: "more"}}), "")
	}
	b.want(b.step(workflow.Input{Abort: &workflow.Failed{Type: "LimitError", Message: "too large"}}), "cancel, failed Error: no")
}

func TestCompensate_RefusalsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"    x = compensate(a(1))":         "w.star:6:9: compensate has no value; it stands in a line of its own",
		"    compensate(1)":                "w.star:6:16: here stands the call of an action",
		"    compensate()":                 "w.star:6:5: compensate takes one call",
		"    compensate(a(1), b(2))":       "w.star:6:5: compensate takes one call",
		"    compensate(parallel(a(1)))":   "w.star:6:16: parallel cannot stand here",
		"    parallel(compensate(a(1)))":   "w.star:6:14: compensate cannot stand here",
		"    f = lambda: compensate(a(1))": "w.star:6:17: a lambda calls no actions",
		"    compensate(own(1))\ndef own(x):\n    compensate(a(x))\n    return two(x)": "w.star:8:5: function own is an undo step (line 6), and so it cannot register undo steps",
		"    wait('x')\ncompensate = 1":                 "w.star:7:1: compensate is a builtin of workflows",
		"    wait('x')\ndef sleep(x):\n    return a(x)": "w.star:7:5: sleep is a builtin of workflows",
	} {
		_, err := Compile("w.star", []byte("load('actions', 'a', 'b', 'undo')\ndef two(x):\n    y = a(x)\n    return b(y)\ndef run(n = 3):\n"+body+"\nworkflow('w', run)\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	// A function of the file that calls no action has its own name, and is an ordinary function.
	b, e := begin(t, "    x = compensate(n)\n    return a(x)\ndef compensate(n): return n + 1")
	b.want(e, "start a [4]#1")
}

// A graph that no compiler has checked is refused, too.
func TestDecode_RefusesUndoStepsThatRegisterOthers(t *testing.T) {
	t.Parallel()
	g, err := Compile("w.star", []byte("load('actions', 'a')\ndef f(x):\n    return a(x)\ndef run():\n    compensate(f(1))\n    return 1\nworkflow('w', run)\n"))
	if err != nil {
		t.Fatal(err)
	}
	g.Funcs[1].Nodes[0].Kind = workflow.Compensate
	data, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workflow.Decode(data); err == nil || !strings.Contains(err.Error(), "function f is an undo step, and registers undo steps itself") {
		t.Error(err)
	}
}

// A stored run that was damaged is refused.
func TestLoad_ChecksUndoSteps(t *testing.T) {
	t.Parallel()
	b, _ := begin(t, "    compensate(undo(1))\n    compensate(undo(2))\n    fail('no')")
	data, err := b.run.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{`"node":0,"args":[1]`, `"node":9,"args":[1]`}, {`"args":[1]`, `"args":1`}, {`"marks":"dd`, `"marks":"dx`}, {`"marks":"`, `"marks":"dddddddd`}, {`"why":{`, `"y":{`}, {`"node":0,"args":[1]`, `"fn":7,"node":0,"args":[1]`}} {
		bad := strings.Replace(string(data), c[0], c[1], 1)
		if bad == string(data) {
			t.Fatalf("there is no %s in %s", c[0], data)
		}
		if _, err := workflow.Load(b.p, jsontext.Value(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
