package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// made is a step of a run, as the events of the log say: not as the space has recorded it.
type made struct {
	now      int64
	begin    jsontext.Value // the arguments
	deadline int64
	done     *workflow.Done
	failed   *workflow.Failed
	signal   *workflow.Signal
	cancel   string
	atOnce   bool
	due      bool
	// resumed lets the run go on after later steps were dropped, and tries these works again.
	resumed, reset bool
	again          []string
	// room only starts calls that had waited for those of other runs.
	room bool
	// started is how many calls the step starts of those that wait. It is what the space has recorded, see checkRoom.
	started int
}

// effects are what a step has the space do.
type effects struct {
	started, cancelled []workflow.Work
	outcome            *workflow.Outcome
}

// engine makes the steps of a run in memory, without stopping, and beside it those of a twin that is stored and
// loaded before each step. Both must do the same.
type engine struct {
	run, twin *workflow.Run
	program   *workflow.Program
	timers    map[string]int64
	queue     []workflow.Work // calls that wait for room
	pending   map[string]workflow.Work
	now       int64
	names     map[string]string // of the calls, see nameOfCall
}

func newEngine(p *workflow.Program) *engine {
	return &engine{run: workflow.New(p), twin: workflow.New(p), program: p, timers: map[string]int64{}, pending: map[string]workflow.Work{}, names: map[string]string{}}
}

// childLimit is in front of the timers that limit how long a run waits for a child.
const childLimit = "child "

func (e *engine) apply(m *made) (out effects, err error) {
	e.now = max(e.now, m.now)
	for _, in := range e.inputs(m, &out) {
		if err := e.step(in, &out); err != nil {
			return out, err
		}
	}
	if out.outcome != nil {
		e.timers, e.queue = map[string]int64{}, nil
		if len(e.pending) > 0 {
			return out, fmt.Errorf("it has ended, and waits for %v", slices.Sorted(maps.Keys(e.pending)))
		}
	}
	if m.started > len(e.queue) {
		return out, fmt.Errorf("it starts %d calls, and there are %d", m.started, len(e.queue))
	}
	for _, w := range e.queue[:m.started] {
		e.start(w, &out)
	}
	e.queue = slices.Clone(e.queue[m.started:])
	return out, nil
}

func (e *engine) inputs(m *made, out *effects) []workflow.Input {
	in := workflow.Input{Now: e.now, Begin: m.begin, Deadline: m.deadline, Done: m.done, Failed: m.failed, Signal: m.signal, Cancel: m.cancel, AtOnce: m.atOnce}
	switch {
	case m.resumed:
		return e.resume(m)
	case m.room:
		return nil
	case m.due:
		return e.due(out)
	case m.done != nil && e.pending[m.done.Work].Attempt == m.done.Attempt:
		e.drop(m.done.Work)
	case m.failed != nil && e.pending[m.failed.Work].Attempt == m.failed.Attempt:
		e.drop(m.failed.Work)
	}
	return []workflow.Input{in}
}

// due returns an input for each timer whose time has come, in the order of their times.
func (e *engine) due(out *effects) (list []workflow.Input) {
	ids := slices.DeleteFunc(slices.Collect(maps.Keys(e.timers)), func(id string) bool { return e.timers[id] > e.now })
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(e.timers[a], e.timers[b]), cmp.Compare(a, b)) })
	for _, id := range ids {
		delete(e.timers, id)
		work, is := strings.CutPrefix(id, childLimit)
		if !is {
			list = append(list, workflow.Input{Now: e.now, Timer: id})
			continue
		}
		was := e.pending[work]
		e.drop(work)
		out.cancelled = append(out.cancelled, was)
		list = append(list, workflow.Input{Now: e.now, Failed: &workflow.Failed{
			Work: work, Attempt: was.Attempt, Type: workflow.TimeoutError, Message: fmt.Sprintf("child %s has not ended in time", was.Child),
		}})
	}
	return list
}

// resume starts again what the run waits for, except for what is tried again, or begun anew.
func (e *engine) resume(m *made) (list []workflow.Input) {
	var first []workflow.Work
	for _, id := range slices.Sorted(maps.Keys(e.pending)) {
		if w, is := e.run.Work(id); is && !slices.Contains(m.again, id) {
			first = append(first, w)
		}
	}
	e.queue, e.pending = append(first, e.queue...), map[string]workflow.Work{}
	if at, is := e.timers[workflow.DeadlineTimer]; is && at <= e.now {
		e.timers[workflow.DeadlineTimer] = e.now + e.run.Deadline()
	}
	if m.begin != nil {
		list = append(list, workflow.Input{Now: e.now, Begin: m.begin, Deadline: m.deadline})
	}
	for _, id := range m.again {
		list = append(list, workflow.Input{Now: e.now, Again: id})
	}
	return list
}

