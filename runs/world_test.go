package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

// deeds are actions in Starlark, by name.
type deeds map[string]starlark.Callable

// inStarlark returns the functions of a text as actions.
func inStarlark(t *testing.T, src string) deeds {
	t.Helper()
	globals, err := starlark.ExecFileOptions(workflow.Dialect(), &starlark.Thread{}, "actions.star", src, workflow.Builtins())
	if err != nil {
		t.Fatal(err)
	}
	d := deeds{}
	for name, v := range globals {
		if fn, is := v.(starlark.Callable); is {
			d[name] = fn
		}
	}
	return d
}

// world is a space in memory that runs workflows, and performs their actions.
type world struct {
	*testing.T
	*simkit.World
	s       *simkit.Space
	deeds   deeds
	log     []string // what was performed
	program *space.Program
	actions []string
	// restart makes every process end before each end of an action.
	restart bool
}

// remoteUnless returns the terms of an action, nil for one that clients watch: its tasks share a document.
func remoteUnless(name string) *space.Remote {
	if strings.HasPrefix(name, "watched") {
		return nil
	}
	return &space.Remote{}
}

// performAll performs actions in rounds, in the order of their keys, until none is pending, and returns the most that were at a time.
func (w *world) performAll() (most int) {
	w.Helper()
	for {
		n := 0
		for _, action := range w.actions {
			for _, t := range w.s.Tasks(action) {
				n++
				w.end(action, t)
			}
		}
		most = max(most, n)
		if n == 0 {
			return most
		}
	}
}

func program(t *testing.T, src string, options ...func(*Set) error) (*space.Program, []string) {
	t.Helper()
	g, err := compile.Compile("w.star", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	set := New()
	if _, err := set.Add(g, nil); err != nil {
		t.Fatal(err)
	}
	for _, apply := range options {
		if err := apply(set); err != nil {
			t.Fatal(err)
		}
	}
	p := space.NewProgram("p")
	for _, name := range set.Actions() {
		a := &space.ActionSpec{Name: name, External: true, Remote: remoteUnless(name)}
		if err := set.Use(a); err != nil {
			t.Fatal(err)
		}
		if err := p.Action(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Register(p); err != nil {
		t.Fatal(err)
	}
	return p, set.Actions()
}

func newWorld(t *testing.T, src string, d deeds, o simkit.Options) *world {
	t.Helper()
	p, actions := program(t, src)
	o.Blocking = true
	w := &world{T: t, deeds: d, actions: actions, program: p}
	w.World = simkit.New(func(string) (*space.Program, error) { return w.program, nil }, o)
	var err error
	if w.s, err = w.Space("s"); err != nil {
		t.Fatal(err)
	}
	return w
}

// send sends an event, which must be handled.
func (w *world) send(stream, id, payload string) model.Value {
	w.Helper()
	rc := w.sent(stream, id, payload)
	if rc.Outcome != model.Handled {
		w.Fatalf("%s %s: %s %s", stream, payload, rc.Outcome, rc.Error)
	}
	return rc.Result
}

func (w *world) sent(stream, id, payload string) model.Receipt {
	w.Helper()
	v, err := model.ParseValue([]byte(payload))
	if err != nil {
		w.Fatal(err)
	}
	rc, ok, err := w.s.Send(stream, id, v, time.Time{})
	if err != nil || !ok {
		w.Fatalf("%s %s: %v %v %s", stream, payload, ok, err, w.s.Pending())
	}
	return rc
}

// task returns the first pending task, in the order of actions and keys.
func (w *world) task() (action string, t space.Task, is bool) {
	for _, action := range w.actions {
		for _, t := range w.s.Tasks(action) {
			if t.State == space.TaskPending {
				return action, t, true
			}
		}
	}
	return "", t, false
}

// perform performs actions until none is pending.
func (w *world) perform() {
	w.Helper()
	for n := 0; ; n++ {
		action, task, is := w.task()
		if !is {
			return
		}
		if n > 200_000 {
			w.Fatal("it does not end")
		}
		if w.restart {
			w.begin()
		}
		w.end(action, task)
	}
}

// begin makes every process end, and begin again.
func (w *world) begin() {
	w.Helper()
	if err := w.Restart(); err != nil {
		w.Fatal(err)
	}
	var err error
	if w.s, err = w.Space("s"); err != nil {
		w.Fatal(err)
	}
}

// deploy replaces the program.
func (w *world) deploy(src string, options ...func(*Set) error) {
	w.Helper()
	w.program, w.actions = program(w.T, src, options...)
	w.begin()
}

// end performs one task.
func (w *world) end(action string, task space.Task) {
	w.Helper()
	c := space.Completion{Key: task.Key, N: task.N}
	out, err := w.call(action, task.In)
	if c.Out = out; err != nil {
		c.Out, c.Err = model.Value{}, err.Error()
	}
	rc, ok, err := w.s.Send(action, "", c.Value(), time.Time{})
	if err != nil || !ok || rc.Outcome != model.Handled {
		w.Fatalf("%s %s: %v %v %v", action, task.Key, ok, err, rc)
	}
}

func (w *world) call(action string, in model.Value) (model.Value, error) {
	args, err := workflow.FromJSON(jsontext.Value(in.Get("args").String()))
	if err != nil {
		return model.Value{}, err
	}
	kwargs, err := workflow.FromJSON(jsontext.Value(in.Get("kwargs").String()))
	if err != nil {
		return model.Value{}, err
	}
	list := slices.Collect(args.(*starlark.List).Elements())
	w.log = append(w.log, shown(action, list, kwargs.(*starlark.Dict)))
	var named []starlark.Tuple
	named = append(named, kwargs.(*starlark.Dict).Items()...)
	v, err := starlark.Call(&starlark.Thread{}, w.deeds[action], list, named)
	if err != nil {
		return model.Value{}, asText(err)
	}
	data, err := workflow.ToJSON(v)
	if err != nil {
		return model.Value{}, err
	}
	return model.ParseValue(data)
}

func shown(name string, args []starlark.Value, named *starlark.Dict) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, a.String())
	}
	by := map[string]string{}
	for _, item := range named.Items() {
		by[string(item[0].(starlark.String))] = item[1].String()
	}
	for _, k := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, k+"="+by[k])
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

