package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/dev"
	"github.com/settlehq/settle/model"
)

// chaosKillCmd is `settle chaos kill`.
type chaosKillCmd struct {
	connection
	Owner  string `help:"Kill the worker that owns this space." xor:"which" placeholder:"SPACE"`
	Worker string `help:"Kill this worker." xor:"which" placeholder:"ID"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run kills a worker of settle dev.
func (c *chaosKillCmd) Run(ctx context.Context, io streams) error {
	if c.Owner == "" && c.Worker == "" {
		return usage(errors.New("name the worker to kill: --owner SPACE for the one that owns a space, or --worker ID"))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return c.use(ctx, io, need{none: true}, func(b *bus.Bus, _ *settle.Client) error {
		k, err := dev.Kill(ctx, b, dev.KillRequest{Worker: c.Worker, Space: c.Owner})
		if errors.Is(err, model.ErrNoResponder) {
			return errors.New("no settle dev runs here, which alone can kill its workers; in a fleet, kill the process")
		}
		if e, is := errors.AsType[*model.ServiceError](err); is {
			return errors.New(e.Text)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			return printLine(io.out, k)
		}
		if len(k.Others) == 0 {
			fmt.Fprintf(io.out, "worker %s was killed, without leaving the fleet; it is started again in %s\n", k.Worker, time.Duration(k.Back)*time.Millisecond)
			return nil
		}
		fmt.Fprintf(io.out, "worker %s was killed, without leaving the fleet; %s takes over, and %s is started again in %s\n",
			k.Worker, strings.Join(k.Others, ", "), k.Worker, time.Duration(k.Back)*time.Millisecond)
		return nil
	})
}
