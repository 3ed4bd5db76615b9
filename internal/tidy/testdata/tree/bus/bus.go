// Package bus may speak NATS, and may not know programs.
package bus

import (
	_ "github.com/nats-io/nats-server/v2/server"
	_ "github.com/nats-io/nats.go"
	_ "github.com/settlehq/settle/program" // want "bus knows streams and bytes"
	_ "github.com/settlehq/settle/worker"
)
