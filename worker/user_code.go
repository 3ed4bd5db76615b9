package worker

import (
	"time"

	"github.com/settlehq/settle/space"
)

// logError is what becomes of errors of user code if nobody has asked for them. That an
// event has failed stands in its receipt, and is logged with that.
func (c *Config) logError(i space.ErrorInfo) {
	if i.Event != "" {
		if !i.Transient {
			return // the event has failed, which is logged
		}
		c.Logger.Warn("handler", "space", i.Space, "stream", i.Stream, "event", i.Event, "attempt", i.Attempt, "again", i.Transient, "error", i.Err)
		return
	}
	c.Logger.Warn("node", "space", i.Space, "node", i.Node, "causes", i.Causes, "again", i.Transient, "error", i.Err)
	if i.Stack != nil {
		c.Logger.Error("node panicked", "space", i.Space, "node", i.Node, "stack", string(i.Stack))
	}
}

// logConsole is what becomes of Tx.Log if nobody has asked for it.
func (c *Config) logConsole(i space.ConsoleInfo) {
	about := []any{"space", i.Space}
	if i.Event != "" {
		about = append(about, "stream", i.Stream, "event", i.Event)
	} else {
		about = append(about, "node", i.Node)
	}
	c.Logger.Info(i.Message, append(about, i.Args...)...)
}

// stopwatch measures the runs of effects: slow ones are debounced, and the core has no
// clock. Runs of computations are not measured, they may stand inside each other.
type stopwatch struct {
	began time.Time
	took  []measured
}

// measured is a run that the core has not been told of: not in the middle of Settle.
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

// tell reports what was measured.
func (w *stopwatch) tell(core *space.Space) {
	for _, m := range w.took {
		core.Measured(m.node, m.took)
	}
	w.took = w.took[:0]
}
