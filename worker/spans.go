package worker

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/host"
)

// spans turns the core's callbacks into spans. Without a tracer every method is a branch. All methods are called by the loop of the
// space, except the functions that end the span of a commit or of an attempt at a task.
//
//	send ----> lane              (the wait in the lane, of an event of a client or of another space; if the sender is
//	  |                           not traced, the trace begins with it, and handle is its child)
//	  '------> handle ----> pass ----> run (a run that another one pulls is its child)
//	             |--------> commit             (a group commit is a child of its first
//	             |                              handling and links to the others)
//	             |--------> release ----> handle (in the other space) ...
//	             '--------> attempt ----> handle (of its end) ...
//
// A pass, and the commit with its results, belong to what has caused the pass first, and link to the rest: the handling of an event,
// the commit of another space whose document has changed, a read. docs/traces.md describes the whole.
//
// The sampler is asked first, with the name and the time alone. An event that it leaves out has no other span, so that it costs a question: where
// there are many events, nearly all are left out. The spans of a pass and a commit belong to an event that is recorded, if there is one, and have no
// links to others. A tracer that knows the answer before there is a span is not asked for one, and nothing about an event that is left out is made or stored
// unless something needs it: its trace follows from the event (telemetry.Origin).
type spans struct {
	tracer trace.Tracer
	head   telemetry.Head // the same, nil if it only knows with a span
	space  string
	// stored returns when an event of the lane was stored, if that is known.
	stored func(lane uint64) (time.Time, bool)
	names  spanNames
	// recordsAll is set once a span was recorded whose context is marked as not sampled: the sampler records what it does not sample,
	// and the mark does not show what it has left out.
	recordsAll bool

	since [1]trace.SpanStartOption // of the span of a wait in the lane: every event has one, if only to ask the sampler

	handle    trace.Span // of the running attempt, nil if there is none, or it is left out
	handleCtx context.Context
	handling  model.Trace // that of handleCtx
	// early is the running event if it was left out before there was a span: handleCtx and handling are made when something needs them.
	early     *model.Event
	leftEarly leftEarly
	lane      laneWait
	pass      passSpan
	runs      runSpans
	tasks     taskTraces
	// before is the newest pass, which a pass without a cause of its own continues: nodes that were held back run then.
	before model.Trace
}

// newSpans returns the spans of a space; tracer may be nil.
func newSpans(tracer trace.Tracer, of *host.Access) spans {
	head, _ := tracer.(telemetry.Head)
	return spans{tracer: tracer, head: head, space: of.Space, stored: of.Stored}
}

// handleStart begins the span of an attempt. An event that has waited for a time begins a trace of its own, with a link to what has
// sent it: a trace that goes on after hours is not complete when its sampler decides, and that of a job would never end.
func (s *spans) handleStart(ev *model.Event, handled bool) model.Trace {
	if s.leavesOut(ev) {
		return s.leaveOutEarly(ev)
	}
	ctx := telemetry.Context(context.Background(), ev.Trace)
	options := consumer
	if ev.NotBefore > 0 {
		options = append(options[:1:1], trace.WithNewRoot(), trace.WithLinks(telemetry.Links([]model.Trace{ev.Trace})...))
		if s.head != nil {
			ctx, options[1] = s.origin(ev).Begin(ctx), trace.WithSpanKind(trace.SpanKindConsumer)
		}
	} else {
		if s.head != nil && begins(ev) {
			ctx = s.origin(ev).Begin(ctx)
		}
		ctx = s.waited(ctx, ev, handled)
		if s.lane.unsampled && ev.Lane == s.lane.seq {
			return s.leaveOut(ctx, ev.Trace)
		}
	}
	ctx, span := s.tracer.Start(ctx, s.names.of(ev.Stream, handled).handle, options...)
	if !span.IsRecording() {
		if ev.NotBefore > 0 {
			return s.leaveOut(ctx, model.Trace{})
		}
		return s.leaveOut(ctx, ev.Trace)
	}
	span.SetAttributes(
		telemetry.System.String("nats"), telemetry.Operation.String("handle"), telemetry.Type.String("process"), telemetry.Template.String(telemetry.LaneTemplate),
		telemetry.Space.String(s.space), telemetry.Stream.String(ev.Stream), telemetry.MessageID.String(ev.ID))
	s.handle, s.handleCtx, s.handling = span, ctx, telemetry.Of(ctx)
	s.recordsAll = s.recordsAll || telemetry.LeftOut(s.handling)
	s.causedBy(s.handling)
	return s.handling
}

