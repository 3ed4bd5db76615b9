package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/internal/randomstar"
	"github.com/settlehq/settle/workflow"
)

// bench is a run that is stored and loaded after each input.
type bench struct {
	*testing.T
	p   *workflow.Program
	run *workflow.Run
	now int64
}

func begin(t *testing.T, body string) (*bench, workflow.Effects) {
	t.Helper()
	g, err := Compile("w.star", []byte("load('actions', 'a', 'b', 'undo')\ndef two(x):\n    y = a(x)\n    return b(y)\ndef run(n = 3):\n"+body+"\nworkflow('w', run)\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, p: p, run: workflow.New(p)}
	return b, b.step(workflow.Input{Begin: jsontext.Value("{}")})
}

func (b *bench) step(in workflow.Input) workflow.Effects {
	b.Helper()
	in.Now = b.now
	e, err := b.run.Step(in)
	if err != nil {
		b.Fatal(err)
	}
	snap, err := b.run.Snapshot()
	if err == nil {
		b.run, err = workflow.Load(b.p, snap)
	}
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func (b *bench) done(w workflow.Work, result string) workflow.Effects {
	b.Helper()
	return b.step(workflow.Input{Done: &workflow.Done{Work: w.ID, Attempt: w.Attempt, Result: jsontext.Value(result)}})
}

func (b *bench) failed(w workflow.Work, typ string, ancestors ...string) workflow.Effects {
	b.Helper()
	return b.step(workflow.Input{Failed: &workflow.Failed{Work: w.ID, Attempt: w.Attempt, Type: typ, Ancestors: ancestors, Message: "it is so"}})
}

// said returns a description of effects.
func said(e workflow.Effects) string {
	var list []string
	for _, w := range e.Start {
		list = append(list, fmt.Sprintf("start %s %s#%d", w.Action, w.Args, w.Attempt))
	}
	for range e.Cancel {
		list = append(list, "cancel")
	}
	for _, t := range e.Timers {
		list = append(list, fmt.Sprintf("timer %d", t.At))
	}
	for range e.Drop {
		list = append(list, "drop")
	}
	if o := e.Outcome; o != nil && o.Error != nil {
		list = append(list, "failed "+o.Error.Error())
	} else if o != nil {
		list = append(list, "result "+string(o.Result))
	}
	return strings.Join(list, ", ")
}

func (b *bench) want(e workflow.Effects, want string) workflow.Effects {
	b.Helper()
	if got := said(e); got != want {
		b.Fatalf("%s\nwant %s", got, want)
	}
	return e
}

func TestRetry_AttemptsAreTriesInAllAndPausesGrow(t *testing.T) {
	b, e := begin(t, "    return retry(a(n), attempts = 4, backoff = '1s', factor = 2, max_backoff = '3s')")
	first := b.want(e, "start a [3]#1").Start[0]
	b.now = 10_000
	timer := b.want(b.failed(first, "E"), "timer 11000").Timers[0]
	b.want(b.done(first, "1"), "") // the attempt was given up
	b.now = 11_000
	second := b.want(b.step(workflow.Input{Timer: timer.ID}), "start a [3]#2").Start[0]
	b.want(b.step(workflow.Input{Timer: timer.ID}), "")
	b.want(b.failed(first, "E"), "") // an answer of the first attempt has no effect
	timer = b.want(b.failed(second, "E"), "timer 13000").Timers[0]
	third := b.want(b.step(workflow.Input{Timer: timer.ID}), "start a [3]#3").Start[0]
	timer = b.want(b.failed(third, "E"), "timer 14000").Timers[0]
	last := b.want(b.step(workflow.Input{Timer: timer.ID}), "start a [3]#4").Start[0]
	b.want(b.failed(last, "E"), "failed E: it is so")
	b.want(b.done(last, "1"), "")
}

// pauses returns how long the run waits after each of its first failed attempts, in milliseconds.
func pauses(t *testing.T, call string, n int) (list []int64) {
	t.Helper()
	b, e := begin(t, "    return "+call)
	for range n {
		e = b.failed(e.Start[0], "E")
		if len(e.Timers) == 0 {
			list = append(list, 0)
			continue
		}
		list = append(list, e.Timers[0].At-b.now)
		b.now = e.Timers[0].At
		e = b.step(workflow.Input{Timer: e.Timers[0].ID})
	}
	return list
}

func TestRetry_PausesAreFixedLinearOrExponentialUpToACap(t *testing.T) {
	for call, want := range map[string][]int64{
		"retry(a(n), attempts = 9)":                                                   {0, 0, 0},
		"retry(a(n), attempts = 9, backoff = '1s')":                                   {1000, 1000, 1000},
		"retry(a(n), attempts = 9, backoff = '1s', step = '1s')":                      {1000, 2000, 3000},
		"retry(a(n), attempts = 9, step = '5s')":                                      {5000, 10000, 15000},
		"retry(a(n), attempts = 9, backoff = '1s', step = '5s', max_backoff = '7s')":  {1000, 6000, 7000, 7000},
		"retry(a(n), attempts = 9, backoff = '1s', factor = 2)":                       {1000, 2000, 4000},
		"retry(a(n), attempts = 9, backoff = '1s', factor = 1.5, max_backoff = '2s')": {1000, 1500, 2000, 2000},
		"retry(a(n), attempts = 900, backoff = '23h', factor = 100)":                  {23 * 3600_000, 24 * 3600_000, 24 * 3600_000},
		"retry(timeout(a(n), '1m'), attempts = 9, backoff = 0.5)":                     {500, 500},
		"timeout(retry(a(n), attempts = 9, backoff = 0.5), '1m')":                     {500, 500},
		"retry(a(n), attempts = 9, backoff = 60 , factor = 1, max_backoff = '30s')":   {30_000, 30_000},
	} {
		if got := pauses(t, call, len(want)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", call, got, want)
		}
	}
}

// However many attempts there were, a pause is a time: it neither overflows nor becomes negative.
func TestRetry_HugeNumbersOfAttemptsDoNotOverflow(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   int64
	}{
		{"backoff = '1s', factor = 100", 24 * 3600_000},
		{"backoff = '1s', factor = 100, max_backoff = 3e9", 3e12},
		{"step = 3e9, max_backoff = 3e9", 3e12},
		{"max_backoff = '1m'", 0},
	} {
		b, e := begin(t, "    return retry(a(n), attempts = 1000000, "+c.policy+")")
		last := e.Start[0].ID
		snap, err := b.run.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		stored := strings.Replace(string(snap), `"n":1,`, `"n":999999,`, 1)
		if b.run, err = workflow.Load(b.p, []byte(stored)); err != nil || stored == string(snap) {
			t.Fatal(err, stored)
		}
		e = b.step(workflow.Input{Failed: &workflow.Failed{Work: last, Attempt: 999_999, Type: "E"}})
		got := int64(0)
		if len(e.Timers) > 0 {
			got = e.Timers[0].At
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d (%s)", c.policy, got, c.want, said(e))
		}
	}
}

func TestDeadline_FailsTheRunCancelsWhatIsPendingAndUndoes(t *testing.T) {
	src := "load('actions', 'a', 'undo')\ndef run(n = 3):\n    compensate(undo(1))\n    r = attempt(a(n))\n    sleep('2h')\n    return r.ok\nworkflow('w', run, deadline = '1h')\n"
	start := func(own int64) (*bench, workflow.Effects) {
		g, err := Compile("w.star", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		p, err := workflow.Prepare(g)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{T: t, p: p, run: workflow.New(p), now: 500}
		return b, b.step(workflow.Input{Begin: jsontext.Value("{}"), Deadline: own})
	}
	b, e := start(0)
	deadline := b.want(e, "start a [3]#1, timer 3600500").Timers[0].ID
	b.now = 3_600_500
	e = b.want(b.step(workflow.Input{Timer: deadline}), "start undo [1]#1, cancel")
	b.want(b.step(workflow.Input{Timer: deadline}), "")
	e = b.want(b.done(e.Start[0], "null"), "failed DeadlineError: the run has not ended within 1h0m0s")
	if !slices.Equal(e.Outcome.Error.Ancestors, []string{workflow.TimeoutError}) {
		t.Error(e.Outcome.Error.Ancestors)
	}

	b, e = start(60_000) // a shorter one of the run itself, and the end before it
	b.want(e, "start a [3]#1, timer 60500")
	b.want(b.step(workflow.Input{Cancel: "no"}), "start undo [1]#1, cancel, drop")
	b, e = start(7_200_000) // a longer one has no effect
	b.want(e, "start a [3]#1, timer 3600500")
	e = b.want(b.done(e.Start[0], "1"), "timer 7200500")
	b.want(b.step(workflow.Input{Timer: e.Timers[0].ID}), "drop, result true")
}

func TestDeadline_IsWrittenOut(t *testing.T) {
	for deadline, want := range map[string]string{
		"'soon'":            `w.star:4:31: the deadline: "soon" is not a duration`,
		"0":                 "w.star:4:31: the deadline: a time is longer than nothing",
		"x":                 `w.star:4:31: the deadline: a time is written out, as "30s" or a number of seconds`,
		"'1h', retries = 3": `w.star:4:47: write workflow("name", run), or workflow("name", run, deadline = "7d")`,
	} {
		_, err := Compile("w.star", []byte("x = 1\ndef run(n = 3):\n    return n\nworkflow('w', run, deadline = "+deadline+")\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", deadline, err, want)
		}
	}
}

func TestRetry_OnlyOfTheTypesThatAreNamed(t *testing.T) {
	b, e := begin(t, "    return retry(a(n), attempts = 3, on = ['Busy'])")
	e = b.want(b.failed(e.Start[0], "TooBusy", "Busy"), "start a [3]#2")
	b.want(b.failed(e.Start[0], "Other"), "failed Other: it is so")
}

func TestNoPolicy_NoRetryAndTheTimeoutIsThatOfTheCall(t *testing.T) {
	b, e := begin(t, "    timeout(a(1), '30s')\n    return a(2)")
	if got := e.Start[0].Timeout; got != 30_000 {
		t.Errorf("the timeout is %d", got)
	}
	e = b.want(b.done(e.Start[0], "null"), "start a [2]#1")
	b.want(b.failed(e.Start[0], workflow.TimeoutError), "failed TimeoutError: it is so")
}

func TestAttempt_SaysWhatHasFailedByTypeAndAncestor(t *testing.T) {
	body := `    r = attempt(two(n))
    if r.ok: return r.value
    if r.failed("Lookup"):
        undo(r.error.type)
        return "handled:" + r.error.message
    fail(r.error)
`
	b, e := begin(t, body)
	e = b.want(b.done(e.Start[0], "7"), "start b [7]#1")
	b.want(b.done(e.Start[0], "8"), "result 8")
	b, e = begin(t, body)
	e = b.want(b.failed(e.Start[0], "Key", "Lookup"), `start undo ["Key"]#1`)
	b.want(b.done(e.Start[0], "null"), `result "handled:it is so"`)
	b, e = begin(t, body)
	b.want(b.failed(e.Start[0], "Other"), "failed Other: it is so")
}

func TestParallel_ResultsAreInTheOrderOfTheCalls(t *testing.T) {
	b, e := begin(t, "    return parallel([a(i) for i in range(n)])")
	b.want(e, "start a [0]#1, start a [1]#1, start a [2]#1")
	b.want(b.done(e.Start[2], "12"), "")
	b.want(b.done(e.Start[2], "13"), "") // twice
	b.want(b.done(e.Start[0], "10"), "")
	b.want(b.done(e.Start[1], "11"), "result [10,11,12]")
	b.want(b.done(e.Start[1], "11"), "")
}

func TestParallel_AFailureCancelsTheOthersAndIsNotLost(t *testing.T) {
	b, e := begin(t, "    for i in range(2):\n        parallel(a(i), two(i), b(i))\n    return 0")
	b.want(e, "start a [0]#1, start b [0]#1, start a [0]#1")
	b.want(b.failed(e.Start[0], "E"), "cancel, cancel, failed E: it is so")

	b, e = begin(t, "    xs = parallel([a(i) for i in range(n)], on_error = 'collect')\n    return [x if type(x) == 'int' else x.type for x in xs]")
	b.want(b.failed(e.Start[1], "E"), "")
	b.want(b.done(e.Start[0], "10"), "")
	b.want(b.done(e.Start[2], "12"), `result [10,"E",12]`)

	b, e = begin(t, "    r = attempt(parallel([a(i) for i in range(n)]))\n    if r.failed(): undo()\n    return 'x'")
	e = b.want(b.failed(e.Start[1], "E"), "start undo []#1, cancel, cancel")
	b.want(b.done(e.Start[0], "null"), `result "x"`)
}

func TestParallel_OfNothingJoinsAtOnce(t *testing.T) {
	b, e := begin(t, "    xs = parallel([a(i) for i in []])\n    ys = parallel([])\n    return [xs, ys]")
	b.want(e, "result [[],[]]")
}

func TestSleep_CostsATimerAndNothingElse(t *testing.T) {
	b, e := begin(t, "    sleep('8760h')\n    sleep(0)\n    sleep(n - 9)\n    return 1")
	timer := b.want(e, "timer 31536000000").Timers[0]
	b.want(b.step(workflow.Input{Timer: timer.ID}), "result 1")
	_, e = begin(t, "    sleep(float('inf'))\n    return 1")
	if e.Outcome == nil || !strings.Contains(e.Outcome.Error.Message, "at most") {
		t.Errorf("a sleep without end: %s", said(e))
	}
}

func TestCancel_TakesBackWhatIsUnderWay(t *testing.T) {
	b, e := begin(t, "    return parallel(a(1), retry(b(2), attempts = 2, backoff = '1s'), two(3))")
	b.want(b.failed(e.Start[1], "E"), "timer 1000")
	b.want(b.step(workflow.Input{Cancel: "not wanted"}), "cancel, cancel, drop, failed CancelledError: not wanted")
	b.want(b.done(e.Start[0], "1"), "")
}

func TestLimits_ARunThatDoesNotEndFailsWithWords(t *testing.T) {
	_, e := begin(t, "    x = 0\n    while True:\n        if x == 1: a(1)\n    return 0")
	if e.Outcome == nil || e.Outcome.Error.Name != workflow.LimitError {
		t.Errorf("an endless loop: %s", said(e))
	}
}

// The state of a run does not grow with its iterations, and a step is as large as its result.
func TestLoop_ABoundedStateHoweverManyRounds(t *testing.T) {
	b, e := begin(t, "    x = 0\n    while x < 3000:\n        x = a(x)\n    return x")
	sizes := map[int]int{}
	for i := 1; e.Outcome == nil; i++ {
		e = b.done(e.Start[0], fmt.Sprint(i))
		if i == 10 || i == 1000 || i == 2999 {
			snap, err := b.run.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			sizes[i] = len(snap)
		}
	}
	b.want(e, "result 3000")
	if sizes[2999] > sizes[10]+20 {
		t.Errorf("the state has %v bytes after so many rounds", sizes)
	}
}

func TestStart_ArgumentsAreChecked(t *testing.T) {
	for args, want := range map[string]string{`{"m":1}`: "no argument", `{"n":[]}`: "", `{}`: ""} {
		b, _ := begin(t, "    return a(n)")
		r := workflow.New(b.p)
		e, err := r.Step(workflow.Input{Begin: jsontext.Value(args)})
		if err != nil {
			t.Fatal(err)
		}
		if (want != "") != (e.Outcome != nil) || want != "" && !strings.Contains(e.Outcome.Error.Message, want) {
			t.Errorf("%s: %s", args, said(e))
		}
	}
	b, _ := begin(t, "    return a(n)")
	if _, err := workflow.New(b.p).Step(workflow.Input{Begin: jsontext.Value("[1]")}); err == nil {
		t.Error("arguments that are no object are taken")
	}
}

// Code that cannot become a graph is refused, with its position and advice.
func TestRefused_WithItsPlaceAndWhatToWriteInstead(t *testing.T) {
	for body, want := range map[string]string{
		"    if n: x = 1\n    a(1)\n    return x":                                         "w.star:8:12: variable x may have no value here",
		"    f = lambda: a(1)":                                                            "w.star:6:17: a lambda calls no actions; define a function, and call it where its result is needed",
		"    parallel([a(b(x)) for x in [1]])":                                            "w.star:6:17: the calls of parallel([...]) begin at the same time, so what is inside of them calls nothing; write a function that calls both",
		"    parallel([a(x) for x in [1] if b(x)])":                                       "w.star:6:36: the calls of parallel([...]) begin at the same time",
		"    d = {}\n    d[a(1)] = 2":                                                     "w.star:7:7: an action is called in a statement of its own, before",
		"    return [a(y) for x in [1] for y in y]":                                       "w.star:6:40: variable y may have no value here",
		"    x = get('d')\n    return a(x)":                                               "w.star:6:9: get reads documents, which only the condition of a wait can: value = wait(lambda: get(",
		"    return a(seen())\ndef seen(): return get('d')":                               "w.star:6:14: seen reads documents, which only the condition of a wait can",
		"    a(1)\nFIXED = get('d')":                                                      "w.star:7:9: get reads documents",
		"    wait(lambda: a(1))":                                                          "w.star:6:18: the condition of a wait reads documents and calls no actions",
		"    wait(lambda x: get(x))":                                                      "w.star:6:10: the condition of a wait takes no arguments",
		"    wait(lambda: get('d'), 1, 3)":                                                "w.star:6:31: write wait(",
		"    wait(lambda: get('d'), timeout = 'soon')":                                    "w.star:6:38: \"soon\" is not a duration",
		"    if n: x = 1\n    wait(lambda: get(x))":                                       "w.star:7:22: variable x may have no value here",
		"    def g(): return 1\n    return a(1)":                                          "w.star:6:5: a function is not defined within one that calls actions",
		"    if n:\n        def g(): return n\n    return a(1)":                           "w.star:7:9: a function is not defined within one that calls actions",
		"    k = 3\n    f = lambda v: v + k\n    a(1)\n    k = 10\n    return f(1)":       "w.star:7:23: the lambda uses k, which is assigned after the lambda is made (or in a loop around it)",
		"    fs = []\n    for i in range(3):\n        fs.append(lambda: i)\n        a(1)": "w.star:8:27: the lambda uses i, which is assigned after the lambda is made (or in a loop around it), and a lambda of a function with actions has the values from when it is made; give it the value as a parameter: lambda i = i: ..., or keep what changes in a dict",
		"    k = 0\n    while k < 3:\n        f = lambda: k\n        k += a(f())":         "w.star:8:21: the lambda uses k",
		"    fs = [lambda: a(1) for x in [1]]":                                            "a lambda calls no actions",
		"    fs = [(lambda: x, a(x)) for x in [1, 2]]\n    return [f[0]() for f in fs]":   "w.star:6:20: the lambda uses x",
		"    f = lambda: (lambda: n)\n    n = a(1)\n    return f()()":                     "w.star:6:26: the lambda uses n",
		"    f = lambda v: f(v)\n    return a(f)":                                         "w.star:6:19: the lambda uses f",
		"    a(*[1])":                               "w.star:6:7: the arguments of an action are written out",
		"    retry(a(1), attempts = n)":             "w.star:6:28: a policy is written out",
		"    retry(two(1), attempts = 2)":           "w.star:6:5: retry is of an action",
		"    retry(a(1))":                           "w.star:6:5: retry takes a call and the number of attempts in all",
		"    retry(a(1), 3)":                        "w.star:6:17: write retry(action(...), attempts = 3",
		"    retry(a(1), attempts = 3, factor = 2)": `w.star:6:5: factor needs the first pause: backoff = "1s"`,
		"    retry(a(1), attempts = 3, backoff = 1, factor = 2, step = 1)":  "w.star:6:5: factor makes each pause a multiple of the one before, and step makes it longer by a time; write one of them",
		"    retry(a(1), attempts = 3, backoff = 1, factor = 200)":          "w.star:6:5: a factor is from 1 to 100",
		"    retry(a(1), attempts = 2000000)":                               "attempts are from 1 to 1000000 in all",
		"    retry(a(1), attempts = 3, backoff = 1e300)":                    "a duration must be a number of at most",
		"    retry(timeout(retry(a(1), attempts = 3), '1s'), attempts = 2)": "w.star:6:19: retry stands within retry, and a call has one of each; write one retry, with all types of errors",
		"    timeout(retry(timeout(a(1), '2s'), attempts = 2), '1s')":       "w.star:6:19: timeout stands within timeout, and a call has one of each; write the shorter time",
		"    parallel(n)":                 "w.star:6:14: here stands the call of an action",
		"    return undefined(1)":         "w.star:6:12: undefined: undefined",
		"    _t1 = a(1)":                  "w.star:6:5: names that begin with _",
		"    sleep('soon')\n    return 0": "w.star:6:11: \"soon\" is not a duration",
		"    break":                       "break not in a loop",
	} {
		_, err := Compile("w.star", []byte("load('actions', 'a', 'b', 'undo')\ndef two(x):\n    y = a(x)\n    return b(y)\ndef run(n = 3):\n"+body+"\nworkflow('w', run)\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	_, err := Compile("w.star", []byte("load('actions', 'a')\ndef f(x):\n    a(1)\n    return g(x)\ndef g(x):\n    return f(x)\ndef run():\n    return f(1)\nworkflow('w', run)\n"))
	if err == nil || !strings.Contains(err.Error(), "calls itself") {
		t.Errorf("recursion: %v", err)
	}
	_, err = Compile("w.star", []byte("def run():\n    return 1\nworkflow('w', run, keep = 3)\n"))
	if err == nil || !strings.Contains(err.Error(), `write workflow("name", run)`) {
		t.Errorf("a retention that nothing would observe: %v", err)
	}
}

// A lambda that uses variables which are not assigned again, that has its own, or that is called where it is made has the result
// of the interpreter.
func TestLambda_IsTakenIfItsVariablesStayAsTheyAre(t *testing.T) {
	d := inStarlark(t, randomstar.Actions)
	for body, want := range map[string]string{
		"    k = 3\n    f = lambda v: v + k\n    a(1)\n    return f(1)":                                                       "4",
		"    fs = []\n    for i in range(3):\n        fs.append(lambda i = i: i)\n        a(1)\n    return [f() for f in fs]": "[0,1,2]",
		"    k = 3\n    x = (lambda v: v + k)(a(1))\n    k = 5\n    return x":                                                 "5",
		"    r = []\n    for i in range(2):\n        r += sorted([1, 2], key = lambda e: -e * i)\n        a(i)\n    return r": "[1,2,2,1]",
		"    d = {\"k\": 3}\n    f = lambda: d[\"k\"]\n    a(1)\n    d[\"k\"] = 10\n    return f()":                           "10",
		"    if n:\n        f = lambda: n\n    else:\n        f = lambda: 0\n        n = a(1)\n    return f()":                "2",
		"    fs = [lambda: x for x in [1, 2]]\n    a(1)\n    return [f() for f in fs]":                                        "[2,2]",
	} {
		src := "load('actions', 'inc')\ndef run(n):\n" + strings.ReplaceAll(body, "a(", "inc(") + "\nworkflow('w', run)\n"
		if got, stock := driven(t, src, `{"n":2}`, d, false), stock(t, src, `{"n":2}`, d); got.result != want || stock.result != want {
			t.Errorf("%s: %s, in the interpreter %s, want %s", body, got.result, stock.result, want)
		}
	}
}

// A graph that was edited by hand into an invalid one is refused.
func TestDecode_RefusesWhatIsNoGraph(t *testing.T) {
	g, err := Compile("w.star", []byte(pipeline))
	if err != nil {
		t.Fatal(err)
	}
	data, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`"format":1`, `"format":2`},
		{`"kind":"join"`, `"kind":"merge"`},
		{`"kind":"loop"`, `"kind":"merge"`},
		{`"to":1`, `"to":99`},
		{`"name":"data_pipeline"`, `"name":"data_pipeline","more":1`},
		{`"action":"finalize"`, `"func":"finalize"`},
	} {
		if !strings.Contains(string(data), c[0]) {
			t.Fatalf("there is no %s in %s", c[0], data)
		}
		if _, err := workflow.Decode([]byte(strings.Replace(string(data), c[0], c[1], 1))); err == nil {
			t.Errorf("%s in place of %s is taken", c[1], c[0])
		}
	}
	again, err := Compile("w.star", []byte(pipeline))
	if err != nil {
		t.Fatal(err)
	}
	one, _ := g.Version()
	two, _ := again.Version()
	if one != two || one == "" {
		t.Errorf("versions of the same file: %s, %s", one, two)
	}
}
