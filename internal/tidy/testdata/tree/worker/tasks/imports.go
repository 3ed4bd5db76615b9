// Package tasks asks the worker.
package tasks

import (
	_ "context"

	_ "github.com/settlehq/settle/internal/pause"
	_ "github.com/settlehq/settle/space"
	_ "github.com/settlehq/settle/worker" // want "tasks.Host"
)
