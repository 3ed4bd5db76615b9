// Package workflow imports sideways.
package workflow

import (
	_ "github.com/settlehq/settle/bus"    // want "workflow knows graphs and runs"
	_ "github.com/settlehq/settle/worker" // want "workflow knows graphs and runs"
)
