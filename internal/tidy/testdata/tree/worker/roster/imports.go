// Package roster asks for itself.
package roster

import (
	_ "context" // want "hand it what was heard, and the time"
	_ "sync"
	_ "time"

	_ "github.com/settlehq/settle/model"
	_ "github.com/settlehq/settle/worker" // want "on model alone"
)
