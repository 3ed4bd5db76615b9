package worker

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// spans turns the core's callbacks into spans. Without a tracer every method is a
// branch.
//
//	send ----> handle ----> commit        (a group commit is a child of its first
//	             |  '-----> settle         handling and links to the others)
//	             '--------> release ----> handle (in the other space) ...
type spans struct {
	tracer trace.Tracer
	space  string

	handle    trace.Span // of the running attempt
	passStart time.Time
	passTrace model.Trace // first handling of the pass
	passEnded bool
	pass      space.PassInfo
}

// maxLinks limits the links of one span: the span of a large group links only its first members.
const maxLinks = 64

func (s *spans) handleStart(ev *model.Event) model.Trace {
	ctx, span := s.tracer.Start(telemetry.Context(context.Background(), ev.Trace), "handle "+ev.Stream,
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			telemetry.System.String("nats"), telemetry.Operation.String("handle"), telemetry.Type.String("process"),
			telemetry.Space.String(s.space), telemetry.Stream.String(ev.Stream), telemetry.MessageID.String(ev.ID)))
	s.handle = span
	t := telemetry.Of(ctx)
	if s.passTrace.Parent == "" {
		s.passTrace = t
	}
	return t
}

func (s *spans) handleEnd(i space.HandleInfo) {
	switch {
	case i.Receipt == nil:
		s.handle.SetAttributes(telemetry.Outcome.String("parked"))
	default:
		s.handle.SetAttributes(telemetry.Outcome.String(string(i.Receipt.Outcome)))
		if i.Receipt.Outcome.Lost() {
			s.handle.SetStatus(codes.Error, string(i.Receipt.Outcome))
		}
	}
	s.handle.End()
}

func (s *spans) beginPass() {
	if s.tracer != nil {
		s.passStart, s.passTrace, s.passEnded = time.Now(), model.Trace{}, false
	}
}

// passEnd is called by the core if the pass did anything.
func (s *spans) passEnd(i space.PassInfo) { s.pass, s.passEnded = i, true }

// endPass records the pass as a child of the first event that it handled.
func (s *spans) endPass() {
	if s.tracer == nil || !s.passEnded {
		return
	}
	_, span := s.tracer.Start(telemetry.Context(context.Background(), s.passTrace), "settle pass",
		trace.WithTimestamp(s.passStart),
		trace.WithAttributes(
			telemetry.Operation.String("settle"), telemetry.Space.String(s.space),
			telemetry.Runs.Int(s.pass.Runs), telemetry.Events.Int(s.pass.Events)))
	span.End()
}

// beginCommit begins the span of an append. Call end with the result.
func (s *spans) beginCommit(c *model.Commit) (t model.Trace, end func(seq uint64, err error)) {
	if s.tracer == nil {
		return model.Trace{}, func(uint64, error) {}
	}
	parent, links := causes(c)
	ctx, span := s.tracer.Start(telemetry.Context(context.Background(), parent), "commit "+s.space,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...),
		trace.WithAttributes(
			telemetry.System.String("nats"), telemetry.Operation.String("commit"), telemetry.Type.String("send"),
			telemetry.Template.String("settle.log.{partition}.{space}"),
			telemetry.Space.String(s.space), telemetry.Batch.Int(len(c.Txs))))
	return telemetry.Of(ctx), func(seq uint64, err error) {
		span.SetAttributes(telemetry.Sequence.Int64(int64(seq)))
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// causes returns the handlings in a commit: the first is the parent of its span.
func causes(c *model.Commit) (parent model.Trace, links []trace.Link) {
	for i := range c.Txs {
		t := c.Txs[i].Trace
		switch {
		case t.Parent == "":
		case parent.Parent == "":
			parent = t
		case len(links) < maxLinks:
			if l, ok := telemetry.Link(t); ok {
				links = append(links, l)
			}
		}
	}
	return parent, links
}
