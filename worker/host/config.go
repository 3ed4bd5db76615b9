package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/internal/telemetry/meters"
	"github.com/settlehq/settle/model"
)

// Config configures a worker.
type Config struct {
	// ID names the worker. It must be unique among live workers; a restart
	// may reuse it.
	ID string
	// Programs returns the program of a space. Without one (nil, or an error, which is logged) the worker
	// does not serve the space, and its events wait. Programs is called when a space is loaded, and again by
	// Refresh, and must not block. It must return the same pointer for the same program.
	Programs func(space string) (Program, error)

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

	// Logger receives messages for operators. Default: discard.
	Logger *slog.Logger

	// Meter makes the instruments of the worker's metrics; nil measures nothing and costs nothing. Observe puts the metrics of what is above this
	// package; it is optional.
	Meter   metric.Meter
	Observe func(meters.Put)
	// Spans begin the spans of the worker; nil begins none and costs nothing.
	Spans *Spans

	// measures are the histograms, nil without a meter.
	measures *measures
	// faults logs faults that may last.
	faults *faultlog.Log
	// directory is asked for the spaces that there are.
	directory *directory

	// Access has the rules about which principals may send what; nil allows everything.
	Access *access.Book
	// Terms are the words for what the process serves, in errors and in the log.
	Terms Terms
	// Role is announced with the worker: "" for one of spaces.
	Role string
	// WithoutGraph declares that no core is a Graph: leases of documents are not followed.
	WithoutGraph bool
	// CutsOff makes the worker cut off a partition that it leaves after Handover, even if no other worker
	// waits for it.
	CutsOff bool
	// LeastMarkers is how many markers of deleted documents a space has before they are worth being purged; default 64. See markers.
	LeastMarkers int
	// Computed returns when the owner of a space has brought a document up to date there, or cannot, and reports whether the log then has a value of it.
	// It is asked about documents of other spaces that the log does not have, since those may be derived ones that were not computed yet. ctx has a deadline.
	// The error is model.ErrStopped if the process is leaving. If Computed is nil, such a document is read as absent at once.
	Computed func(ctx context.Context, space, document string) (exists bool, err error)
	// Beside, if not nil, is called for each partition that is served, and must return when ctx ends.
	Beside func(ctx context.Context, partition int)
	// Left is called when a space was evicted, and UnderWay lists, for the log, the work outside that has not
	// returned.
	Left     func(space string)
	UnderWay func() [][]any
	// BeforeLeaving is a hook for tests, called between a host's decision to leave and its leaving.
	BeforeLeaving func()
}

func (c *Config) fill() error {
	if err := model.CheckName("worker", c.ID); err != nil {
		return err
	}
	if c.Programs == nil {
		return fmt.Errorf("worker %s: Programs is nil; it chooses the program of each space", c.ID)
	}
	if err := c.Options.Fill(); err != nil {
		return fmt.Errorf("worker %s: %w", c.ID, err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.LeastMarkers = cmp.Or(c.LeastMarkers, 64)
	c.Terms.fill()
	c.faults = faultlog.New(c.Logger)
	c.directory = newDirectory()
	if c.Left == nil {
		c.Left = func(string) {}
	}
	if c.UnderWay == nil {
		c.UnderWay = func() [][]any { return nil }
	}
	if c.BeforeLeaving == nil {
		c.BeforeLeaving = func() {}
	}
	return nil
}

// Terms are the words for what a process serves: the process, a space, and the code of the application.
type Terms struct{ Process, Space, Code string }

func (t *Terms) fill() {
	t.Process, t.Space = cmp.Or(t.Process, "worker"), cmp.Or(t.Space, "space")
	t.Code = cmp.Or(t.Code, "a handler or node")
}
