// Package recent keeps the newest traces of a process in memory, for a program that shows them without a collector.
//
//	store := recent.New(recent.Limits{})
//	tracer := store.Tracer(version) // for settle.Config.Tracer
//
// [Store.List] returns the newest traces, each as a [Summary], and [Store.Get] one of them as a tree of spans, with the links from it to other
// traces. [Trace.Text] prints a tree with durations, [Trace.Shape] without what differs from run to run, for tests. [Store.Handler] serves
// both over HTTP. What is returned belongs to the caller, except that attributes are shared and must not be changed.
//
// A store is bounded by its Limits; texts of spans are cut off after 1,024 bytes. A span is kept when it ends, so that the trace of
// something in progress has gaps, which close later.
package recent

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
)

// Limits bound what a Store keeps. Zero fields have defaults.
type Limits struct {
	// Traces is how many traces are kept; default 500. The one that has had no new span for longest goes first.
	Traces int
	// Spans is how many spans of one trace are kept, and All of all traces; default 500 and 20,000.
	Spans, All int
}

// maxText bounds the texts of a span, in bytes.
const maxText = 1024

// Store has the newest traces. It is safe for concurrent use.
type Store struct {
	limits   Limits
	provider *sdktrace.TracerProvider

	mu     sync.Mutex
	traces map[trace.TraceID]*kept
	clock  uint64 // counts spans: the use of a trace is its newest one
	all    int
}

// kept are the spans of one trace that have ended.
type kept struct {
	spans   []*Span
	dropped int
	used    uint64
}

// Span is a span that has ended.
type Span struct {
	ID     trace.SpanID
	Parent trace.SpanID // zero for the first span of a trace
	Name   string
	Kind   trace.SpanKind
	Began  time.Time
	Took   time.Duration
	// Error is why the span has failed, "" if it has not. ErrorType is its class.
	Error      string
	ErrorType  string
	Attributes []attribute.KeyValue
	Events     []Event
	// Links are spans, of this trace or of others, that have caused this one besides its parent.
	Links []Link
	// Children are the spans that have this one as their parent, the earliest first.
	Children []*Span
}

// Event is a point in time of a span.
type Event struct {
	Name       string
	At         time.Time
	Attributes []attribute.KeyValue
}

// Link names another span.
type Link struct {
	Trace trace.TraceID
	Span  trace.SpanID
}

// Attribute returns the value of an attribute as text, "" if the span does not have it.
func (s *Span) Attribute(key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// Summary describes a trace.
type Summary struct {
	ID trace.TraceID
	// Name is that of its first span.
	Name  string
	Began time.Time
	// Took is from its first span's begin to the last end.
	Took time.Duration
	// Spans is how many are kept, Dropped how many are not because the trace has too many, and Failed how many have failed.
	Spans, Dropped, Failed int
	// Spaces are those in which it has spans, sorted.
	Spaces []string
}

// Trace is a trace as a forest: a span whose parent is not known, because it has not ended or belongs to another process, is a root.
type Trace struct {
	Summary
	Roots []*Span
}

// New returns an empty store.
func New(l Limits) *Store {
	l.Traces, l.Spans, l.All = cmp.Or(l.Traces, 500), cmp.Or(l.Spans, 500), cmp.Or(l.All, 20_000)
	s := &Store{limits: l, traces: map[trace.TraceID]*kept{}}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxText
	s.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(processor{s}), sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithRawSpanLimits(limits))
	return s
}

// Tracer returns a tracer whose spans the store keeps.
func (s *Store) Tracer(version string) trace.Tracer {
	return s.provider.Tracer(telemetry.Scope, trace.WithInstrumentationVersion(version))
}

