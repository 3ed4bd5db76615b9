package runs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/schedule"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// Streams of the events that a program with workflows handles. StreamTimer is for the timers of its runs.
const (
	StreamStart  = "workflow-start"
	StreamSignal = "workflow-signal"
	StreamCancel = "workflow-cancel"
	StreamRetry  = "workflow-retry"
	StreamReset  = "workflow-reset"
	StreamTimer  = "workflow-timer"

	// Runs report to each other on these, which no client may send to: the start of a child, its end, and that it is no
	// longer needed. On StreamChildSent a space has the IDs of the starts that it has sent to other spaces.
	StreamChild       = "workflow-child"
	StreamChildEnd    = "workflow-child-end"
	StreamChildCancel = "workflow-child-cancel"
	StreamChildSent   = "workflow-child-sent"
	// StreamMet is for the conditions that runs of the space wait for. No client may send to it, either.
	StreamMet = "workflow-met"
)

// ClientStreams returns the streams of runs and schedules to which clients may send.
func ClientStreams() []string {
	return append([]string{StreamStart, StreamSignal, StreamCancel, StreamRetry, StreamReset}, ScheduleStreams()...)
}

// Definition is a workflow that a program has.
type Definition struct {
	Name      string
	Version   string
	Graph     *workflow.Graph
	text      string // of the graph, as it is stored
	program   *workflow.Program
	native    bool // it calls functions of the process
	retention Retention
	// fits checks the arguments of a run beyond what the graph says of them, nil if nothing more is known.
	fits func(args jsontext.Value) error
}

// Set are the workflows of a program.
type Set struct {
	byName map[string]*Definition
	// declared are the schedules of the program, by name.
	declared map[string]*declaration
	// shared are the actions whose tasks share a document.
	shared map[string]bool
	// defaults are what conditions read where a document has no value, by its name.
	defaults map[string]model.Value
	bounds   Bounds
	mu       sync.Mutex
	others   map[string]*workflow.Program // of graphs that spaces have stored, by version
}

// New returns an empty set.
func New() *Set {
	return &Set{byName: map[string]*Definition{}, declared: map[string]*declaration{}, shared: map[string]bool{}, defaults: map[string]model.Value{}, bounds: defaultBounds, others: map[string]*workflow.Program{}}
}

// Add adds a workflow. Its code may call the functions.
func (s *Set) Add(g *workflow.Graph, functions starlark.StringDict) (*Definition, error) {
	if s.byName[g.Name] != nil {
		return nil, fmt.Errorf("there are two workflows %s", g.Name)
	}
	if err := g.Check(); err != nil {
		return nil, err
	}
	text, err := g.Encode()
	if err != nil {
		return nil, err
	}
	if len(text) > MaxValue {
		return nil, fmt.Errorf("the graph of workflow %s has %d bytes; at most %d are possible: move code into actions", g.Name, len(text), MaxValue)
	}
	p, err := workflow.PrepareWith(g, functions)
	if err != nil {
		return nil, err
	}
	d := &Definition{Name: g.Name, Version: p.Version, Graph: g, text: string(text), program: p, native: len(functions) > 0}
	s.byName[g.Name] = d
	return d, nil
}

// Fits sets a check of the arguments of the runs of a workflow. Its error refuses the start, and the schedule.
func (s *Set) Fits(workflow string, check func(args jsontext.Value) error) error {
	d := s.byName[workflow]
	if d == nil {
		return fmt.Errorf("there is no workflow %s", workflow)
	}
	d.fits = check
	return nil
}

// check returns an error if a run of the workflow cannot begin with arguments, which are an object.
func (d *Definition) check(args model.Value) error {
	if err := d.Graph.CheckArguments(args.Keys()); err != nil || d.fits == nil {
		return err
	}
	return d.fits(jsontext.Value(args.String()))
}

// checkScheduled is check for a schedule, which may add the time of the occurrence.
func (d *Definition) checkScheduled(s schedule.Definition, args model.Value) error {
	if s.TimeAs == "" {
		return d.check(args)
	}
	args, err := args.Set(model.Path{s.TimeAs}, model.String(time.Time{}.Format(time.RFC3339)))
	if err != nil {
		return err
	}
	return d.check(args)
}

// Definitions returns the workflows, sorted by name.
func (s *Set) Definitions() []*Definition {
	var list []*Definition
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		list = append(list, s.byName[name])
	}
	return list
}