// leaveOut is the rest of handleStart for an event that the sampler has left out: what it causes has the context t of its sender, that of
// ctx if it has none, and no spans.
func (s *spans) leaveOut(ctx context.Context, t model.Trace) model.Trace {
	if t.Parent == "" {
		t = telemetry.Of(ctx)
	}
	s.handle, s.handleCtx, s.handling = nil, ctx, t
	s.causedBy(t)
	return t
}

// spanNames are the names of the spans of streams. Its zero value has none.
type spanNames struct {
	known map[string]streamNames
}

// streamNames are the names of the spans of one stream.
type streamNames struct{ lane, handle string }

// maxSpanNames bounds them: a space may run many programs one after another.
const maxSpanNames = 256

// of returns the names for a stream. One that the program does not handle is in no name: any client may have chosen it.
func (n *spanNames) of(stream string, handled bool) streamNames {
	if !handled {
		return streamNames{"lane", "handle"}
	}
	of, known := n.known[stream]
	if known {
		return of
	}
	if n.known == nil || len(n.known) == maxSpanNames {
		n.known = map[string]streamNames{}
	}
	of = streamNames{"lane " + stream, "handle " + stream}
	n.known[stream] = of
	return of
}

// consumer are the options of the span of an attempt.
var consumer = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}

// laneWait is the event of the lane whose wait has a span.
type laneWait struct {
	seq uint64
	// under is the context of that span if its trace begins with it, because its sender is not traced; nil otherwise.
	under context.Context
	// unsampled is set if the sampler has left that span out, and with it the trace.
	unsampled bool
}

// waited records the wait of an event in its lane, at the first attempt, and returns the context of the attempts.
func (s *spans) waited(ctx context.Context, ev *model.Event, handled bool) context.Context {
	if ev.Lane == 0 {
		return ctx
	}
	if ev.Lane != s.lane.seq {
		s.lane = laneWait{seq: ev.Lane}
		under := s.laneSpan(ctx, ev, handled)
		if ev.Trace.Parent == "" {
			s.lane.under = under
		}
	}
	if s.lane.under != nil {
		return s.lane.under
	}
	return ctx
}

// laneSpan records the wait of an event in its lane, and returns the context of its span, nil if it is not known how long it was.
func (s *spans) laneSpan(ctx context.Context, ev *model.Event, handled bool) context.Context {
	at, known := s.stored(ev.Lane)
	now := time.Now()
	if !known || at.After(now) {
		return nil
	}
	s.since[0] = trace.WithTimestamp(at)
	ctx, span := s.tracer.Start(ctx, s.names.of(ev.Stream, handled).lane, s.since[:]...)
	if s.lane.unsampled = !span.IsRecording(); s.lane.unsampled {
		return ctx
	}
	span.SetAttributes(
		telemetry.System.String("nats"), telemetry.Template.String(telemetry.LaneTemplate),
		telemetry.Space.String(s.space), telemetry.Stream.String(ev.Stream), telemetry.MessageID.String(ev.ID))
	span.End(trace.WithTimestamp(now))
	return ctx
}

func (s *spans) handleEnd(i *space.HandleInfo) {
	if s.handle == nil {
		s.handleCtx, s.handling, s.early = nil, model.Trace{}, nil
		return
	}
	switch {
	case i.Receipt != nil && i.Receipt.Outcome.Lost():
		telemetry.Fail(s.handle, string(i.Receipt.Outcome), i.Receipt.Error)
		fallthrough
	case i.Receipt != nil:
		s.handle.SetAttributes(telemetry.Outcome.String(string(i.Receipt.Outcome)))
		if i.Receipt.Attempts > 1 {
			s.handle.SetAttributes(telemetry.Attempt.Int(i.Receipt.Attempts))
		}
	case i.Err != nil:
		s.handle.SetAttributes(telemetry.Outcome.String("retried"))
		telemetry.Fail(s.handle, "retried", i.Err.Error())
	default:
		s.handle.SetAttributes(telemetry.Outcome.String("parked"))
		if i.Waits != "" {
			s.handle.SetAttributes(telemetry.Waits.String(i.Waits))
		}
	}
	for n := range i.Notes {
		note := &i.Notes[n]
		s.handle.AddEvent(string(note.Kind), trace.WithAttributes(telemetry.Step.String(note.Name)))
	}
	s.handle.End()
	s.handle, s.handleCtx, s.handling = nil, nil, model.Trace{}
}

// context is ctx with the span of the code that is running.
func (s *spans) context(ctx context.Context) context.Context {
	if now := s.now(); now != nil {
		return trace.ContextWithSpan(ctx, trace.SpanFromContext(now))
	}
	return ctx
}

// now returns the context of the innermost span of the loop, nil if there is none.
func (s *spans) now() context.Context {
	s.needEarly()
	switch {
	case s.runs.inner() != nil:
		return s.runs.inner()
	case s.handleCtx != nil:
		return s.handleCtx
	case s.pass.left && s.pass.ctx == nil:
		s.pass.ctx = telemetry.Context(context.Background(), s.pass.causes[0])
	}
	return s.pass.ctx
}

