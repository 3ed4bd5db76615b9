// Package worker imports upwards.
package worker

import (
	_ "context"

	_ "github.com/settlehq/settle"             // want "declare the interface in port/"
	_ "github.com/settlehq/settle/bus"         // want "declare the interface in port/"
	_ "github.com/settlehq/settle/bus/membus"  // want "declare the interface in port/"
	_ "github.com/settlehq/settle/coordinator" // want "stands on worker"
	_ "github.com/settlehq/settle/space"
	_ "github.com/synadia-io/orbit.go/natscontext" // want "only bus/ speaks NATS"
	_ "go.opentelemetry.io/otel"
)
