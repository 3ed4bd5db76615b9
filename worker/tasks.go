package worker

import (
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/tasks"
)

// tasksOf is the list of the tasks that a host does: only the owner of a space does any.
func tasksOf(h *host) *tasks.List {
	return tasks.New(tasks.Host{
		Space: h.space, Ctx: h.ctx, Slots: h.env.performing, Logger: h.env.cfg.Logger, Warn: h.env.cfg.faults.Warn,
		Now: h.now, Go: h.env.tasks.Go, Call: h.call, Send: h.sendEvent, Report: h.report,
	})
}

// lookAtTasks takes in what the log says of tasks.
func (h *host) lookAtTasks() {
	if h.core != nil && !h.joins {
		h.tasks.Look(h.core)
	}
}

// nextDue is when the space wants to be woken should this host end, 0 for never.
func (h *host) nextDue() int64 {
	h.lookAtTasks()
	if h.tasks.Pending() {
		return atOnce
	}
	return h.core.NextDue()
}

// performTasks begins what is to be done now.
func (h *host) performTasks() {
	h.lookAtTasks()
	if !h.draining && h.core.Owned() {
		h.tasks.Perform()
	}
}

// tasksAt is when the next task is to be looked at, 0 if none waits for a time.
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
