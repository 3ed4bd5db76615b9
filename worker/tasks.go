package worker

import (
	"time"
)

// lookAtTasks processes the log's records of tasks.
func (h *host) lookAtTasks() {
	if h.core != nil && !h.start.joins {
		h.tasks.Look(h.core)
	}
}

// performTasks starts the tasks that are due.
func (h *host) performTasks() {
	h.lookAtTasks()
	if !h.draining && h.core.Owned() {
		h.tasks.Perform()
	}
}

// tasksAt returns when to check the tasks next, 0 if none waits for a time.
func (h *host) tasksAt() time.Duration {
	if h.draining || !h.core.Owned() {
		return 0
	}
	return h.tasks.Next()
}
