package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/space"
)

// Config configures a worker.
type Config struct {
	// ID names the worker. It must be unique among live workers; a restart
	// may reuse it.
	ID string
	// Programs returns the program of a space. Without one (nil, or an error, which is logged) the worker
	// does not serve the space, and its events wait. Programs is called when a space is loaded, and again by
	// Refresh, and must not block. It must return the same pointer for the same program.
	Programs func(space string) (*space.Program, error)

	// Options are the tunable limits and intervals.
	Options

	// Program is announced as the name of the programs that this worker hosts, so that operators notice when
	// workers of one deployment host different ones: events without a handler in the program are refused.
	// Optional.
	Program string
	// Host, Version and Connection are announced for operators: the machine, the version of
	// the executable, and the name of the connection. All are optional.
	Host, Version, Connection string

	// Now returns the wall time, which decides when waiting events are due; default time.Now.
	// It may jump in both directions.
	Now func() time.Time

	// Build identifies the running code: the saved observations of a node spare it a
	// run after a restart only if the code is the same. It applies to nodes without a
	// Version of their own. Default: a hash of the executable's file.
	Build string

	// CheckIdempotency and Rehearsals make every space repeat the runs of its program, for tests; see
	// space.Config.
	CheckIdempotency bool
	Rehearsals       int

	// OnError and OnConsole receive the errors and the output of user code, with
	// their origin. They are called while a space runs, by several spaces
	// concurrently, and must be quick. Default: they are logged.
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)

	// Logger receives messages for operators. Default: discard.
	Logger *slog.Logger
	// Tracer records spans; nil records none and costs nothing.
	Tracer trace.Tracer

	// Meter makes the instruments of the worker's metrics; nil measures nothing and costs nothing.
	Meter metric.Meter
	// Hosted returns how many steps deployed programs have executed, and how many bytes they have allocated; nil if the worker hosts none.
	Hosted func() (steps, bytes uint64)
	// Access has the rules about which principals may send what; nil allows everything.
	Access *access.Book
	// Computed returns when a document of another space was computed there, see live.Server.Computed. If it is nil, a derived document that was not
	// computed yet is read as absent.
	Computed func(ctx context.Context, space, document string) (exists bool, err error)
	// LeastMarkers is how many markers of deleted documents a space has before they are worth being purged; default 64.
	LeastMarkers int

	// withoutEvents leaves the events of the space to other runtimes, for an attachment.
	withoutEvents bool

	// beforeLeaving is a hook for tests, called between a host's decision to leave and its leaving.
	beforeLeaving func()
}

// fill sets defaults. Package host checks the options that it has itself.
func (c *Config) fill() error {
	if err := c.Options.Fill(); err != nil {
		return fmt.Errorf("worker %s: %w", c.ID, err)
	}
	if c.Build == "" {
		c.Build = executable()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
