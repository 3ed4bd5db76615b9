// Package spaceworker makes a program of yours a worker of a fleet:
//
//	func main() { spaceworker.Main(settle.Always(shop.Program())) }
//
// It is a package of its own, and not a part of package settle, so that a client does not link the parser of
// flags and the exporters of spans.
package spaceworker

import (
	"context"
	"os"
	"path/filepath"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/fleetworker"
	"github.com/settlehq/settle/program"
)

// Main runs a worker of a fleet in this process until SIGTERM or SIGINT, and then exits: with status 0 after
// a clean stop, 1 after a failure, which it prints, and 2 if the command line is wrong. It has the flags, the
// environment variables, the logs and the health of the spaceworker command, which docs/cli.md lists; only
// --program is missing, since the programs are these. The name that the worker announces for them is that
// of the executable.
//
// The process may be started before the NATS servers and before the deployment exists: it waits for both. On
// SIGTERM it completes running handlers, saves its spaces and leaves the fleet, within --stop-timeout; a
// second signal ends it at once. nil programs stand for deployed ones (settle deploy).
func Main(programs settle.Programs) {
	name := filepath.Base(os.Args[0])
	label := name
	if programs == nil {
		label = program.HostedLabel
	}
	var c fleetworker.Command
	fleetworker.Main(name, &c, &c, func(ctx context.Context) error { return c.Serve(ctx, programs, label) })
}
