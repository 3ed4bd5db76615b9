package runs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

const scenarioDir = "testdata/rows"

// TestScenarios plays the scenario files, in the language of testdata/README.md. Every step of every scenario is made
// in memory and in a space, each without restarts and with one after the step, and all must agree. With -rewrite it
// writes the actual output; review the difference.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob(scenarioDir + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there is no scenario", err)
	}
	rows := readRows(t)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := &stage{}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "case" {
					s.close(t)
					*s = stage{}
					return rows.titles(d)
				}
				return s.play(t, d)
			})
			s.close(t)
		})
	}
}

func TestREADME_DocumentsEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range commands {
		if !strings.Contains(string(readme), "\n| `"+name) {
			t.Errorf("testdata/README.md does not have the command %s", name)
		}
	}
}

func TestScenarios_ExpectRefusesWhatIsNotSo(t *testing.T) {
	s := &stage{t: t}
	expect := func(line, want string) {
		t.Helper()
		err := s.cmdExpect(&datadriven.TestData{Input: line})
		if err == nil {
			err = errors.New("")
		}
		if err.Error() != want {
			t.Errorf("%s:\n  %v\nand not\n  %s", line, err, want)
		}
	}
	expect("outcome is nothing", "outcome is nothing: nothing was started")
	for _, d := range []*datadriven.TestData{
		{Cmd: "workflow", Input: "load(\"actions\", \"a\", \"b\")\ndef run():\n    return parallel(a(1), b(2))"},
		{Cmd: "start"},
	} {
		s.play(t, d)
	}
	expect("", "it expects nothing")
	expect("outcome is nothing\nstarted is 2\ncalls is a(1); b(2)\npending is a(1); b(2)\ncancelled is nothing\nwaits is nothing\nrefused is nothing", "")
	expect("outcome is result 3", "outcome is result 3: it is nothing")
	expect("pending is a(1)", "pending is a(1): it is a(1); b(2)")
	expect("calls are 2", `"calls are 2" is not of the form WHAT is VALUE, where WHAT is one of calls, cancelled, outcome, pending, refused, started, waits`)
	s.play(t, &datadriven.TestData{Cmd: "cancel", Input: "not needed"})
	expect("pending is nothing\ncancelled is a(1); b(2)\noutcome is cancelled: not needed", "")
	s.play(t, &datadriven.TestData{Cmd: "workflow", Input: "def run(): break"})
	expect("refused is w.star:1:12: break not in a loop", "")
	expect("refused is nothing", "refused is nothing: it is w.star:1:12: break not in a loop")
}

// stage is the run of a case.
type stage struct {
	t       *testing.T
	src     string
	actions starlark.StringDict
	players []player
	// open is what was pending after the last step, past what has been pending before.
	open, past []*attempted
	started    int
	ended      bool
	lines      []string
	// calls and cancelled are the lines about what the run has started and cancelled. refused is why the last workflow or
	// start was refused, "" if it was not.
	calls, cancelled []string
	refused          string
}

var commands map[string]func(*stage, *datadriven.TestData) error

func init() {
	commands = map[string]func(*stage, *datadriven.TestData) error{
		"workflow": (*stage).cmdWorkflow, "actions": (*stage).cmdActions, "start": (*stage).cmdStart, "run": (*stage).cmdRun,
		"perform": (*stage).cmdPerform, "end": (*stage).cmdEnd, "late": (*stage).cmdLate, "signal": (*stage).cmdSignal,
		"cancel": (*stage).cmdCancel, "advance": (*stage).cmdAdvance, "waits": (*stage).cmdWaits,
		"unknown": (*stage).cmdUnknown, "expect": (*stage).cmdExpect,
	}
}

// expectations are what the lines of expect may ask. Unlike what a command prints, -rewrite does not change them.
var expectations = map[string]func(s *stage) string{
	"outcome": func(s *stage) string { return s.players[0].outcome() },
	"started": func(s *stage) string { return strconv.Itoa(s.started) },
	"calls":   func(s *stage) string { return strings.Join(s.calls, "; ") },
	"pending": func(s *stage) string {
		var list []string
		for _, a := range s.open {
			list = append(list, a.text)
		}
		return strings.Join(list, "; ")
	},
	"cancelled": func(s *stage) string { return strings.Join(s.cancelled, "; ") },
	"waits":     func(s *stage) string { return strings.Join(s.players[0].waits(), "; ") },
	"refused":   func(s *stage) string { return s.refused },
}

// cmdExpect checks lines of the form WHAT is VALUE, where "nothing" is the empty value.
func (s *stage) cmdExpect(d *datadriven.TestData) error {
	if strings.TrimSpace(d.Input) == "" {
		return errors.New("it expects nothing")
	}
	for line := range strings.Lines(d.Input) {
		line = strings.TrimSpace(line)
		what, want, is := strings.Cut(line, " is ")
		find := expectations[what]
		if !is || find == nil {
			return fmt.Errorf("%q is not of the form WHAT is VALUE, where WHAT is one of %s", line, strings.Join(slices.Sorted(maps.Keys(expectations)), ", "))
		}
		if what != "refused" && len(s.players) == 0 {
			return fmt.Errorf("%s: nothing was started", line)
		}
		if got := cmp.Or(find(s), "nothing"); got != want {
			return fmt.Errorf("%s: it is %s", line, got)
		}
	}
	s.say("ok")
	return nil
}

