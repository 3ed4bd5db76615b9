package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/model"
)

// Reasons why the gateway refuses a request, as values of the metric.
const (
	refusedHost   = "host"
	refusedOrigin = "origin"
	refusedToken  = "token"
	refusedRight  = "right"
	refusedLimit  = "limit"
)

// observer records the spans and metrics of a gateway. Its zero value records none.
type observer struct {
	tracer trace.Tracer
	// took and refused are nil without a meter.
	took    *meters.Distribution
	refused *meters.Counts
}

func newObserver(cfg *Config) (o observer, err error) {
	o.tracer = cfg.Tracer
	if cfg.Meter == nil {
		return o, nil
	}
	set := meters.NewSet(cfg.Meter, meters.Gateway)
	o.took, o.refused = set.Distribution(meters.GatewayDuration), set.Counts(meters.GatewayRefusals)
	return o, set.Err()
}

// Attributes of HTTP.
const (
	httpMethod = attribute.Key("http.request.method")
	httpRoute  = attribute.Key("http.route")
	httpStatus = attribute.Key("http.response.status_code")
)

// route observes the requests of a route, which is a pattern of http.ServeMux. Their trace begins in the client if that sends its
// context.
func (o *observer) route(pattern string, next http.HandlerFunc) http.HandlerFunc {
	if o.tracer == nil && o.took == nil {
		return next
	}
	method, path, _ := strings.Cut(pattern, " ")
	about := []attribute.KeyValue{httpMethod.String(method), httpRoute.String(path)}
	return func(w http.ResponseWriter, r *http.Request) {
		began, answer := time.Now(), &answered{ResponseWriter: w, status: http.StatusOK}
		ctx := r.Context()
		if o.tracer != nil {
			ctx = telemetry.Context(ctx, traceOf(r.Header))
			var span trace.Span
			ctx, span = o.tracer.Start(ctx, pattern, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(append(about[:2:2],
				telemetry.Space.String(r.PathValue("space")), telemetry.Stream.String(r.PathValue("stream")), telemetry.Document.String(r.PathValue("document")))...))
			defer func() {
				span.SetAttributes(httpStatus.Int(answer.status))
				if answer.status >= http.StatusInternalServerError {
					telemetry.Fail(span, strconv.Itoa(answer.status), http.StatusText(answer.status))
				}
				span.End()
			}()
			r = r.WithContext(ctx)
		}
		next(answer, r)
		o.took.RecordWith(ctx, time.Since(began).Seconds(), append(about[:2:2], httpStatus.Int(answer.status))...)
	}
}

// maxHeader bounds the headers of a trace that are believed.
const maxHeader = 512

// traceOf returns the trace context that a client has sent.
func traceOf(h http.Header) (t model.Trace) {
	for name, to := range map[string]*string{"Traceparent": &t.Parent, "Tracestate": &t.State, "Baggage": &t.Baggage} { // any order: each has its own
		if v := h.Get(name); len(v) <= maxHeader {
			*to = v
		}
	}
	return t
}

// answered remembers the status of an answer.
type answered struct {
	http.ResponseWriter
	status int
}

// WriteHeader records the status.
func (a *answered) WriteHeader(code int) {
	a.status = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
