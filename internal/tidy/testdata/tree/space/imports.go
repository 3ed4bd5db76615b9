package space

import (
	_ "context"     // want "nothing in the core blocks"
	_ "crypto/rand" // want "randomness as an input"
	_ "encoding/json"
	_ "log/slog"     // want "Trace hooks"
	_ "math/rand/v2" // want "randomness as an input"
	_ "net/http"     // want "does no I/O"
	_ "os"           // want "does no I/O"
	_ "sync/atomic"  // want "one owner"

	_ "github.com/hashicorp/go-memdb"
	_ "github.com/nats-io/nats.go" // want "only bus/ speaks NATS" // want "anything else is an input"
	_ "go.opentelemetry.io/otel"   // want "anything else is an input"

	_ "github.com/settlehq/settle"     // want "anything else is an input"
	_ "github.com/settlehq/settle/bus" // want "anything else is an input"
	_ "github.com/settlehq/settle/lanes"
	_ "github.com/settlehq/settle/model"
)
