// Package workflow imports sideways.
package workflow

import (
	_ "github.com/settlehq/settle/bus" // want "programs and workflows see the core"
	_ "github.com/settlehq/settle/worker"
)