// play executes one command. Errors are part of the output, because a scenario may show that something is refused.
func (s *stage) play(t *testing.T, d *datadriven.TestData) string {
	s.t, s.lines = t, nil
	do := commands[d.Cmd]
	if do == nil {
		d.Fatalf(t, "there is no command %q; see testdata/README.md", d.Cmd)
	}
	if d.Cmd == "workflow" || d.Cmd == "start" || d.Cmd == "run" {
		s.refused = ""
	}
	err := do(s, d)
	if err != nil && d.Cmd == "expect" {
		d.Fatalf(t, "%v", err)
	}
	if err != nil {
		s.refused = err.Error()
		s.lines = append(s.lines, "error: "+err.Error())
	}
	if d.HasArg("quiet") {
		s.lines = s.lines[max(len(s.lines)-2, 0):]
	}
	if len(s.lines) == 0 {
		return "nothing\n"
	}
	return strings.Join(s.lines, "\n") + "\n"
}

func (s *stage) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// close checks that a run which has ended has left nothing.
func (s *stage) close(t *testing.T) {
	t.Helper()
	for _, p := range s.players {
		if w, is := p.(*inSpacePlayer); is && s.ended {
			w.T = t
			w.clean()
		}
	}
}

func (s *stage) cmdWorkflow(d *datadriven.TestData) error {
	src := d.Input + "\n"
	if !strings.Contains(src, "workflow(") {
		src += "\nworkflow(\"w\", run)\n"
	}
	if _, err := compile.Compile("w.star", []byte(src)); err != nil {
		return err
	}
	s.src = src
	s.say("ok")
	return nil
}

// cmdActions declares the actions: functions in Starlark. In them nth() is the number of the attempt, and
// failure(type, message, ancestors, detail) ends it.
func (s *stage) cmdActions(d *datadriven.TestData) (err error) {
	pre := workflow.Builtins()
	pre["nth"] = starlark.NewBuiltin("nth", func(th *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return starlark.MakeInt(th.Local("attempt").(int)), nil
	})
	pre["failure"] = starlark.NewBuiltin("failure", failing)
	s.actions, err = starlark.ExecFileOptions(workflow.Dialect(), &starlark.Thread{}, "actions.star", d.Input, pre)
	if err == nil {
		s.say("ok")
	}
	return err
}

func failing(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	f, list, detail := &ActionError{}, &starlark.List{}, starlark.Value(nil)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "type", &f.Type, "message?", &f.Message, "ancestors?", &list, "detail?", &detail); err != nil {
		return nil, err
	}
	for v := range list.Elements() {
		text, _ := starlark.AsString(v)
		f.Ancestors = append(f.Ancestors, text)
	}
	if detail != nil {
		var err error
		if f.Detail, err = workflow.ToJSON(detail); err != nil {
			return nil, err
		}
	}
	return nil, f
}

// answer returns how an attempt ends: by the function of its action.
func (s *stage) answer(a *attempted) answer {
	fn, is := s.actions[a.action].(starlark.Callable)
	if !is {
		s.t.Fatalf("the case declares no action %s", a.action)
	}
	th := &starlark.Thread{}
	th.SetLocal("attempt", a.attempt)
	v, err := starlark.Call(th, fn, a.args, a.named.Items())
	if err == nil {
		var data jsontext.Value
		if data, err = workflow.ToJSON(v); err == nil {
			return answer{result: jsontext.Value(parsed(s.t, data).String())}
		}
	}
	var f *ActionError
	if errors.As(err, &f) {
		return answer{err: f}
	}
	return answer{err: &ActionError{Type: "Error", Message: err.Error()}}
}

func (s *stage) cmdStart(d *datadriven.TestData) error {
	if s.src == "" {
		return errors.New("there is no workflow")
	}
	s.close(s.t)
	s.open, s.past, s.started, s.ended = nil, nil, 0, false
	s.calls, s.cancelled = nil, nil
	plain, again := newInSpacePlayer(s.t, s.src, false), newInSpacePlayer(s.t, s.src, true)
	s.players = []player{plain, again}
	for _, how := range []string{"records", "snapshot", ""} {
		s.players = slices.Insert(s.players, 0, player(newInMemoryPlayer(s.t, s.src, how, plain.Now())))
	}
	args := d.Input
	if args == "" {
		args = "{}"
	}
	if err := refusedStart(s.src, args); err != nil {
		s.refused = err.Error()
		s.say("refused %s", err)
		s.ended = true
		return nil
	}
	s.each(func(p player) { p.begin(args) })
	return nil
}

// refusedStart returns why a run of a file cannot be started with arguments, nil if it can.
func refusedStart(src, args string) error {
	g, err := compile.Compile("w.star", []byte(src))
	if err != nil {
		return err
	}
	v, err := model.ParseValue([]byte(args))
	if err != nil {
		return err
	}
	return (&Definition{Graph: g}).check(v)
}

