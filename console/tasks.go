package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// maxTasks is how many tasks a page lists.
const maxTasks = 20

// taskRow is work outside of the space.
type taskRow struct {
	space.Task
	// Action is the name of the action, and of the document that holds the task.
	Action string
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

// tasksData is what the template of the tasks gets.
type tasksData struct {
	Space   string
	Rows    []taskRow
	Pending int
	// More is how many tasks are not listed.
	More int
}

// tasks are the tasks in the documents that the visitor may read: those that are pending or have failed first, then those that have ended last.
func (s *spaceView) tasks() *tasksData {
	d := &tasksData{Space: s.space}
	for _, name := range s.contents.DocIDs() {
		held := s.contents.Doc(name).Value.Get("tasks")
		if held.Kind() != model.KindObject || s.q.visitor.MayRead(s.space, name) != nil {
			continue
		}
		for key, entry := range held.All() {
			t := taskRow{Task: space.TaskOf(key, entry), Action: name}
			if t.N == 0 || t.State == space.NoTask {
				continue // a document of the application that has a field of that name
			}
			if t.At > 0 {
				t.Ended = time.UnixMilli(t.At)
			}
			if t.State == space.TaskPending {
				d.Pending++
			}
			d.Rows = append(d.Rows, t)
		}
	}
	slices.SortStableFunc(d.Rows, func(a, b taskRow) int {
		return cmp.Or(cmp.Compare(slices.Index(taskOrder, a.Mark()), slices.Index(taskOrder, b.Mark())), b.Ended.Compare(a.Ended))
	})
	if d.More = max(0, len(d.Rows)-maxTasks); d.More > 0 {
		d.Rows = d.Rows[:maxTasks]
	}
	return d
}

// taskOrder orders tasks by their marks.
var taskOrder = []string{"failed", "parked", "running", "clean", "dormant"}
