// Package program imports sideways.
package program

import (
	_ "github.com/settlehq/settle/bus" // want "programs see the core"
	_ "github.com/settlehq/settle/worker"
)
