package test

import (
	"slices"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/telemetry"
)

// One flight's trace runs from the send through both spaces.
func TestTrace_OneFlightIsOneTrace(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	d := deploy(t, settle.Config{Programs: settle.Always(relay()), Tracer: provider.Tracer(telemetry.Scope)})
	if _, err := d.Client().Call(testContext(t), flight(1, "here", "there")); err != nil {
		t.Fatal(err)
	}
	eventually(t, d.Client(), "there", "arrived", 1)
	if err := d.StopWorkers(testContext(t)); err != nil { // every span has ended then
		t.Fatal(err)
	}
	ended := func(name string) bool {
		return slices.ContainsFunc(exporter.GetSpans(), func(s tracetest.SpanStub) bool { return s.Name == name })
	}
	until(t, func() bool { return ended("release arrive") }) // the coordinator continues
	spans := exporter.GetSpans()
	send := find(t, spans, "send depart")
	trace := slices.DeleteFunc(slices.Clone(spans), func(s tracetest.SpanStub) bool {
		return s.SpanContext.TraceID() != send.SpanContext.TraceID()
	})
	depart, arrive := find(t, trace, "handle depart"), find(t, trace, "handle arrive")
	release := find(t, trace, "release arrive")
	for _, link := range []struct {
		what          string
		child, parent tracetest.SpanStub
	}{
		{"the departure is handled under its send", depart, send},
		{"the commit is under the departure", find(t, trace, "commit here"), depart},
		{"the release is under the departure", release, depart},
		{"the arrival is handled under its release", arrive, release},
		{"the other commit is under the arrival", find(t, trace, "commit there"), arrive},
	} {
		if link.child.Parent.SpanID() != link.parent.SpanContext.SpanID() {
			t.Errorf("%s: its parent is %s", link.what, link.child.Parent.SpanID())
		}
	}
	passes := 0
	for _, s := range trace {
		if s.Name == "settle pass" {
			passes++
		}
	}
	if passes != 2 {
		t.Errorf("%d settle passes in the trace, want one in each space", passes)
	}
}

func find(t *testing.T, spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q among %d", name, len(spans))
	return tracetest.SpanStub{}
}