// passSpan is the span of a pass. It begins with the first run, when it is known what has caused the pass.
type passSpan struct {
	began  time.Time
	causes []model.Trace
	// left is set if the only cause so far is an event that the sampler has left out: the pass has no span.
	left   bool
	linked int // how many of them the span has: the first is its parent
	span   trace.Span
	ctx    context.Context
	did    bool // anything
	info   space.PassInfo
}

// causedBy records a cause of the present pass, or of the next one. What the sampler has left out counts if there is no other cause.
func (s *spans) causedBy(t model.Trace) {
	p := &s.pass
	switch left := s.leftOut(t); {
	case t.Parent == "":
	case left:
		if len(p.causes) == 0 {
			p.causes, p.left = append(p.causes, t), true
		}
	case p.left:
		p.causes, p.left, p.ctx = append(p.causes[:0], t), false, nil
	case len(p.causes) <= telemetry.MaxLinks && !slices.Contains(p.causes, t):
		p.causes = append(p.causes, t)
	}
}

// woken records what makes the space work besides events.
func (s *spans) woken(by model.Trace) {
	if s.tracer != nil {
		s.causedBy(by)
	}
}

func (s *spans) beginPass(at time.Time) { s.pass.began = at }

// passEnd is called by the core if the pass did anything.
func (s *spans) passEnd(i space.PassInfo) { s.pass.info, s.pass.did = i, true }

// begin begins the span of the present pass.
func (s *spans) begin() {
	p := &s.pass
	if len(p.causes) == 0 && s.leftOut(s.before) {
		s.causedBy(s.before)
	}
	if p.span != nil || p.left {
		return
	}
	options := []trace.SpanStartOption{trace.WithTimestamp(p.began)}
	ctx := context.Background()
	if len(p.causes) > 0 {
		ctx = telemetry.Context(ctx, p.causes[0])
		options = append(options, trace.WithLinks(telemetry.Links(p.causes[1:])...))
	} else if l, ok := telemetry.Link(s.before); ok {
		options = append(options, trace.WithNewRoot(), trace.WithLinks(l))
	}
	p.ctx, p.span = s.tracer.Start(ctx, "pass", options...)
	p.linked = len(p.causes)
	if p.span.IsRecording() {
		p.span.SetAttributes(telemetry.Operation.String("settle"), telemetry.Space.String(s.space))
	}
}

// endPass ends the span of a pass that did anything, which it reports, and returns the context of the span.
func (s *spans) endPass() (by model.Trace, did bool) {
	p := &s.pass
	did = p.did
	if s.tracer == nil {
		p.did = false
		return by, did
	}
	s.runs.drop()
	if p.did {
		s.begin()
	}
	switch {
	case p.left && p.did:
		s.before = p.causes[0]
		by = s.before
	case p.span != nil:
		for _, l := range telemetry.Links(p.causes[max(p.linked, min(1, len(p.causes))):]) {
			p.span.AddLink(l)
		}
		p.span.SetAttributes(telemetry.Runs.Int(p.info.Runs), telemetry.Events.Int(p.info.Events))
		if s.runs.left > 0 {
			p.span.SetAttributes(telemetry.RunsOut.Int(s.runs.left))
		}
		p.span.End()
		s.before = telemetry.Of(p.ctx)
		by = s.before
	}
	s.runs.made, s.runs.left = 0, 0
	*p = passSpan{causes: p.causes[:0]}
	return by, did
}

// maxRunSpans is how many runs of one pass have spans.
const maxRunSpans = 32

// runSpans are the spans of runs.
type runSpans struct {
	open       []runSpan // the innermost last
	made, left int       // in this pass: with a span, and without
}

// runSpan is a run that has not ended. ctx is nil if it has no span.
type runSpan struct {
	node string
	ctx  context.Context
}

// inner returns the context of the innermost run with a span, nil if there is none.
func (r *runSpans) inner() context.Context {
	for i := len(r.open) - 1; i >= 0; i-- {
		if r.open[i].ctx != nil {
			return r.open[i].ctx
		}
	}
	return nil
}

// drop forgets runs that have not returned.
func (r *runSpans) drop() {
	for _, o := range r.open {
		if o.ctx != nil {
			trace.SpanFromContext(o.ctx).End()
		}
	}
	r.open = r.open[:0]
}

