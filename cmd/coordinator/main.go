// Command coordinator releases committed sends into the lanes of their target spaces, stores dead
// letters, and answers what events have caused. Run one, or several for availability: it decides
// nothing, so several are harmless.
//
// It may be started before the NATS servers and before the deployment exists: it waits for both. On
// SIGTERM it ends with status 0, or with 1 if no server could be reached then.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/process"
	"github.com/settlehq/settle/port"
)

// flags are the command line.
type flags struct{ process.Flags }

const description = "Releases committed sends into their target lanes, writes dead letters, and answers queries about the effects of events."

func main() {
	var f flags
	process.Main("coordinator", description, &f, func(ctx context.Context) error {
		return f.Run(ctx, "coordinator", os.Stderr, func(p process.Process) (func(context.Context) error, error) {
			c := coordinator.New(p.Bus, coordinator.Config{
				ID: p.ID, Host: hostname(), Version: p.Bus.ProgramVersion(), Connection: p.Bus.ConnectionName(), Logger: p.Logger, Tracer: p.Tracer, Meter: p.Meter,
			})
			c.Start()
			return func(context.Context) error {
				c.Stop()
				if !p.Bus.Reachable() {
					return fmt.Errorf("coordinator %s has left without announcing it: %w; the next one releases what remains", p.ID, port.ErrNoServer)
				}
				return nil
			}, nil
		})
	})
}

// hostname returns the machine's name, "" if it is unknown.
func hostname() string {
	name, _ := os.Hostname()
	return name
}
