package worker

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/tasks"
)

// tasksOf returns the list of the tasks that a host performs: only the owner of a space performs tasks.
func tasksOf(h *host) *tasks.List {
	return tasks.New(tasks.Host{
		Space: h.space, Ctx: h.ctx, Slots: h.env.performing, Logger: h.env.cfg.Logger, Warn: h.env.cfg.faults.Warn,
		Now: h.now, Go: h.env.tasks.Go, Call: h.call, Send: h.sendEvent, Report: h.report,
	})
}

// lookAtTasks processes the log's records of tasks.
func (h *host) lookAtTasks() {
	if h.core != nil && !h.start.joins {
		h.tasks.Look(h.core)
	}
}

// nextDue returns when the space must be woken in case this host ends, 0 for never.
func (h *host) nextDue() int64 {
	h.lookAtTasks()
	if h.tasks.Pending() {
		return atOnce
	}
	return h.core.NextDue()
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

// sendEvent stores an event in a lane.
func (h *host) sendEvent(m model.Message) error {
	answer := make(chan error, 1)
	h.env.bus.Send(m, func(_ model.SendResult, err error) { answer <- err })
	return <-answer
}