// Actions returns the names of the actions that the workflows call, sorted.
func (s *Set) Actions() []string {
	names := map[string]bool{}
	for _, d := range s.byName {
		for _, name := range d.Graph.Actions() {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Use makes an action one that workflows call: the ends of its tasks are theirs. Call it before the action is
// registered.
func (s *Set) Use(a *space.ActionSpec) error {
	if a.Input {
		return fmt.Errorf("a workflow calls %s, which is an input and not an action", a.Name)
	}
	if a.Done != nil {
		return fmt.Errorf("action %s is called by a workflow, which receives its results; it cannot have a function done, too: declare another action for other work", a.Name)
	}
	a.Done, a.Discard, a.Failed = s.ended, true, failedText
	a.Fleet.Of = func(t *space.Task, by string) model.Value { return t.In.Get("kwargs").Get(by) }
	if shared := !a.Apart(); s.shared[a.Name] != shared { // programs that share the set run meanwhile
		s.shared[a.Name] = shared
	}
	if a.Remote != nil {
		terms := *a.Remote
		terms.Attempts = 1 // the workflow decides about another one
		terms.Work, terms.Failed = func(t *space.Task) space.Work { return workOf(t, terms.QueueBy) }, failedText
		a.Remote = &terms
	}
	return nil
}

// workOf returns what a performer gets of a call: its arguments. The queue is a keyword argument.
func workOf(t *space.Task, queueBy string) space.Work {
	args, kwargs := t.In.Get("args"), t.In.Get("kwargs")
	w := space.Work{In: model.Object(model.F("args", args), model.F("kwargs", kwargs)), Queue: kwargs.Get(queueBy)}
	w.Run, _ = t.In.Get("run").AsString()
	attempt, _ := t.In.Get("attempt").AsInt()
	w.Attempt = int(attempt)
	if ms, is := t.In.Get("timeout").AsInt(); is && ms > 0 && ms < math.MaxInt64/int64(time.Millisecond) {
		w.Timeout = time.Duration(ms) * time.Millisecond
	}
	return w
}

// failedText returns the error of a performer as ParseError reads it.
func failedText(f *space.WorkError) string {
	e := ActionError{Type: cmp.Or(f.Type, "Error"), Ancestors: f.Ancestors, Message: f.Message}
	if !f.Detail.IsAbsent() {
		e.Detail = jsontext.Value(f.Detail.String())
	}
	return e.Text()
}

// Register registers the handlers of a program with workflows.
func (s *Set) Register(p *space.Program) error {
	if err := s.checkChildren(); err != nil {
		return err
	}
	p.Notice(s.undelivered)
	for _, h := range []struct {
		stream   string
		handle   space.Handler
		internal bool
	}{
		{StreamStart, answering(s.start), false},
		{StreamSignal, answering(s.signal), false},
		{StreamCancel, answering(s.cancel), false},
		{StreamRetry, answering(s.retry), false},
		{StreamReset, answering(s.reset), false},
		{StreamTimer, s.timer, true},
		{StreamChild, s.childStart, true},
		{StreamChildEnd, s.childEnd, true},
		{StreamChildCancel, s.childCancel, true},
		{StreamChildSent, s.childSent, true},
		{StreamMet, s.conditionMet, true},
	} {
		if err := p.Handle(h.stream, h.handle); err != nil {
			return err
		}
		if h.internal {
			if err := p.Internal(h.stream); err != nil {
				return err
			}
		}
		if err := p.Within(h.stream, handlerLimit); err != nil {
			return err
		}
	}
	if err := s.registerConditions(p); err != nil {
		return err
	}
	return s.registerSchedules(p)
}

// handlerLimit is the time limit of a step. The steps of code that a run may execute end long before.
const handlerLimit = 2 * time.Minute

// program returns the program of a stored graph.
func (s *Set) program(tx *space.Tx, name, version string) (*workflow.Program, error) {
	if d := s.byName[name]; d != nil && d.Version == version {
		return d.program, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.others[version]; p != nil {
		return p, nil
	}
	text, is := tx.Peek(graphDoc(version)).AsString()
	if !is {
		return nil, fmt.Errorf("the graph of workflow %s, version %s, is not in this space", name, version)
	}
	g, err := workflow.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		return nil, fmt.Errorf("a run of version %s of workflow %s: %w; it calls functions of the process that had that version: let the runs of a version end before it is replaced, or cancel them", version, name, err)
	}
	s.others[version] = p
	return p, nil
}
