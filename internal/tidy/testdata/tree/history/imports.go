// Package history asks a worker.
package history

import (
	_ "context"

	_ "github.com/settlehq/settle/bus" // want "without a worker"
	_ "github.com/settlehq/settle/replica"
	_ "github.com/settlehq/settle/space"
	_ "github.com/settlehq/settle/worker" // want "without a worker"
)
