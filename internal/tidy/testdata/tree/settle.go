// Package settle imports its own users.
package settle

import (
	_ "github.com/settlehq/settle/bus"
	_ "github.com/settlehq/settle/cmd/settle/internal/table" // want "commands, examples and tests import"
)