// each makes a step in all ways, compares them, and prints what has changed.
func (s *stage) each(do func(player)) {
	s.t.Helper()
	for _, p := range s.players {
		do(p)
	}
	if agree(s.t, s.players); s.t.Failed() {
		s.t.FailNow()
	}
	now := s.players[0].pending()
	has := func(list []*attempted, a *attempted) bool {
		return slices.ContainsFunc(list, func(o *attempted) bool { return o.key() == a.key() })
	}
	for _, a := range s.open {
		if !has(now, a) {
			s.say("cancel %s", a.text)
			s.cancelled = append(s.cancelled, a.text)
		}
	}
	for _, a := range now {
		if has(s.open, a) {
			continue
		}
		s.started++
		line := "start " + a.text
		if a.attempt > 1 {
			line += fmt.Sprintf(", attempt %d", a.attempt)
		}
		if a.timeout > 0 {
			line += fmt.Sprintf(", within %v", time.Duration(a.timeout)*time.Millisecond)
		}
		s.say("%s", line)
		s.calls = append(s.calls, strings.TrimPrefix(line, "start "))
	}
	s.open = slices.Clone(now)
	if o := s.players[0].outcome(); o != "" && !s.ended {
		s.ended = true
		s.say("%s", o)
		s.say("%d started", s.started)
	}
}

// end ends an attempt in all ways.
func (s *stage) end(a *attempted, with answer) {
	s.t.Helper()
	s.open = slices.DeleteFunc(s.open, func(o *attempted) bool { return o.key() == a.key() })
	s.past = append(s.past, a)
	s.each(func(p player) { p.end(a, with) })
}

func (s *stage) cmdRun(d *datadriven.TestData) error {
	if err := s.cmdStart(d); err != nil {
		return err
	}
	return s.cmdPerform(d)
}

// cmdPerform performs actions until none is pending: the one that was started first, or with "reverse" last.
func (s *stage) cmdPerform(d *datadriven.TestData) error {
	for n := 0; len(s.open) > 0; n++ {
		if n > 10_000 {
			return errors.New("it does not end")
		}
		a := s.open[0]
		if d.HasArg("reverse") {
			a = s.open[len(s.open)-1]
		}
		s.end(a, s.answer(a))
	}
	return nil
}

// find returns the attempt that a line names, the last one if there are several, and the answer behind it: none,
// "= JSON", or "fails TYPE: MESSAGE".
func (s *stage) find(line string, list []*attempted) (*attempted, answer, error) {
	for i := len(list) - 1; i >= 0; i-- {
		a := list[i]
		rest, is := strings.CutPrefix(line, a.text)
		if !is {
			continue
		}
		if value, is := strings.CutPrefix(rest, " = "); is {
			return a, answer{result: jsontext.Value(value)}, nil
		}
		if why, is := strings.CutPrefix(rest, " fails "); is {
			typ, message, _ := strings.Cut(why, ": ")
			return a, answer{err: &ActionError{Type: typ, Message: message}}, nil
		}
		if rest == "" {
			return a, s.answer(a), nil
		}
	}
	return nil, answer{}, fmt.Errorf("there is no call %s", line)
}

func (s *stage) cmdEnd(d *datadriven.TestData) error {
	for line := range strings.Lines(d.Input) {
		a, with, err := s.find(strings.TrimSpace(line), s.open)
		if err != nil {
			return err
		}
		s.end(a, with)
	}
	return nil
}

// cmdLate repeats the end of an attempt that has ended, or was cancelled.
func (s *stage) cmdLate(d *datadriven.TestData) error {
	a, with, err := s.find(strings.TrimSpace(d.Input), s.past)
	if err != nil {
		return err
	}
	s.each(func(p player) { p.end(a, with) })
	return nil
}

func (s *stage) cmdSignal(d *datadriven.TestData) error {
	value := jsontext.Value("null")
	if d.Input != "" {
		value = jsontext.Value(strings.TrimSpace(d.Input))
	}
	s.each(func(p player) { p.signal(d.CmdArgs[0].Key, value) })
	return nil
}

func (s *stage) cmdCancel(d *datadriven.TestData) error {
	s.past = append(s.past, s.open...)
	s.each(func(p player) { p.cancel(d.Input) })
	return nil
}

func (s *stage) cmdAdvance(d *datadriven.TestData) error {
	by, err := time.ParseDuration(d.CmdArgs[0].Key)
	if err != nil {
		return err
	}
	s.each(func(p player) { p.pass(by) })
	return nil
}

func (s *stage) cmdWaits(*datadriven.TestData) error {
	s.lines = s.players[0].waits()
	return nil
}

// cmdUnknown ends an attempt that there has never been: ACTION, the ID of the work, and the number of the attempt.
func (s *stage) cmdUnknown(d *datadriven.TestData) error {
	a := &attempted{}
	if _, err := fmt.Sscan(d.Input, &a.action, &a.id, &a.attempt); err != nil {
		return err
	}
	s.each(func(p player) { p.end(a, answer{result: jsontext.Value(`"unknown"`)}) })
	return nil
}
