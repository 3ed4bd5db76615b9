package export

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// head implements telemetry.Head for a standard sampler.
type head struct {
	trace.Tracer
	// root decides about traces that begin, and about all if the sampler is not based on parents.
	root        sdktrace.Sampler
	parentBased bool
}

// withHead returns a tracer that is a telemetry.Head, for the sampler that OTEL_TRACES_SAMPLER names. The provider has made the same sampler from it. If the SDK
// does not know its name or its argument, it is t.
func withHead(t trace.Tracer) trace.Tracer {
	name, based := strings.CutPrefix(cmp.Or(variable("OTEL_TRACES_SAMPLER"), "parentbased_always_on"), "parentbased_")
	h := head{Tracer: t, parentBased: based}
	switch name {
	case "always_on":
		h.root = sdktrace.AlwaysSample()
	case "always_off":
		h.root = sdktrace.NeverSample()
	case "traceidratio":
		ratio, err := strconv.ParseFloat(cmp.Or(variable("OTEL_TRACES_SAMPLER_ARG"), "1"), 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return t
		}
		h.root = sdktrace.TraceIDRatioBased(ratio)
	default:
		return t
	}
	return h
}

// variable returns a variable as the SDK reads it.
func variable(name string) string { return strings.ToLower(strings.TrimSpace(os.Getenv(name))) }

// LeavesOut implements telemetry.Head.
func (h head) LeavesOut(parent trace.SpanContext, id trace.TraceID) bool {
	if h.parentBased && parent.IsValid() {
		return !parent.IsSampled()
	}
	return h.root.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id}).Decision == sdktrace.Drop
}
