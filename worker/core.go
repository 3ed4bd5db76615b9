package worker

import (
	"slices"
	"time"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker/host"
	"github.com/settlehq/settle/worker/tasks"
)

// core is a space with a graph, as its host drives it.
type core struct {
	*space.Space
	of      *host.Access
	engine  *engine
	tracing tracing
	tasks   *tasks.List
	clock   runClock
	// recording is whether runs are recorded for questions.
	recording recording
	episode   episode
	rounds    map[string]roundEpisode // by way round
	failing   coreFailing
	load      coreLoad
	// differing are the nodes that were found not to be idempotent and logged, since the space was loaded.
	differing map[string]bool
}

// Performs reports whether a stream is one on which the end of an action, or a value of an input, is reported.
func (c *core) Performs(stream string) bool {
	return slices.ContainsFunc(c.Program().Actions(), func(a *space.ActionSpec) bool { return a.Name == stream })
}

// settings returns the configuration of the space.
func (c *core) settings() space.Config {
	cfg, code := c.engine.cfg, c.of.Code
	return space.Config{
		Space: c.of.Space, Runtime: cfg.ID, Limits: c.of.Limits, Budgets: cfg.Budgets,
		WithoutEvents: cfg.withoutEvents || c.of.Unborn, DocumentWait: max(cfg.DocumentWait, 0),
		CheckIdempotency: cfg.CheckIdempotency, Rehearsals: cfg.Rehearsals, Trace: c.trace(),
		Guard: space.Guard{Used: code.Used, Context: func() space.Context { return c.tracing.spans.context(code.Context()) }, Returned: func(handler bool) error {
			if late := code.Returned(handler); late != nil {
				return space.Transient(limitError(late))
			}
			return nil
		}},
	}
}

// trace returns the callbacks of the space.
func (c *core) trace() space.Trace {
	t := space.Trace{RunEnd: func(i space.RunInfo) {
		if i.Kind == space.Computation {
			c.engine.runs.add(RunKey{c.of.Space, i.Node})
			c.engine.tally.ran(&i)
		}
		c.tracing.watch.stop(i.Node, i.Kind)
		c.clock.ran(&i)
		c.tracing.spans.runEnd(&i)
	}}
	t.RunBegan = func(node string, kind space.NodeKind) {
		c.of.Code.Runs(node)
		c.tracing.watch.start(kind)
		c.clock.begin(node, false)
		c.tracing.spans.runStart(node, kind)
	}
	t.PreviewBegan = func(node string) { c.clock.begin(node, false) }
	t.PreviewEnd = func(node string) { c.clock.previewed(node) }
	t.HandleStart, t.HandleEnd, t.Program = c.begins, c.ended, c.changed
	t.Notes = c.engine.cfg.Tracer != nil || c.engine.cfg.Meter != nil
	t.Unsettled = func(nodes []string) { c.episode.begin(nodes) }
	t.Gated = func(space.GateInfo) { c.episode.gated = true }
	t.Round = c.round
	if c.tracing.spans.tracer != nil || c.engine.tally != nil {
		t.PassEnd, t.TaskStarted = c.tracing.spans.passEnd, c.taskStarted
	}
	if c.tracing.spans.head != nil {
		t.Sends = c.tracing.spans.passedOn
	}
	if c.engine.tally != nil {
		t.Skipped = c.engine.tally.heldBack
	}
	return t
}

// taskStarted records that a task was started.
func (c *core) taskStarted(action, key string) {
	if c.engine.tally != nil {
		c.engine.tally.started.Add(1)
	}
	if c.tracing.spans.tracer != nil {
		c.tracing.spans.taskStarted(action, key)
	}
}

// begins records the start of a handler.
func (c *core) begins(ev *model.Event) model.Trace {
	c.clock.begin(ev.Stream, true)
	c.of.Code.Handles(ev.Stream, ev.ID, c.Seq(), c.AttemptRecorded(ev.Stream, ev.ID), c.Program().HandlerLimit(ev.Stream))
	if c.tracing.spans.tracer == nil {
		return ev.Trace
	}
	return c.tracing.spans.handleStart(ev, c.Program().Handles(ev.Stream))
}

// ended records the end of an attempt at an event.
func (c *core) ended(i space.HandleInfo) {
	c.clock.handled(&i)
	c.load.parked = i.Receipt == nil && i.Err == nil
	c.engine.tally.handled(&i, c.engine.cfg.wall)
	c.tracing.ended(i)
}