// List returns the traces with the newest spans, newest first, at most n.
func (s *Store) List(n int) []Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]trace.TraceID, 0, len(s.traces))
	for id := range s.traces { // any order: sorted below
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b trace.TraceID) int { return cmp.Compare(s.traces[b].used, s.traces[a].used) })
	ids = ids[:min(len(ids), max(n, 0))]
	list := make([]Summary, len(ids))
	for i, id := range ids {
		list[i] = s.traces[id].summary(id)
	}
	return list
}

// Get returns a trace; false if it is not kept.
func (s *Store) Get(id trace.TraceID) (*Trace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.traces[id]
	if k == nil {
		return nil, false
	}
	t := &Trace{Summary: k.summary(id)}
	by := map[trace.SpanID]*Span{}
	own := make([]*Span, len(k.spans))
	for i, span := range k.spans {
		c := *span
		own[i], by[c.ID] = &c, &c
	}
	slices.SortStableFunc(own, func(a, b *Span) int { return a.Began.Compare(b.Began) })
	for _, span := range own {
		if p := by[span.Parent]; p != nil && p != span {
			p.Children = append(p.Children, span)
		} else {
			t.Roots = append(t.Roots, span)
		}
	}
	return t, true
}

func (k *kept) summary(id trace.TraceID) Summary {
	s := Summary{ID: id, Spans: len(k.spans), Dropped: k.dropped}
	var end time.Time
	for _, span := range k.spans {
		if s.Began.IsZero() || span.Began.Before(s.Began) {
			s.Began, s.Name = span.Began, span.Name
		}
		if e := span.Began.Add(span.Took); e.After(end) {
			end = e
		}
		if span.Error != "" {
			s.Failed++
		}
		if in := span.Attribute(telemetry.Space); in != "" && !slices.Contains(s.Spaces, in) {
			s.Spaces = append(s.Spaces, in)
		}
	}
	slices.Sort(s.Spaces)
	s.Took = end.Sub(s.Began)
	return s
}

// add keeps a span.
func (s *Store) add(id trace.TraceID, span *Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.traces[id]
	if k == nil {
		k = &kept{}
		s.traces[id] = k
	}
	s.clock++
	k.used = s.clock
	if len(k.spans) == s.limits.Spans {
		k.dropped++
		return
	}
	k.spans = append(k.spans, span)
	s.all++
	for len(s.traces) > s.limits.Traces || s.all > s.limits.All && len(s.traces) > 1 {
		s.dropOldest()
	}
}

// dropOldest drops the trace that has had no new span for longest. s.mu is held.
func (s *Store) dropOldest() {
	var oldest trace.TraceID
	least := s.clock + 1
	for id, k := range s.traces { // any order: a minimum
		if k.used < least {
			oldest, least = id, k.used
		}
	}
	s.all -= len(s.traces[oldest].spans)
	delete(s.traces, oldest)
}

// processor passes the spans that end to a store.
type processor struct{ to *Store }

// OnStart is for sdktrace.SpanProcessor.
func (processor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd keeps a span.
func (p processor) OnEnd(o sdktrace.ReadOnlySpan) {
	span := &Span{
		ID: o.SpanContext().SpanID(), Parent: o.Parent().SpanID(), Name: o.Name(), Kind: o.SpanKind(),
		Began: o.StartTime(), Took: o.EndTime().Sub(o.StartTime()), Error: cut(o.Status().Description), Attributes: o.Attributes(),
	}
	span.ErrorType = span.Attribute(telemetry.ErrorKind)
	for _, e := range o.Events() {
		span.Events = append(span.Events, Event{e.Name, e.Time, e.Attributes})
	}
	for _, l := range o.Links() {
		span.Links = append(span.Links, Link{l.SpanContext.TraceID(), l.SpanContext.SpanID()})
	}
	p.to.add(o.SpanContext().TraceID(), span)
}

// cut returns the first bytes of a text.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// Shutdown is for sdktrace.SpanProcessor.
func (processor) Shutdown(context.Context) error { return nil }

// ForceFlush is for sdktrace.SpanProcessor.
func (processor) ForceFlush(context.Context) error { return nil }