// drop removes work that is no longer pending.
func (e *engine) drop(work string) {
	delete(e.pending, work)
	delete(e.timers, childLimit+work)
}

func (e *engine) start(w workflow.Work, out *effects) {
	e.pending[w.ID] = w
	e.names[w.ID] = nameOfCall(&w)
	if w.Child != "" && w.Timeout > 0 {
		e.timers[childLimit+w.ID] = e.now + w.Timeout
	}
	out.started = append(out.started, w)
}

func (e *engine) step(in workflow.Input, out *effects) error {
	did, err := e.run.Step(in)
	if err != nil {
		return err
	}
	if err := e.stepTwin(in, &did); err != nil {
		return err
	}
	for _, id := range did.Cancel {
		w, is := e.pending[id]
		e.queue = slices.DeleteFunc(e.queue, func(w workflow.Work) bool { return w.ID == id })
		if e.drop(id); is {
			out.cancelled = append(out.cancelled, w)
		}
	}
	for _, t := range did.Timers {
		e.timers[t.ID] = t.At
	}
	for _, id := range did.Drop {
		delete(e.timers, id)
	}
	if did.Outcome != nil {
		out.outcome = did.Outcome
	}
	if out.outcome != nil {
		return nil
	}
	e.queue = append(e.queue, did.Start...)
	return nil
}

// stepTwin makes the step of the twin.
func (e *engine) stepTwin(in workflow.Input, did *workflow.Effects) error {
	if in.Begin == nil {
		data, err := e.twin.Snapshot()
		if err != nil {
			return fmt.Errorf("it cannot be stored: %w", err)
		}
		if e.twin, err = workflow.Load(e.program, data); err != nil {
			return fmt.Errorf("it cannot be loaded: %w", err)
		}
	}
	again, err := e.twin.Step(in)
	if err != nil {
		return fmt.Errorf("after it was loaded: %w", err)
	}
	if a, b := effectsText(did), effectsText(&again); a != b {
		return fmt.Errorf("a run that is loaded before the step does %s, one that is not does %s", b, a)
	}
	return nil
}

// effectsText describes effects; the order of what is cancelled has no meaning.
func effectsText(e *workflow.Effects) string {
	own := *e
	own.Cancel, own.Drop = slices.Sorted(slices.Values(e.Cancel)), slices.Sorted(slices.Values(e.Drop))
	own.Outcome, own.Undoing = nil, nil
	text, err := json.Marshal(own)
	if err != nil {
		return err.Error()
	}
	return string(text) + " " + outcomeText(e.Outcome) + failureText(e.Undoing)
}

func outcomeText(o *workflow.Outcome) string {
	switch {
	case o == nil:
		return ""
	case o.Error != nil:
		return "fails with " + failureText(o.Error)
	}
	return "returns " + string(o.Result)
}

func failureText(f *workflow.Failure) string {
	if f == nil {
		return ""
	}
	undone, _ := json.Marshal(f.Undone)
	return fmt.Sprintf("%s %v: %s, undone %s", f.Name, f.Ancestors, f.Message, undone)
}

// storedFailure is failureText of an error in a document.
func storedFailure(v model.Value) string {
	name, _ := v.Get("type").AsString()
	message, _ := v.Get("message").AsString()
	var ancestors []string
	for a := range v.Get("ancestors").Elements() {
		text, _ := a.AsString()
		ancestors = append(ancestors, text)
	}
	var undone *workflow.Undone
	if u := v.Get("undone"); !u.IsAbsent() {
		undone = &workflow.Undone{}
		_ = json.Unmarshal([]byte(u.String()), undone) // then it differs
	}
	text, _ := json.Marshal(undone)
	return fmt.Sprintf("%s %v: %s, undone %s", name, ancestors, message, text)
}

// next returns the time of the first timer, 0 if none is set.
func (e *engine) next() (first int64) {
	for _, at := range e.timers { // any order: the first
		if first == 0 || at < first {
			first = at
		}
	}
	return first
}
