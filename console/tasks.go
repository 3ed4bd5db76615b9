package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// maxTasks is how many tasks a page lists.
const maxTasks = 20

// taskRow is work outside of the space.
type taskRow struct {
	space.Task
	// Action is the name of the action, and Doc that of the document that holds the task: the action's, or one of its own.
	Action, Doc string
	// Ended is when it ended, zero while it is pending.
	Ended time.Time
}

// Mark is the mark of the task.
func (r *taskRow) Mark() string {
	switch {
	case r.Unhandled, r.State == space.TaskFailed:
		return "failed"
	case r.State == space.TaskPending && r.Attempts > 0:
		return "parked"
	case r.State == space.TaskPending:
		return "running"
	case r.State == space.TaskDone:
		return "clean"
	}
	return "dormant"
}

// Word says how far the task is.
func (r *taskRow) Word() string {
	switch {
	case r.Unhandled:
		return "done, and not handled"
	case r.State == space.TaskPending && r.Attempts > 0:
		return "tried again"
	}
	return string(r.State)
}

// Begun is when a pending task began, zero if that is not known.
func (r *taskRow) Begun() time.Time { return msTime(r.Since) }

// tasksData is what the template of the tasks gets.
type tasksData struct {
	Space   string
	Rows    []taskRow
	Pending []pendingTasks
	// More is how many tasks are not listed.
	More int
}

// pendingTasks is how many tasks of an action are pending.
type pendingTasks struct {
	Action string
	Count  int
}

// tasks are the tasks in the documents that the visitor may read: those that are pending or have failed first, then those that have ended last.
func (s *spaceView) tasks() *tasksData {
	d := &tasksData{Space: s.space}
	for _, name := range s.contents.DocIDs() {
		v := s.contents.Doc(name).Value
		if s.q.visitor.MayRead(s.space, name) != nil {
			continue
		}
		if action, t, is := space.TaskIn(name, v); is {
			d.add(action, name, t)
			continue
		}
		if held := v.Get("tasks"); held.Kind() == model.KindObject {
			for key, entry := range held.All() {
				d.add(name, name, space.TaskOf(key, entry))
			}
		}
	}
	slices.SortStableFunc(d.Rows, func(a, b taskRow) int {
		return cmp.Or(cmp.Compare(slices.Index(taskOrder, a.Mark()), slices.Index(taskOrder, b.Mark())), b.Ended.Compare(a.Ended),
			cmp.Compare(a.Since, b.Since), cmp.Compare(a.Key, b.Key))
	})
	slices.SortFunc(d.Pending, func(a, b pendingTasks) int { return cmp.Compare(a.Action, b.Action) })
	if d.More = max(0, len(d.Rows)-maxTasks); d.More > 0 {
		d.Rows = d.Rows[:maxTasks]
	}
	return d
}

// add adds a task, unless it is none: a document of the application may have a field of that name.
func (d *tasksData) add(action, doc string, t space.Task) {
	if t.N == 0 || t.State == space.NoTask {
		return
	}
	r := taskRow{Task: t, Action: action, Doc: doc, Ended: msTime(t.At)}
	if t.State == space.TaskPending {
		at := slices.IndexFunc(d.Pending, func(p pendingTasks) bool { return p.Action == action })
		if at < 0 {
			at = len(d.Pending)
			d.Pending = append(d.Pending, pendingTasks{Action: action})
		}
		d.Pending[at].Count++
	}
	d.Rows = append(d.Rows, r)
}

// placeName names a place of a document for people; the document of a task has the name of the task.
func placeName(p history.Place) string {
	if !model.IsTaskDoc(p.Document) {
		return p.Document
	}
	for _, v := range []model.Value{p.To, p.From} {
		if action, t, is := space.TaskIn(p.Document, v); is && p.Path == "" {
			return action + " " + cut(t.Key, maxID)
		}
	}
	return "a task"
}

// taskOrder orders tasks by their marks.
var taskOrder = []string{"failed", "parked", "running", "clean", "dormant"}
