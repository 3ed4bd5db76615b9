// Package telemetry carries trace contexts between headers, commits and spans, and has the names of spans' attributes. It links
// the OpenTelemetry API alone; internal/telemetry/export sets up exporters for the commands.
//
// Attribute keys follow the semantic conventions, of which those of messaging are still in
// development; they are all in this package so that a change of theirs is a change
// of one file.
package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"runtime/debug"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/model"
)

// Scope is the instrumentation scope of all spans and metrics.
const Scope = "github.com/settlehq/settle"

// Attributes of the spans.
const (
	System    = attribute.Key("messaging.system")         // always "nats"
	Operation = attribute.Key("messaging.operation.name") // send, handle, commit, release, receive
	Type      = attribute.Key("messaging.operation.type") // send, process, receive
	Template  = attribute.Key("messaging.destination.template")
	MessageID = attribute.Key("messaging.message.id")
	Batch     = attribute.Key("messaging.batch.message_count")
	ErrorKind = attribute.Key("error.type")
	Space     = attribute.Key("settle.space")
	Target    = attribute.Key("settle.target")
	Stream    = attribute.Key("settle.stream")
	Document  = attribute.Key("settle.document")
	Node      = attribute.Key("settle.node")
	NodeKind  = attribute.Key("settle.node.kind") // computation, effect, materializer
	Changed   = attribute.Key("settle.run.changed")
	Waits     = attribute.Key("settle.waits_for")
	Outcome   = attribute.Key("settle.outcome")
	Attempt   = attribute.Key("settle.attempt")
	Sequence  = attribute.Key("settle.log.sequence")
	Takeover  = attribute.Key("settle.takeover")
	Runs      = attribute.Key("settle.pass.runs")
	RunsOut   = attribute.Key("settle.pass.runs.left_out") // runs without a span
	Events    = attribute.Key("settle.pass.events")
	Action    = attribute.Key("settle.action")
	Task      = attribute.Key("settle.task.key")
	Partition = attribute.Key("settle.partition")
	Worker    = attribute.Key("settle.worker")
	Documents = attribute.Key("settle.checkpoint.documents")
	Step      = attribute.Key("settle.step")
)

// Where messages are stored, as values of Template.
const (
	LaneTemplate = "settle.lane.{partition}.{space}.{stream}.{event}"
	SendTemplate = "settle.send.{partition}.{space}.{stream}.{event}"
	LogTemplate  = "settle.log.{partition}.{space}"
)

// MaxLinks limits the links of one span: the span of a large group links only its first members.
const MaxLinks = 64

// maxBaggage bounds the baggage that travels with an event, in bytes: it is stored with everything that the event causes.
const maxBaggage = 512

// Context is ctx with the remote span that t names as its parent, and the baggage that travels with it.
func Context(ctx context.Context, t model.Trace) context.Context {
	if t.Baggage != "" {
		if b, err := baggage.Parse(t.Baggage); err == nil {
			ctx = baggage.ContextWithBaggage(ctx, b)
		}
	}
	if of := spanContext(t); of.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, of)
	}
	return ctx
}

// Of returns the trace context of the span in ctx, and its baggage, as they travel in headers. Baggage of more than 512 bytes stays behind.
func Of(ctx context.Context) (t model.Trace) {
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		t.Parent = format(of)
		t.State = of.TraceState().String()
	}
	if b := baggage.FromContext(ctx); b.Len() > 0 {
		if t.Baggage = b.String(); len(t.Baggage) > maxBaggage {
			t.Baggage = ""
		}
	}
	return t
}

// The parts of a trace context of W3C: where they begin, and its size.
const size, trace0, span0, flags0 = 55, 3, 36, 53

// format returns a trace context of W3C, with one allocation: every event has one.
func format(of trace.SpanContext) string {
	b := [size]byte{0: '0', 1: '0', trace0 - 1: '-', span0 - 1: '-', flags0 - 1: '-'}
	id, span, flags := of.TraceID(), of.SpanID(), [1]byte{byte(of.TraceFlags() & trace.FlagsSampled)}
	hex.Encode(b[trace0:], id[:])
	hex.Encode(b[span0:], span[:])
	hex.Encode(b[flags0:], flags[:])
	return string(b[:])
}

// spanContext parses a trace context of W3C, version 0 or what a later version has in common with it. It is the zero value if that is
// invalid. The OpenTelemetry package that does this links net/http.
func spanContext(t model.Trace) (of trace.SpanContext) {
	p := t.Parent
	if len(p) < size || p[trace0-1] != '-' || p[span0-1] != '-' || p[flags0-1] != '-' {
		return of
	}
	var version, flags [1]byte
	_, err := hex.Decode(version[:], []byte(p[:2]))
	if err != nil || version[0] == 0xff || version[0] == 0 && len(p) != size || len(p) > size && p[size] != '-' {
		return of
	}
	id, err := trace.TraceIDFromHex(p[trace0 : span0-1])
	span, err2 := trace.SpanIDFromHex(p[span0 : flags0-1])
	_, err3 := hex.Decode(flags[:], []byte(p[flags0:size]))
	if err != nil || err2 != nil || err3 != nil {
		return of
	}
	state, _ := trace.ParseTraceState(t.State) // an invalid one is dropped
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]) & trace.FlagsSampled, TraceState: state, Remote: true,
	})
}

// LeftOut reports whether t names a span that its sampler has left out.
func LeftOut(t model.Trace) bool { return strings.HasSuffix(t.Parent, "-00") }

// Exemplar returns a context with the span of t, which an exemplar of a metric names if it is recorded.
func Exemplar(t model.Trace) context.Context {
	if !strings.HasSuffix(t.Parent, "-01") { // not sampled, or none: spare the work
		return context.Background()
	}
	return Context(context.Background(), model.Trace{Parent: t.Parent})
}

// Link points to the span that t names; ok is false if it names none.
func Link(t model.Trace) (link trace.Link, ok bool) {
	of := spanContext(t)
	return trace.Link{SpanContext: of}, of.IsValid()
}

// Links returns links to the spans that a list names, MaxLinks at most.
func Links(list []model.Trace) (links []trace.Link) {
	for _, t := range list {
		if l, ok := Link(t); ok && len(links) < MaxLinks {
			links = append(links, l)
		}
	}
	return links
}

// Fail marks a span as failed. kind is its error.type, which has few values; why is a text for people.
func Fail(span trace.Span, kind, why string) {
	span.SetAttributes(ErrorKind.String(kind))
	span.SetStatus(codes.Error, why)
}

// End ends a span with the result of what it stands for.
func End(span trace.Span, err error) {
	if err != nil {
		Fail(span, KindOf(err), err.Error())
	}
	span.End()
}

// kinds are the errors that have a value of error.type of their own.
var kinds = []struct {
	is   error
	kind string
}{
	{model.ErrRefused, "refused"},
	{model.ErrTooLarge, "too_large"},
	{model.ErrLaneFull, "lane_full"},
	{model.ErrForbidden, "forbidden"},
	{model.ErrRewound, "rewound"},
	{model.ErrStopped, "stopped"},
	{model.ErrNoResponder, "no_responder"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "cancelled"},
}

// KindOf returns the value of error.type for an error: "_OTHER" for one without a value of its own.
func KindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return k.kind
		}
	}
	return "_OTHER"
}

// Version returns the version of this module in the executable, "" if it is not known.
var Version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if info.Main.Path == Scope {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == Scope {
			return m.Version
		}
	}
	return ""
})
