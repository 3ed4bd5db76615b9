package settletest

import (
	"context"
	"slices"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/tasks"
)

// A world performs no task and fetches no input by itself. A test reports the end of a task, as an
// external system would (Complete, GiveUp), or calls the program's own functions (Perform).

// Work is a settle.Action or a settle.Input whose results are of type Out.
type Work[Out any] interface {
	Name() string
	Completed(to settle.Target, key string, out Out) (settle.Outgoing, error)
	Failed(to settle.Target, key string, why error) settle.Outgoing
}

// PendingTasks returns the keys of an action's pending tasks, or of the requested values of an
// input, in order.
func PendingTasks[Out any](s *Space, of Work[Out]) []string {
	s.w.t.Helper()
	var keys []string
	for _, t := range s.pending(s.action(of.Name())) {
		keys = append(keys, t.Key)
	}
	return keys
}

// Complete reports that a task of an action is done, or supplies a value of an input, and runs
// everything that follows from it. The task must be pending.
func Complete[Out any](s *Space, of Work[Out], key string, out Out) {
	s.w.t.Helper()
	o, err := of.Completed(settle.To(s.Space()), key, out)
	if err != nil {
		s.w.t.Fatalf("settletest: %v", err)
	}
	s.endTask(of.Name(), key, o)
}

// GiveUp reports that a task of an action is given up, or that a value of an input cannot be
// fetched. The task must be pending.
func GiveUp[Out any](s *Space, of Work[Out], key string, why error) {
	s.w.t.Helper()
	s.endTask(of.Name(), key, of.Failed(settle.To(s.Space()), key, why))
}

func (s *Space) endTask(name, key string, o settle.Outgoing) {
	s.w.t.Helper()
	pending := s.pending(s.action(name))
	for _, t := range pending {
		if t.Key == key {
			s.report(name, o.Payload)
			return
		}
	}
	s.w.t.Fatalf("settletest: task %q of %s is not pending in space %s; %s", key, name, s.Space(), keysOf(pending))
}

func keysOf(tasks []space.Task) string {
	if len(tasks) == 0 {
		return "none is"
	}
	text := "these are:"
	for _, t := range tasks {
		text += " " + t.Key
	}
	return text
}

// Perform makes one attempt at each pending task of the space, of actions and of inputs, with the
// functions that the program has registered, and runs everything that follows. It calls them
// sequentially and attempts no task twice; tasks started meanwhile are performed, too. It returns
// the number of attempts; failed ones are repeated by the next call, as a worker would after a
// pause.
func (s *Space) Perform() (attempts int) {
	s.w.t.Helper()
	made := map[attempted]bool{}
	s.perform(made)
	return len(made)
}

// attempted is an attempt that a call of Perform has made.
type attempted struct {
	space, action, key string
	n                  int64
}

func (s *Space) perform(made map[attempted]bool) {
	s.w.t.Helper()
	for again := true; again; {
		again = false
		for _, a := range s.s.Program().Actions() {
			if a.Performer == nil {
				continue
			}
			for _, t := range s.pending(a) {
				if at := (attempted{s.Space(), a.Name, t.Key, t.N}); !made[at] {
					made[at], again = true, true
					s.attempt(a, t)
				}
			}
		}
	}
}

// Perform is Space.Perform in every space that there is, also in those that the test has not named, such as those of child
// workflows.
func (w *World) Perform() (attempts int) {
	w.t.Helper()
	made := map[attempted]bool{}
	for before := -1; before != len(made); {
		before = len(made)
		for _, s := range w.w.Spaces() {
			w.Space(s.Name()).perform(made)
		}
	}
	return len(made)
}

// attempt makes one attempt at a task, and reports its end.
func (s *Space) attempt(a *space.ActionSpec, t space.Task) {
	s.w.t.Helper()
	out, err := a.Performer.Attempt(tasks.WithAttempt(context.Background(), tasks.Attempt{Deployment: bus.DefaultPrefix, Space: s.Space(), Action: a.Name, Key: t.Key, Number: t.Attempts + 1, Event: t.Event}), t.Key, t.In, func(error) {})
	c := a.Performer.Completion(&t, out, err)
	s.report(a.Name, c.Value())
}

// report reports the end of a task, or of an attempt, as a worker does.
func (s *Space) report(action string, payload any) {
	s.w.t.Helper()
	v, err := settle.ValueOf(payload)
	s.w.check(err)
	rc, ok, err := s.s.Report(action, v)
	s.w.check(err)
	mustBeHandled(s, action, rc, ok)
}

// action returns the action or input of that name.
func (s *Space) action(name string) *space.ActionSpec {
	s.w.t.Helper()
	for _, a := range s.s.Program().Actions() {
		if a.Name == name {
			return a
		}
	}
	s.w.t.Fatalf("settletest: the program of space %s has no action or input %s; register it with Perform, External or Fetch", s.Space(), name)
	return nil
}

// pending returns the pending tasks of an action.
func (s *Space) pending(a *space.ActionSpec) (out []space.Task) {
	if !a.Input {
		return slices.DeleteFunc(s.s.Tasks(a.Name), func(t space.Task) bool { return t.State != space.TaskPending })
	}
	doc := func(name string) model.Value { return s.s.Value(name) }
	for key, entry := range a.Entries(doc(a.Pending())).All() {
		t, ok := a.PendingTask(key, entry)
		if !ok {
			continue
		}
		if known := space.TaskOf(key, doc(a.Name).At(space.PathOfTask(key))); known.N == t.N {
			t.Attempts = known.Attempts
		}
		out = append(out, t)
	}
	return out
}