// outcome returns the result of a run, or "error TYPE: MESSAGE", or its state.
func (w *world) outcome(id string) string {
	doc := w.s.Value(Doc(id))
	if e := doc.Get("error"); !e.IsAbsent() {
		typ, _ := e.Get("type").AsString()
		message, _ := e.Get("message").AsString()
		return "error " + typ + ": " + message
	}
	if r := doc.Get("result"); !r.IsAbsent() {
		return r.String()
	}
	state, _ := doc.Get("state").AsString()
	return state
}

func (w *world) start(id, args string) {
	w.Helper()
	w.send(StreamStart, "start-"+id, fmt.Sprintf(`{"workflow":"w","run":%q,"args":%s}`, id, args))
}

func (w *world) advance(d time.Duration) {
	w.Helper()
	if err := w.Advance(d); err != nil {
		w.Fatal(err)
	}
	w.perform()
}

// clean fails the test if the world has had problems, or if a run that has ended has left anything.
func (w *world) clean() {
	w.Helper()
	for _, p := range w.TakeProblems() {
		w.Errorf("a problem: %s", p)
	}
	kept, bytes := w.kept()
	for _, doc := range w.s.Docs() {
		if v := w.s.Value(doc); !v.IsAbsent() && !kept[doc] && (strings.HasPrefix(doc, "runlog_") || strings.HasPrefix(doc, "runstate_")) {
			w.Errorf("%s is left: %.100s", doc, v)
		}
	}
	if n, _ := w.s.Value(load).Get("kept").AsInt(); int(n) != bytes || bytes > maxSpaceSteps {
		w.Errorf("%d bytes of steps are kept; %d are counted", bytes, n)
	}
	if action, task, is := w.task(); is && !w.s.Value(Index).Get(strings.Trim(task.In.Get("run").String(), `"`)).Get("ended").IsAbsent() {
		w.Errorf("task %s of %s is left", task.Key, action)
	}
	if l := w.s.Value(load); l.Get("bytes").Len() > 0 || l.Get("waiting").Len() > 0 {
		w.Errorf("load %s", l)
	}
}

// kept returns the documents with the steps of runs that have ended, and their size.
func (w *world) kept() (docs map[string]bool, bytes int) {
	docs = map[string]bool{}
	for id, entry := range w.s.Value(Index).All() {
		if entry.Get("ended").IsAbsent() {
			continue
		}
		pages := w.s.Value(Doc(id)).Get(inPages)
		from, _ := pages.Get(inFrom).AsInt()
		to, _ := pages.Get(inTo).AsInt()
		for page := int(from); page < int(to); page++ {
			docs[pageDoc(id, page)] = true
			bytes += len(w.s.Value(pageDoc(id, page)).String()) * min(w.s.Value(pageDoc(id, page)).Len(), 1)
		}
		if v := w.s.Value(snapshotDoc(id)); from > 0 && !v.IsAbsent() {
			docs[snapshotDoc(id)] = true
			bytes += len(v.String())
		}
	}
	return docs, bytes
}
