package host

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
)

// graphParts is the part of a host that exists because its core has a graph: demand of others for its
// documents, and its own demand for theirs. A host of a core without a graph has none of it, in code or in
// memory.
type graphParts struct {
	core    Graph
	reads   reads
	directs directs
	mirrors mirrors
}

func (h *host) newGraphParts(core Graph) *graphParts {
	return &graphParts{core: core, mirrors: mirrors{
		loop: h.loop, watcher: watcherOf(h.env.cfg.ID, h.space, h.appends.nonce), deliver: h.inbox.mirror,
		all: map[Ref]context.CancelFunc{},
	}}
}

// taskCore has work outside: the tasks that the space has started, and their attempts.
type taskCore interface {
	// LookAtTasks processes the log's records of tasks, and PerformTasks starts those that are due.
	LookAtTasks()
	PerformTasks()
	// TasksUndone reports transactions that were undone, among which may be those that end tasks.
	TasksUndone(txs []uint64)
	// TasksPending reports whether any are pending, and TasksAt returns when to check them next, 0 for never.
	TasksPending() bool
	TasksAt() time.Duration
	// HoldsTasks reports whether a document holds the tasks of an action.
	HoldsTasks(doc string) bool
}

// takeInGraph passes reads and mirrored documents to the core.
func (h *host) takeInGraph(in *pendingInputs) {
	if h.graph == nil {
		for _, r := range in.reads {
			close(r.done)
		}
		return
	}
	h.beginReads(in.reads)
	for ref, m := range in.mirrored { // any order: documents of other spaces are independent
		if m.ctx.Err() == nil {
			h.graph.core.Woken(m.by)
			h.graph.core.Mirror(ref, m.value, m.via)
		}
	}
}

// carryOut starts and ends mirrors.
func (g *graphParts) carryOut(r *Ready) {
	for _, ref := range r.Follow {
		g.mirrors.follow(ref)
	}
	for _, ref := range r.Unfollow {
		g.mirrors.unfollow(ref)
	}
}

// graphAt returns when a transaction of the application or a task needs the loop, 0 for never; due reports
// that it is now.
func (h *host) graphAt() (at time.Duration, due bool) {
	if h.graph == nil || h.draining {
		return 0, false
	}
	if h.unborn.Load() {
		return 0, false // its tasks are not performed
	}
	at, due = h.graph.directs.next(h.graph.core, h.now())
	if h.core.Owned() {
		at = earliest(at, h.graph.core.TasksAt())
	}
	return at, due
}

// lookAtTasks processes the log's records of tasks, and reports whether any are pending.
func (h *host) lookAtTasks() (pending bool) {
	if h.graph == nil || h.unborn.Load() {
		return false
	}
	if !h.start.joins {
		h.graph.core.LookAtTasks()
	}
	return h.graph.core.TasksPending()
}

// performTasks starts the tasks that are due. Only the owner of a space performs its tasks.
func (h *host) performTasks() {
	h.lookAtTasks()
	if h.graph != nil && !h.draining && h.core.Owned() && !h.unborn.Load() {
		h.graph.core.PerformTasks()
	}
}

// hasDemand reports whether mirrors, reads or transactions of the application need the space in memory, or tasks are pending.
func (h *host) hasDemand() bool {
	g := h.graph
	return g != nil && (len(g.mirrors.all) > 0 || g.reads.holds() ||
		len(g.directs.waiting) > 0 || len(g.directs.undecided) > 0 || g.core.TasksPending())
}

// confirmed records that a commit of the host is in the log, and refused that one is not.
func (g *graphParts) confirmed(c *model.Commit) {
	if g != nil {
		g.directs.full = false
		g.directs.confirm(c)
		g.reads.confirmed++
	}
}

func (g *graphParts) refused() {
	if g != nil {
		g.directs.full = false
		g.reads.refused++
	}
}

// startsTasks reports whether a commit may start tasks.
func (g *graphParts) startsTasks(c *model.Commit) bool {
	if g == nil {
		return false
	}
	for i := range c.Txs {
		for _, w := range c.Txs[i].Writes {
			if g.core.HoldsTasks(w.Doc) {
				return true
			}
		}
	}
	return false
}