// runStart begins the span of a run. Its name has no node: a program may have a node for each of its data.
func (s *spans) runStart(node string, kind space.NodeKind) {
	if s.tracer == nil {
		return
	}
	s.begin()
	if s.pass.left || s.runs.made == maxRunSpans || !s.pass.span.IsRecording() {
		s.runs.left++
		s.runs.open = append(s.runs.open, runSpan{node: node})
		return
	}
	s.runs.made++
	ctx, _ := s.tracer.Start(s.now(), "run "+kind.String(), trace.WithAttributes(
		telemetry.Space.String(s.space), telemetry.Node.String(node), telemetry.NodeKind.String(kind.String())))
	s.runs.open = append(s.runs.open, runSpan{node, ctx})
}

func (s *spans) runEnd(i *space.RunInfo) {
	if s.tracer == nil {
		return
	}
	at := len(s.runs.open) - 1
	for at >= 0 && s.runs.open[at].node != i.Node {
		at-- // a run that did not return
	}
	if at < 0 {
		return
	}
	ctx := s.runs.open[at].ctx
	s.runs.open = s.runs.open[:at]
	if ctx == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(telemetry.Changed.Bool(i.Changed))
	if i.Waits != "" {
		span.SetAttributes(telemetry.Waits.String(i.Waits))
	}
	if i.Err != nil {
		telemetry.Fail(span, "run", i.Err.Error())
	}
	span.End()
}

// beginCommit begins the span of an append. Call end with the result. under is the parent of a commit without a cause.
func (s *spans) beginCommit(c *model.Commit, under model.Trace) (t model.Trace, end func(seq uint64, err error)) {
	if s.tracer == nil {
		return model.Trace{}, unrecorded
	}
	parent, links := s.causes(c)
	if under.Parent != "" && (parent.Parent == "" || !s.leftOut(under)) {
		if l, ok := telemetry.Link(parent); ok && !s.leftOut(parent) {
			links = append(links, l)
		}
		parent = under
	}
	if parent.Parent == "" {
		parent = s.before
	}
	if s.leftOut(parent) {
		return parent, unrecorded
	}
	ctx, span := s.tracer.Start(telemetry.Context(context.Background(), parent), "commit", trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...))
	if !span.IsRecording() {
		return telemetry.Of(ctx), unrecorded
	}
	span.SetAttributes(
		telemetry.System.String("nats"), telemetry.Operation.String("commit"), telemetry.Type.String("send"), telemetry.Template.String(telemetry.LogTemplate),
		telemetry.Space.String(s.space), telemetry.Batch.Int(len(c.Txs)))
	if c.Takeover {
		span.SetAttributes(telemetry.Takeover.Bool(true))
	}
	return telemetry.Of(ctx), func(seq uint64, err error) {
		span.SetAttributes(telemetry.Sequence.Int64(int64(seq)))
		telemetry.End(span, err)
	}
}

// unrecorded ends no span.
func unrecorded(uint64, error) {}

// leftOut reports whether t is the context of something that the sampler has left out.
func (s *spans) leftOut(t model.Trace) bool { return !s.recordsAll && telemetry.LeftOut(t) }

// causes returns the handlings in a commit: the first that is not left out is the parent of its span, or the first if all are.
func (s *spans) causes(c *model.Commit) (parent model.Trace, links []trace.Link) {
	for i := range c.Txs {
		t := c.Txs[i].Trace
		if t.Parent == "" && parent.Parent == "" {
			t = s.leftOutIn(&c.Txs[i])
		}
		switch left := s.leftOut(t); {
		case t.Parent == "":
		case parent.Parent == "", s.leftOut(parent) && !left:
			parent = t
		case left:
		case len(links) < telemetry.MaxLinks:
			if l, ok := telemetry.Link(t); ok {
				links = append(links, l)
			}
		}
	}
	return parent, links
}

// taskTraces are the handlings that have started tasks lately. What another worker has started is not known here: attempts at it
// begin traces of their own.
type taskTraces struct {
	of    map[taskName]model.Trace
	order []taskName
}

type taskName struct{ action, key string }

// maxTaskTraces bounds them.
const maxTaskTraces = 1024

// taskStarted records that the running code has started a task.
func (s *spans) taskStarted(action, key string) {
	s.needEarly()
	by := s.handling
	if s.handleCtx == nil || s.runs.inner() != nil {
		ctx := s.now()
		if ctx == nil {
			return
		}
		by = telemetry.Of(ctx)
	}
	at := taskName{action, key}
	if s.tasks.of == nil {
		s.tasks.of = map[taskName]model.Trace{}
	}
	if _, known := s.tasks.of[at]; !known {
		s.tasks.order = append(s.tasks.order, at)
	}
	s.tasks.of[at] = by
	if len(s.tasks.order) > maxTaskTraces {
		delete(s.tasks.of, s.tasks.order[0])
		s.tasks.order = s.tasks.order[1:]
	}
}
