package space

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/model"
)

// Commands for work outside: actions and inputs of programs, and their performers.

// action parses "name [discard]" or "name [discard]: statements", which are done when a task has ended; $ is the task then.
func (s *script) action(input bool, rest string) error {
	head, body, told := strings.Cut(rest, ":")
	words := strings.Fields(head)
	if len(words) == 0 {
		return errors.New("an action has a name")
	}
	spec := &ActionSpec{Name: words[0], Input: input}
	for _, w := range words[1:] {
		if w != "discard" {
			return fmt.Errorf("an action has no option %q; there is discard", w)
		}
		spec.Discard = true
	}
	if told {
		run, err := s.body("", body)
		if err != nil {
			return err
		}
		spec.Done = func(tx *Tx, t Task) error {
			_, err := run.eval(s.env(tx, &model.Event{Space: tx.Space(), Stream: spec.Name, ID: t.Key, Payload: taskValue(t)}))
			return err
		}
	}
	s.actions[spec.Name] = spec
	return s.Action(spec)
}

// taskValue returns a task as scenarios see it.
func taskValue(t Task) model.Value {
	var fields []model.Field
	add := func(name string, v any, there bool) {
		if there {
			fields = append(fields, model.F(name, v))
		}
	}
	add("attempts", t.Attempts, t.Attempts > 0)
	add("error", t.Err, t.Err != "")
	add("key", t.Key, t.Key != "")
	add("out", t.Out, !t.Out.IsAbsent())
	add("state", string(t.State), t.State != NoTask)
	return model.Object(fields...)
}

// parseStart parses "action key expr".
func parseStart(rest string) (statement, error) {
	action, more, _ := strings.Cut(rest, " ")
	key, in, _ := strings.Cut(more, " ")
	k, err := parseExpr(key)
	if err != nil {
		return nil, err
	}
	e := constant(model.Value{})
	if in != "" {
		if e, err = parseExpr(in); err != nil {
			return nil, err
		}
	}
	return func(tx *Tx, v *env) (model.Value, bool) {
		tx.StartTask(action, text([]model.Value{k(v)}), e(v))
		return model.Value{}, false
	}, nil
}

// parseTaskStatement parses "action key" of what a handler does with a task.
func parseTaskStatement(what, rest string) (statement, error) {
	action, key, _ := strings.Cut(rest, " ")
	k, err := parseExpr(strings.TrimSpace(key))
	return func(tx *Tx, v *env) (model.Value, bool) {
		key := text([]model.Value{k(v)})
		switch what {
		case "cancel-task":
			tx.CancelTask(action, key)
		case "drop-task":
			tx.DropTask(action, key)
		case "refresh":
			tx.RefreshTask(action, key)
		}
		return model.Value{}, false
	}, err
}

// tasks returns the tasks of an action that the log has, by key.
func (s *stage) tasks(space string, of *ActionSpec) map[string]Task {
	all := map[string]Task{}
	r := s.replica(space)
	for key, entry := range r.Doc(of.Name).Value.Get(inTasks).All() {
		all[key] = TaskOf(key, entry)
	}
	if of.Input {
		for key, n := range r.Doc(of.Pending()).Value.All() {
			t := all[key]
			t.Key, t.State = key, TaskPending
			t.N, _ = n.AsInt()
			all[key] = t
		}
	}
	for _, id := range r.TaskDocs() {
		if action, t, ok := TaskIn(id, r.Doc(id).Value); ok && action == of.Name {
			all[t.Key] = t
		}
	}
	return all
}

// cmdTasks prints the tasks that are in the log, as performers see them.
func (s *stage) cmdTasks(d *datadriven.TestData) error {
	space := arg(d, 0)
	for _, name := range sortedKeys(s.script(space).actions) {
		all := s.tasks(space, s.script(space).actions[name])
		for _, key := range sortedKeys(all) {
			t := all[key]
			line := fmt.Sprintf("%s %s: %s", name, key, t.State)
			if t.State == TaskPending && t.Attempts > 0 {
				line += fmt.Sprintf(", %s failed: %s", times(t.Attempts), t.Err)
			}
			if t.State == TaskPending && !t.Progress.IsAbsent() {
				line += ", at " + show(t.Progress)
			}
			switch {
			case t.State == TaskFailed:
				line += ": " + t.Err
			case t.State == TaskDone || !t.Out.IsAbsent():
				line += ", out " + show(t.Out)
			}
			if !t.In.IsAbsent() {
				line += ", in " + show(t.In)
			}
			s.tellBus("%s", line)
		}
	}
	return nil
}

// cmdPerform does what a performer does: it reports how an attempt at a pending task has ended.
func (s *stage) cmdPerform(d *datadriven.TestData) error {
	space, action, key := arg(d, 0), arg(d, 1), arg(d, 2)
	of := s.script(space).actions[action]
	if of == nil {
		return fmt.Errorf("space %s has no action or input %q", space, action)
	}
	t := s.tasks(space, of)[key]
	c := Completion{Key: key, N: t.N}
	if n := option(d, "n"); n != "" {
		_, _ = fmt.Sscan(n, &c.N) // a number, as its usage has it
	} else if t.State != TaskPending {
		return fmt.Errorf("the log has no pending task %s of %s; n= reports the end of an earlier start", key, action)
	}
	how, src, _ := strings.Cut(strings.TrimSpace(d.Input), " ")
	e, err := parseExpr(src)
	if err != nil {
		return err
	}
	v, err := e.eval(&env{})
	if err != nil {
		return err
	}
	id := fmt.Sprintf("done:%d-%s", c.N, key)
	switch how {
	case "done":
		c.Out = v
	case "failed":
		c.Err = text([]model.Value{v})
	case "again":
		c.Err, c.Attempt = text([]model.Value{v}), t.Attempts+1
		id = fmt.Sprintf("try%d:%d-%s", c.Attempt, c.N, key)
	case "progress":
		c.Progress = v
		id = fmt.Sprintf("at%d:%d-%s", s.laneSeq, c.N, key)
	default:
		return fmt.Errorf("an attempt ends with done VALUE, failed WHY or again WHY, or continues with progress VALUE; not %q", how)
	}
	if slices.ContainsFunc(s.lanes[space], func(ev model.Event) bool { return ev.ID == id && ev.Stream == action }) {
		s.tellBus("lane.%s has %s already", space, id)
		return nil
	}
	s.post(model.Event{Space: space, Stream: action, ID: id, Payload: c.Value()})
	s.tellBus("lane.%s takes %s on %s at %d", space, id, action, s.laneSeq)
	return nil
}
