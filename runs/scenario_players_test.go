package runs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

// attempted is an attempt of an action in a scenario.
type attempted struct {
	id      string // of the work
	attempt int
	action  string
	text    string // the call, as in the program
	args    []starlark.Value
	named   *starlark.Dict
	timeout int64
}

func (a *attempted) key() string { return fmt.Sprintf("%s#%d", a.id, a.attempt) }

// answer is how an attempt ends.
type answer struct {
	result jsontext.Value
	err    *ActionError
}

// player executes one run of a scenario in one way. All players of a scenario must agree after each step.
type player interface {
	name() string
	begin(args string)
	end(a *attempted, with answer)
	signal(name string, value jsontext.Value)
	cancel(why string)
	pass(d time.Duration)
	// pending returns what has been started and has not ended, in the order of the starts if the player knows that.
	pending() []*attempted
	// waits describes the timers and signals that the run waits for.
	waits() []string
	// outcome returns the outcome of the run, "" before that.
	outcome() string
	// trace identifies the inputs so far, or the state that they led to. It is the same for players of the same kind.
	trace() string
}

// inMemoryPlayer executes a run in memory.
type inMemoryPlayer struct {
	testing.TB
	how    string // "", "snapshot" or "records": how the run is rebuilt after each step
	p      *workflow.Program
	run    *workflow.Run
	inputs []workflow.Input
	now    int64
	timers map[string]int64
	open   []*attempted
	result string
}

func newInMemoryPlayer(t testing.TB, src, how string, now time.Time) *inMemoryPlayer {
	t.Helper()
	g, err := compile.Compile("w.star", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		t.Fatal(err)
	}
	return &inMemoryPlayer{TB: t, how: how, p: p, run: workflow.New(p), now: now.UnixMilli(), timers: map[string]int64{}}
}

func (m *inMemoryPlayer) name() string { return "in memory, " + cmp.Or(m.how, "without a restart") }

func (m *inMemoryPlayer) step(in workflow.Input) {
	m.Helper()
	in.Now = m.now
	e, err := m.run.Step(in)
	if err != nil {
		m.Fatalf("%s: %v", m.name(), err)
	}
	m.inputs = append(m.inputs, in)
	m.apply(&e)
	switch m.how {
	case "snapshot":
		data, err := m.run.Snapshot()
		if err == nil {
			m.run, err = workflow.Load(m.p, data)
		}
		if err != nil {
			m.Fatalf("%s: %v", m.name(), err)
		}
	case "records":
		m.run = workflow.New(m.p)
		for _, in := range m.inputs {
			if _, err := m.run.Step(in); err != nil {
				m.Fatalf("%s: %v", m.name(), err)
			}
		}
	}
}

func (m *inMemoryPlayer) apply(e *workflow.Effects) {
	for _, id := range e.Cancel {
		m.open = slices.DeleteFunc(m.open, func(a *attempted) bool { return a.id == id })
	}
	for i := range e.Start {
		w := &e.Start[i]
		args, named := parsed(m.TB, w.Args).String(), parsed(m.TB, w.Named).String() // as the values of Settle
		m.open = append(m.open, attemptedOf(m.TB, w.ID, w.Attempt, w.Action, jsontext.Value(args), jsontext.Value(named), w.Timeout))
	}
	for _, t := range e.Timers {
		m.timers[t.ID] = t.At
	}
	for _, id := range e.Drop {
		delete(m.timers, id)
	}
	switch o := e.Outcome; {
	case o == nil:
		return
	case o.Error == nil:
		m.result = "result " + parsed(m.TB, o.Result).String()
	case o.Error.Name == workflow.CancelledError:
		m.result = "cancelled: " + o.Error.Message
	default:
		m.result = "failed " + o.Error.Error() + detailOf(failureValue(o.Error))
	}
	m.open, m.timers = nil, map[string]int64{}
}

func attemptedOf(t testing.TB, id string, n int, action string, args, named jsontext.Value, timeout int64) *attempted {
	t.Helper()
	list, err := workflow.FromJSON(args)
	if err != nil {
		t.Fatal(err)
	}
	byName, err := workflow.FromJSON(named)
	if err != nil {
		t.Fatal(err)
	}
	a := &attempted{id: id, attempt: n, action: action, named: byName.(*starlark.Dict), timeout: timeout}
	a.args = slices.Collect(list.(*starlark.List).Elements())
	a.text = shown(action, a.args, a.named)
	return a
}

