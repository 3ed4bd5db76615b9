package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraces_TravelThroughContexts(t *testing.T) {
	for _, want := range []model.Trace{
		{}, {Parent: parent}, {Parent: parent, State: "v=1"}, {Parent: parent, State: "v=1", Baggage: "user=7"}, {Baggage: "user=7"},
	} {
		if got := telemetry.Of(telemetry.Context(t.Context(), want)); got != want {
			t.Errorf("%+v has become %+v", want, got)
		}
	}
}

// What is no trace context of W3C is none: it would be passed on to everything that an event causes. The library decides in the same way.
func TestTraces_InvalidOnesAreNone(t *testing.T) {
	for _, c := range []string{
		parent, strings.ToUpper(parent), parent[:54], parent + "0", parent + "-0", "01" + parent[2:], "01" + parent[2:] + "-more", "01" + parent[2:] + "more", "ff" + parent[2:], "zz" + parent[2:],
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "", "00",
	} {
		var want model.Trace
		of := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": c})
		if in := trace.SpanContextFromContext(of); in.IsValid() {
			back := propagation.MapCarrier{}
			propagation.TraceContext{}.Inject(of, back)
			want.Parent = back["traceparent"]
		}
		if got := telemetry.Of(telemetry.Context(t.Context(), model.Trace{Parent: c})); got != want {
			t.Errorf("%q is %+v, and %+v for the library", c, got, want)
		}
	}
}

// Baggage is stored with everything that an event causes: what is long stays behind.
func TestTraces_LongBaggageStaysBehind(t *testing.T) {
	for size, kept := range map[int]bool{512 - len("k="): true, 512: false} {
		m, err := baggage.NewMember("k", strings.Repeat("x", size))
		if err != nil {
			t.Fatal(err)
		}
		b, err := baggage.New(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := telemetry.Of(baggage.ContextWithBaggage(t.Context(), b)); (got.Baggage != "") != kept {
			t.Errorf("of %d bytes, %d are left", size, len(got.Baggage))
		}
	}
}

func TestLinks_AreBounded(t *testing.T) {
	list := []model.Trace{{}, {Parent: "no trace"}}
	for range 100 {
		list = append(list, model.Trace{Parent: parent})
	}
	if got := len(telemetry.Links(list)); got != telemetry.MaxLinks {
		t.Errorf("%d links, not %d", got, telemetry.MaxLinks)
	}
}

// error.type has few values, whatever the text of an error is.
func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("append: %w", model.ErrRefused), "refused"},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), "timeout"},
		{errors.New("order 17 is unknown"), "_OTHER"},
	} {
		if got := telemetry.KindOf(c.err); got != c.want {
			t.Errorf("%v is %s, not %s", c.err, got, c.want)
		}
	}
}
