// Command spaceworker hosts spaces. Run any number of them with the same flags: they divide the
// partitions among themselves, and take over from one that dies.
//
// It may be started before the NATS servers and before the deployment exists: it waits for both,
// and logs that. On SIGTERM it completes running handlers, saves its spaces, leaves the fleet, and
// exits with status 0; or with status 1 and what was not saved, if no server could be reached for 5
// s, or handlers did not return within 20 s.
package main

import (
	"context"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/counter"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/internal/fleetworker"
)

type command struct {
	Program string `help:"The program of the spaces: hosted, for deployed programs (settle deploy); or one of the examples: ${enum}." enum:"hosted,counter,flights" default:"hosted" env:"SETTLE_PROGRAM"`

	fleetworker.Command
}

// programs are the programs built into this binary; nil stands for deployed ones. A Go program of
// your own goes into a binary of your own: see package spaceworker.
var programs = map[string]settle.Programs{
	"counter": settle.Always(counter.Program()),
	"flights": flights.Programs,
}

func main() {
	var c command
	fleetworker.Main("spaceworker", &c, &c.Command, func(ctx context.Context) error {
		return c.Serve(ctx, programs[c.Program], c.Program)
	})
}
