package worker

import (
	"context"

	"github.com/settlehq/settle/space"
)

// logError logs errors of user code in the trace of ctx; it is the default of OnError. Failed events are
// in their receipts, and are logged with those.
func (c *Config) logError(ctx context.Context, i space.ErrorInfo) {
	if i.Event != "" {
		switch {
		case !i.Transient:
			return // the event has failed, which is logged elsewhere
		case i.Rejection == space.ByVersion && i.Attempt&(i.Attempt-1) != 0:
			return // it is tried again without a limit: attempts 1, 2, 4, 8, ... are logged
		}
		c.Logger.WarnContext(ctx, "handler", "space", i.Space, "stream", i.Stream, "event", i.Event, "attempt", i.Attempt, "again", i.Transient, "error", i.Err)
		return
	}
	c.Logger.WarnContext(ctx, "node", "space", i.Space, "node", i.Node, "causes", i.Causes, "again", i.Transient, "error", i.Err)
	if i.Stack != nil {
		c.Logger.ErrorContext(ctx, "node panicked", "space", i.Space, "node", i.Node, "stack", string(i.Stack))
	}
}

// logConsole logs the output of Tx.Log in the trace of ctx; it is the default of OnConsole.
func (c *Config) logConsole(ctx context.Context, i space.ConsoleInfo) {
	about := []any{"space", i.Space}
	if i.Event != "" {
		about = append(about, "stream", i.Stream, "event", i.Event)
	} else {
		about = append(about, "node", i.Node)
	}
	log := c.Logger.InfoContext
	if i.Warning {
		log = c.Logger.WarnContext
	}
	log(ctx, i.Message, append(about, i.Args...)...)
}

// onError receives the errors of the code of a space.
func (c *core) onError(i space.ErrorInfo) {
	if c.differs(&i) {
		return
	}
	if f := c.engine.cfg.OnError; f != nil {
		f(i)
		return
	}
	c.engine.cfg.logError(c.tracing.spans.context(context.Background()), i)
}

// onConsole receives the output of the code of a space.
func (c *core) onConsole(i space.ConsoleInfo) {
	if f := c.engine.cfg.OnConsole; f != nil {
		f(i)
		return
	}
	c.engine.cfg.logConsole(c.tracing.spans.context(context.Background()), i)
}
