package main

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/internal/dev"
	"github.com/settlehq/settle/internal/flags"
)

// devCmd is `settle dev`.
type devCmd struct {
	Programs     []string `arg:"" optional:"" name:"file" help:"Programs (.star), directories of them, or the directory of one program in Go (a package main). Default: this directory; if it has none, a sample." type:"path"`
	Reset        bool     `help:"Remove the data of earlier runs: documents, events, versions."`
	Trace        bool     `help:"Keep the newest traces in memory, and show them over HTTP."`
	flags.Worker `group:"Options of the workers"`
}

// Help says where the servers are to be found.
func (devCmd) Help() string {
	return fmt.Sprintf(`It listens on 127.0.0.1 only: NATS on port %d, HTTP with the console on port %d, or on the next ones that are free. A
directory keeps its ports from one start to the next, and commands that are run in it find the server by themselves. While it runs there is
a nats context, %s, unless another one has that name. The context of one that was killed is removed when the next one starts.

A program in Go is built, and runs as a worker in a process of its own, whose main function calls settle.Main or spaceworker.Main. When a file
changes it is built and runs again. The options of the workers are those of its main function, and not of this command.`, dev.NATSPort, dev.HTTPPort, dev.ContextName)
}

// Run runs everything in one process, until it is interrupted.
func (c *devCmd) Run(ctx context.Context, io streams) error {
	return dev.Run(ctx, dev.Config{Programs: c.Programs, Reset: c.Reset, Trace: c.Trace, Worker: c.Worker, Version: version, Out: io.out})
}
