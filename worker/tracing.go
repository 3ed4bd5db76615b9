package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// tracing records what the core of a space reports: spans, durations of effects, and log lines.
type tracing struct {
	space string
	cfg   *Config
	spans spans
	watch stopwatch
}

// longChain is the depth at which a chain of events that send each other is logged: a tenth of
// the default limit.
const longChain = lineage.DefaultMaxChain / 10

// ended logs events that were not handled, except those that their handlers have rejected, and chains that seem to be endless. It does not log payloads.
func (t *tracing) ended(i space.HandleInfo) {
	if t.spans.tracer != nil {
		t.spans.handleEnd(&i)
		i.Trace = t.spans.passedOn(i.Event, i.Trace)
	}
	if i.Receipt != nil && i.Receipt.Outcome != model.Handled && i.Receipt.Outcome != model.Rejected {
		t.cfg.Logger.WarnContext(telemetry.Context(context.Background(), i.Trace), "event "+string(i.Receipt.Outcome), "space", t.space, "stream", i.Event.Stream,
			"event", i.Event.ID, "error", i.Receipt.Error)
	}
	if i.Event.Depth == longChain && slices.ContainsFunc(i.Sends, func(s model.Send) bool { return s.Depth > longChain }) {
		t.cfg.Logger.WarnContext(telemetry.Context(context.Background(), i.Trace), fmt.Sprintf("a chain of events that send each other, with no time between, has come to %d; it ends at MaxChain", longChain),
			"space", t.space, "stream", i.Event.Stream, "event", i.Event.ID)
	}
	if i.Stack != nil {
		t.cfg.Logger.ErrorContext(telemetry.Context(context.Background(), i.Trace), "handler panicked", "space", t.space, "stream", i.Event.Stream, "event", i.Event.ID,
			"stack", string(i.Stack))
	}
}

// stopwatch measures the runs of effects, since the core, which debounces slow ones, has no clock. Runs of
// computations are not measured, because they may be nested.
type stopwatch struct {
	began time.Time
	took  []measured
}

// measured is a run that has not been reported to the core yet: that is not possible during Settle.
type measured struct {
	node string
	took time.Duration
}

func (w *stopwatch) start(kind space.NodeKind) {
	if kind == space.Effect {
		w.began = time.Now()
	}
}

func (w *stopwatch) stop(node string, kind space.NodeKind) {
	if kind == space.Effect {
		w.took = append(w.took, measured{node, time.Since(w.began)})
	}
}

// report reports the measured runs.
func (w *stopwatch) report(core *space.Space) {
	for _, m := range w.took {
		core.Measured(m.node, m.took)
	}
	w.took = w.took[:0]
}