// Settle makes one pass.
func (c *core) Settle(now time.Duration) host.Ready {
	began := c.beginPass()
	r := c.Space.Settle(now)
	c.tracing.watch.report(c.Space)
	c.clock.flush()
	c.expire(now)
	c.follow()
	c.followFailing()
	if rec := c.Recorder(); rec.Busy(c.of.Now() - now) {
		found := rec.Markers()
		last := found[len(found)-1]
		c.engine.cfg.Logger.Info("a space is at work most of the time", "space", c.of.Space, "worker", c.engine.cfg.ID,
			"at_work", last.Busy.Round(time.Millisecond), "within", max(last.Window, last.Busy).Round(time.Millisecond))
	}
	c.endPass(began)
	out := host.Ready{Append: r.Append, Follow: refs(r.Follow), Unfollow: refs(r.Unfollow), Wake: r.Wake, Due: r.Due, More: r.More, Undone: r.Undone}
	if r.Refill != nil {
		out.Refill, out.RefillAfter = true, r.Refill.After
	}
	return out
}

// beginPass records the beginning of a pass, and returns its time if that is measured.
func (c *core) beginPass() (began time.Time) {
	if c.tracing.spans.tracer == nil && c.engine.tally == nil {
		return began
	}
	began = time.Now()
	c.tracing.spans.beginPass(began)
	return began
}

// endPass records the end of a pass.
func (c *core) endPass(began time.Time) {
	if c.tracing.spans.tracer == nil && c.engine.tally == nil {
		return
	}
	by, did := c.tracing.spans.endPass()
	if did && c.engine.tally != nil {
		c.engine.tally.pass.Record(telemetry.Exemplar(by), "", time.Since(began).Seconds())
	}
	if c.load.to != nil {
		pending, late := c.tasks.Load()
		c.load.publish(pending, late)
	}
}

func refs(list []space.Ref) []host.Ref {
	if len(list) == 0 {
		return nil
	}
	out := make([]host.Ref, len(list))
	for i, r := range list {
		out[i] = host.Ref(r)
	}
	return out
}

// BeginCommit begins the span of an append.
func (c *core) BeginCommit(commit *model.Commit, under model.Trace) (model.Trace, func(seq uint64, err error)) {
	return c.tracing.spans.beginCommit(commit, under)
}

// Woken records what the next pass is for.
func (c *core) Woken(by model.Trace) { c.tracing.spans.woken(by) }

// StuckAt returns the event at which the space stands still, and why.
func (c *core) StuckAt(clock func(time.Duration) string) (s status.Stuck, waits bool) {
	p, waits := c.Inspect().Parked()
	if !waits {
		s.Cause, s.Reason = inspect.CauseComputation, "its computations do not come to rest, or wait for a time"
		return s, false
	}
	s.Stream, s.Event = p.Stream, p.Event
	s.Cause, s.Reason = p.Cause(clock)
	return s, true
}

// Overran records that an earlier host of the space was given up because of this code.
func (c *core) Overran(o host.Overrun) { c.Space.Overran(space.Overrun(o)) }

// LastMissed returns the last times of a job that were passed over.
func (c *core) LastMissed() host.Missed { return host.Missed(c.Space.LastMissed()) }

// Freshness returns how up to date an observed document is.
func (c *core) Freshness(doc string) host.Freshness {
	f := c.Space.Freshness(doc)
	return host.Freshness{Pending: f.Pending, Reason: f.Reason}
}

// Mirror sets the value of a document of another space.
func (c *core) Mirror(of host.Ref, v model.Value, via *model.Trail) {
	c.Space.MirrorVia(of.Space, of.Doc, v, via)
}

// Change makes the space run another program as soon as possible.
func (c *core) Change(p host.Program) error { return c.Space.Change(p.(program).Program) }

// changed logs that the space runs another program.
func (c *core) changed(i space.ProgramInfo) {
	c.engine.cfg.Logger.Debug("space runs another program", "space", c.of.Space, "worker", c.engine.cfg.ID, "program", i.Name,
		"version", i.Version, "before", i.Before, "kept", i.Kept, "changed", i.Changed, "new", i.New, "gone", i.Gone, "makers", i.Makers)
}

// build identifies the code of nodes without a version. One executable may host several programs.
func (c *core) build() string { return buildOf(c.engine.cfg.Build, c.Program().Version) }

func buildOf(executable, version string) string {
	if executable == "" || version == "" {
		return executable
	}
	return executable + "/" + version
}

// LookAtTasks processes the log's records of tasks.
func (c *core) LookAtTasks() { c.tasks.Look(c.Space) }

// PerformTasks starts the tasks that are due.
func (c *core) PerformTasks() { c.tasks.Perform() }

// TasksUndone reports transactions that were undone.
func (c *core) TasksUndone(txs []uint64) { c.tasks.Undone(txs) }

// TasksPending reports whether there are tasks.
func (c *core) TasksPending() bool { return c.tasks.Pending() }

// TasksAt returns when to check the tasks next, 0 for never.
func (c *core) TasksAt() time.Duration { return c.tasks.Next() }

// HoldsTasks reports whether a document holds the tasks of an action.
func (c *core) HoldsTasks(doc string) bool { return c.Program().HoldsTasks(doc) }