func parsed(t testing.TB, data jsontext.Value) model.Value {
	t.Helper()
	v, err := model.ParseValue(data)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func detailOf(failure model.Value) string {
	if d := failure.Get("detail"); !d.IsAbsent() {
		return ", " + d.String()
	}
	return ""
}

func (m *inMemoryPlayer) begin(args string) { m.step(workflow.Input{Begin: jsontext.Value(args)}) }
func (m *inMemoryPlayer) cancel(why string) { m.step(workflow.Input{Cancel: why}) }
func (m *inMemoryPlayer) signal(name string, value jsontext.Value) {
	m.step(workflow.Input{Signal: &workflow.Signal{Name: name, Value: value}})
}

func (m *inMemoryPlayer) end(a *attempted, with answer) {
	m.open = slices.DeleteFunc(m.open, func(o *attempted) bool { return o.key() == a.key() })
	if e := with.err; e != nil {
		m.step(workflow.Input{Failed: &workflow.Failed{Work: a.id, Attempt: a.attempt, Type: e.Type, Ancestors: e.Ancestors, Message: e.Message, Detail: e.Detail}})
		return
	}
	m.step(workflow.Input{Done: &workflow.Done{Work: a.id, Attempt: a.attempt, Result: with.result}})
}

// pass lets time pass, and fires timers in the order of their times.
func (m *inMemoryPlayer) pass(d time.Duration) {
	for to := m.now + d.Milliseconds(); ; {
		first := ""
		for id, at := range m.timers { // any order: the least is sought
			if at <= to && (first == "" || at < m.timers[first] || at == m.timers[first] && id < first) {
				first = id
			}
		}
		if first == "" {
			m.now = to
			return
		}
		m.now = max(m.now, m.timers[first])
		delete(m.timers, first)
		m.step(workflow.Input{Timer: first})
	}
}

func (m *inMemoryPlayer) pending() []*attempted { return m.open }
func (m *inMemoryPlayer) outcome() string       { return m.result }
func (m *inMemoryPlayer) waits() []string       { return waitsOf(m.run.Open(), m.timers, m.now) }

func (m *inMemoryPlayer) trace() string {
	data, err := m.run.Snapshot()
	if err != nil {
		m.Fatalf("%s: %v", m.name(), err)
	}
	return string(bytes.TrimSpace(data))
}

// waitsOf describes what a run waits for, except its actions.
func waitsOf(open []workflow.Open, timers map[string]int64, now int64) (list []string) {
	for _, o := range open {
		if o.Signal != "" {
			list = append(list, "signal "+o.Signal)
		}
	}
	for id, at := range timers {
		kind, _, _ := strings.Cut(id, " ")
		list = append(list, fmt.Sprintf("%s until %v from now", kind, time.Duration(at-now)*time.Millisecond))
	}
	slices.Sort(list)
	return list
}

// inSpacePlayer executes a run in a space. With restart, every process ends after each event.
type inSpacePlayer struct {
	*world
	restart bool
	tasks   map[string]space.Task // all that there have been, by the key of the attempt
}

func newInSpacePlayer(t *testing.T, src string, restart bool) *inSpacePlayer {
	t.Helper()
	return &inSpacePlayer{world: newWorld(t, src, nil, simkit.Options{}), restart: restart, tasks: map[string]space.Task{}}
}

func (s *inSpacePlayer) name() string {
	if s.restart {
		return "in a space, with a restart after each event"
	}
	return "in a space"
}

// settled restarts the world, if that is wanted.
func (s *inSpacePlayer) settled() {
	s.Helper()
	if !s.restart {
		return
	}
	if err := s.Restart(); err != nil {
		s.Fatal(err)
	}
	var err error
	if s.s, err = s.Space("s"); err != nil {
		s.Fatal(err)
	}
}

func (s *inSpacePlayer) begin(args string) {
	s.start("r", args)
	s.settled()
}

func (s *inSpacePlayer) signal(name string, value jsontext.Value) {
	s.send(StreamSignal, "", fmt.Sprintf(`{"run":"r","signal":%q,"value":%s}`, name, value))
	s.settled()
}

func (s *inSpacePlayer) cancel(why string) {
	s.send(StreamCancel, "", fmt.Sprintf(`{"run":"r","why":%q}`, why))
	s.settled()
}

func (s *inSpacePlayer) end(a *attempted, with answer) {
	s.Helper()
	task, is := s.tasks[a.key()]
	if !is {
		task = space.Task{Key: taskKey("s", "r", a.id, 0), N: int64(a.attempt)}
	}
	c := space.Completion{Key: task.Key, N: task.N}
	if with.err != nil {
		c.Err = with.err.Text()
	} else {
		c.Out = parsed(s, with.result)
	}
	rc, ok, err := s.s.Send(a.action, "", c.Value(), time.Time{})
	if err != nil || !ok || rc.Outcome != model.Handled {
		s.Fatalf("%s: the end of %s: %v %v %v", s.name(), a.text, ok, err, rc)
	}
	s.settled()
}

func (s *inSpacePlayer) pass(d time.Duration) {
	for to := s.Now().Add(d); ; s.settled() {
		next, is := s.Next()
		if !is || next.After(to) {
			next = to
		}
		if err := s.AdvanceTo(next); err != nil {
			s.Fatal(err)
		}
		if next.Equal(to) {
			s.settled()
			return
		}
	}
}

func (s *inSpacePlayer) pending() (list []*attempted) {
	for _, action := range s.actions {
		for _, t := range s.s.Tasks(action) {
			if t.State != space.TaskPending {
				continue
			}
			id, _ := t.In.Get("work").AsString()
			n, _ := t.In.Get("attempt").AsInt()
			timeout, _ := t.In.Get("timeout").AsInt()
			a := attemptedOf(s, id, int(n), action, jsontext.Value(t.In.Get("args").String()), jsontext.Value(t.In.Get("kwargs").String()), timeout)
			s.tasks[a.key()] = t
			list = append(list, a)
		}
	}
	return list
}

func (s *inSpacePlayer) outcome() string {
	doc := s.s.Value(Doc("r"))
	state, _ := doc.Get("state").AsString()
	typ, _ := doc.Get("error").Get("type").AsString()
	message, _ := doc.Get("error").Get("message").AsString()
	entry := s.s.Value(Index).Get("r")
	if ended := doc.Get("ended"); (State(state) == Running) != ended.IsAbsent() || !model.Equal(ended, entry.Get("ended")) {
		s.Errorf("%s: a run that is %s has ended at %s, and in the index at %s", s.name(), state, ended, entry)
	}
	switch State(state) {
	case Done:
		return "result " + doc.Get("result").String()
	case Failed:
		return "failed " + typ + ": " + message + detailOf(doc.Get("error"))
	case Cancelled:
		return "cancelled: " + message
	}
	return ""
}

func (s *inSpacePlayer) waits() []string {
	status, err := Inspect("r", func(doc string) (model.Value, error) { return s.s.Value(doc), nil })
	if err != nil && !errors.Is(err, ErrNoRun) {
		s.Fatalf("%s: %v", s.name(), err)
	}
	if status == nil {
		return nil
	}
	return waitsOf(status.Waiting, status.Timers, s.Now().UnixMilli())
}

func (s *inSpacePlayer) trace() string {
	head, _ := s.s.Value(Doc("r")).Get("head").AsString()
	return head
}

// agree compares the players of a scenario: what is pending, what is waited for, the outcome, and among those of one
// kind the state or the records.
func agree(t *testing.T, players []player) {
	t.Helper()
	state := func(p player) string {
		calls := map[string]bool{}
		for _, a := range p.pending() {
			calls[fmt.Sprintf("%s %s %d", a.key(), a.text, a.timeout)] = true
		}
		return fmt.Sprintf("pending %q\nwaits for %q\noutcome %s", slices.Sorted(maps.Keys(calls)), p.waits(), p.outcome())
	}
	traces := map[string]string{}
	for _, p := range players {
		kind := fmt.Sprintf("%T", p)
		if was, is := traces[kind]; is && was != p.trace() {
			t.Errorf("%s: %s\nwithout a restart: %s", p.name(), p.trace(), was)
		} else if !is {
			traces[kind] = p.trace()
		}
		if got, want := state(p), state(players[0]); got != want {
			t.Errorf("%s:\n%s\n%s:\n%s", p.name(), got, players[0].name(), want)
		}
	}
}
