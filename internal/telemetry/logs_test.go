package telemetry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

func TestWithTraces_AddsTheIDs(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(telemetry.WithTraces(slog.NewTextHandler(&out, nil))).With("space", "s")
	ctx := telemetry.Context(t.Context(), model.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
	log.WarnContext(ctx, "event failed", "stream", "put")
	if got := out.String(); !strings.HasSuffix(got, "space=s stream=put trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7\n") {
		t.Errorf("logged: %s", got)
	}
	out.Reset()
	log.Warn("event failed")
	if got := out.String(); strings.Contains(got, "trace_id") {
		t.Errorf("logged: %s", got)
	}
}
