package export

import (
	"encoding/binary"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

// A tracer that the standard variables ask for says before there is a span what its sampler decides, for each standard sampler and parent. The span of an event that
// begins a trace has the id that follows from the event. Not parallel, because environment variables belong to the process.
func TestHead_SaysBeforeThereIsASpanWhatTheSamplerDecides(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	for _, c := range []struct {
		sampler, arg string
		none         bool // another sampler than a standard one
	}{
		{sampler: ""},
		{sampler: "always_on"},
		{sampler: "always_off"},
		{sampler: "traceidratio", arg: "0.5"},
		{sampler: "traceidratio"},
		{sampler: "parentbased_always_on"},
		{sampler: "parentbased_always_off"},
		{sampler: "parentbased_traceidratio", arg: "0.5"},
		{sampler: "parentbased_traceidratio", arg: "0"},
		{sampler: " ParentBased_TraceIDRatio ", arg: " 1 "},
		{sampler: "parentbased_traceidratio", arg: "half", none: true},
		{sampler: "traceidratio", arg: "1.5", none: true},
		{sampler: "traceidratio", arg: "NaN", none: true},
		{sampler: "parentbased_jaeger_remote", none: true},
	} {
		t.Run(c.sampler+c.arg, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
			t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.arg)
			tracer, flush, err := Setup(t.Context(), "settle-test")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = flush(t.Context()) }() // there is no collector
			h, ok := tracer.(telemetry.Head)
			if ok == c.none {
				t.Fatalf("the tracer says what the sampler decides: %v", ok)
			}
			if c.none {
				return
			}
			for n := range 64 {
				o := telemetry.OriginOf("s", "put", fmt.Sprint("e", n))
				agrees(t, h, trace.SpanContext{}, o)
				for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled} {
					var id trace.TraceID
					binary.BigEndian.PutUint64(id[:], 1)
					binary.BigEndian.PutUint64(id[8:], uint64(n)<<58)
					agrees(t, h, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: flags, Remote: true}), o)
				}
			}
		})
	}
}

// agrees compares what a tracer says with the span that it starts.
func agrees(t *testing.T, h telemetry.Head, parent trace.SpanContext, o telemetry.Origin) {
	t.Helper()
	ctx, id := o.Begin(t.Context()), o.ID()
	if parent.IsValid() {
		ctx, id = trace.ContextWithRemoteSpanContext(t.Context(), parent), parent.TraceID()
	}
	_, span := h.Start(ctx, "handle put")
	defer span.End()
	if left := h.LeavesOut(parent, id); left == span.IsRecording() {
		t.Errorf("trace %s, parent %v sampled %v: left out is %v, and the span is recorded: %v", id, parent.IsValid(), parent.IsSampled(), left, span.IsRecording())
	}
	if got := span.SpanContext().TraceID(); got != id {
		t.Errorf("the span is in the trace %s and should be in %s", got, id)
	}
	if !parent.IsValid() {
		if t2 := o.LeftOut(model.Trace{}); !telemetry.LeftOut(t2) || !telemetry.Names(t2) || t2.Parent[3:35] != id.String() {
			t.Errorf("the context of what is left out is %q", t2.Parent)
		}
	}
}
