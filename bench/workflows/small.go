package workflows

import (
	"context"

	"github.com/settlehq/settle/bench/harness"
)

// Small measures runs of ten actions, one at a time. Their counts of messages, bytes, fsyncs and allocations do not
// depend on the machine.
func Small(ctx context.Context, engine string, at *harness.Site, run string) (*harness.Round, error) {
	c := Case{Program: "sequence", N: 1, Flights: 1, Unit: actions}
	return measure(ctx, engineNamed(engine), at, throughput{}, c, &Budget{Run: run, Units: 30, Actions: &Actions{}})
}
