// Package coordinator stands on worker, and as far from NATS.
package coordinator

import (
	_ "github.com/settlehq/settle/bus" // want "declare the interface in port/"
	_ "github.com/settlehq/settle/worker"
)
