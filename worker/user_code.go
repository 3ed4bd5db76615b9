package worker

import (
	"github.com/settlehq/settle/space"
)

// logError logs errors of user code; it is the default of OnError. Failed events are
// in their receipts, and are logged with those.
func (c *Config) logError(i space.ErrorInfo) {
	if i.Event != "" {
		if !i.Transient {
			return // the event has failed, which is logged elsewhere
		}
		c.Logger.Warn("handler", "space", i.Space, "stream", i.Stream, "event", i.Event, "attempt", i.Attempt, "again", i.Transient, "error", i.Err)
		return
	}
	c.Logger.Warn("node", "space", i.Space, "node", i.Node, "causes", i.Causes, "again", i.Transient, "error", i.Err)
	if i.Stack != nil {
		c.Logger.Error("node panicked", "space", i.Space, "node", i.Node, "stack", string(i.Stack))
	}
}

// logConsole logs the output of Tx.Log and Tx.Warn; it is the default of OnConsole.
func (c *Config) logConsole(i space.ConsoleInfo) {
	about := []any{"space", i.Space}
	if i.Event != "" {
		about = append(about, "stream", i.Stream, "event", i.Event)
	} else {
		about = append(about, "node", i.Node)
	}
	log := c.Logger.Info
	if i.Warning {
		log = c.Logger.Warn
	}
	log(i.Message, append(about, i.Args...)...)
}
