package worker

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Config configures a worker.
type Config struct {
	// ID names the worker. It must be unique among live workers; a restart
	// may reuse it.
	ID string
	// Programs returns the program of a space. Without one (nil, or an error,
	// which is logged) the worker does not serve the space, and its events wait. It is called
	// when a space is loaded, and again by Refresh, and must not block. It must return the same
	// pointer for the same program.
	Programs func(space string) (*space.Program, error)

	// Heartbeat is how often the worker announces itself and checks for other workers
	// that have gone; default 500 ms. A dead process is detected within two.
	Heartbeat time.Duration
	// MemberTTL is how long a member whose heartbeat has stopped, but whose process answers,
	// keeps its partitions; default 15 s, because the store itself may be silent
	// for 4 to 9 s while it elects a leader.
	MemberTTL time.Duration
	// Handover is how long a partition that moves to another worker may take to finish
	// running work and save, until it is cut off; default 5 s. The other worker waits for
	// at most slightly longer. It is also how long Stop retries while no
	// server can be reached.
	Handover time.Duration
	// Checkpoint is how often changed documents are saved; default 1 s. It limits
	// how far the STATE bucket trails the log.
	Checkpoint time.Duration
	// Aside is how long a space may hold back the position up to which its partition is known to be done with
	// its lane, until the partition sets it aside (docs/adr/0033); default 5 s.
	Aside time.Duration
	// Idle is how long a space is at rest, with no work and no observer,
	// before it leaves memory; default 1 min, negative never. It is loaded again for the
	// next event or observer.
	Idle time.Duration
	// MaxAwake is how many spaces may be in memory; default 10,000, negative without
	// limit. Beyond it, the spaces that have been at rest longest leave at once; if all
	// have work, the limit is exceeded.
	MaxAwake int
	// History is how long commits stay in the log after no restart needs them:
	// receipts and trees are read from them. The default is the deployment's
	// horizon, plus the hour for which lanes remember events longer. HistoryBytes limits
	// their size per partition, whatever their age; default 1 GiB, negative without
	// limit. PurgeDelay is how old a checkpoint must be before commits that it
	// covers are purged; default 3 min, which is longer than servers that do not sync always take to
	// write accepted data to disk (sync_interval, 2 min). Workers may differ.
	History      time.Duration
	HistoryBytes int64
	PurgeDelay   time.Duration
	// BacklogBytes limits, roughly, the memory of events that have been read and not
	// handled, over all spaces; default 64 MiB. Beyond it events stay in the stream,
	// except one per space. One space gets at most 8 MiB.
	BacklogBytes int64
	// DocumentWait is how long an event waits for an unreadable document of another space that its handler,
	// or a document that the handler reads, needs; default 5 min, negative without limit. After that the
	// event fails. The worker that serves the space measures the time, and another owner starts again.
	// The default exceeds the time that a store takes to restart or to elect a leader, since the event becomes
	// a dead letter.
	DocumentWait time.Duration
	// RunLimit is how long one run of a handler or of a node may take; default 30 s, negative
	// without limit. space.Program.Within overrides it for a handler. Code that has
	// not returned a second later is given up (docs/adr/0034): its space is loaded again and continues, for as
	// many attempts as a handler that ends its process has, and its goroutine is left behind. At
	// 100 such goroutines, no more code is given up until some have returned.
	RunLimit time.Duration
	// Performing is how many tasks (see tasks.Performer) run at a time, over all spaces;
	// default 256.
	Performing int
	// Weight is this worker's share of the partitions relative to others; 0 is 1.
	Weight float64
	// Program is announced as the name of the programs that this worker hosts, so that
	// operators see when workers of one deployment host different ones: events without a
	// handler in the program are refused. Optional.
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

	// Space is the template for the spaces' own settings. The worker fills in Space and
	// Runtime.
	Space space.Config

	// OnError and OnConsole receive the errors and the output of user code, with
	// their origin. They are called while a space runs, by several spaces
	// concurrently, and must be quick. Default: they are logged.
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)

	// Logger receives messages for operators. Default: discard.
	Logger *slog.Logger
	// Tracer records spans; nil records none and costs nothing.
	Tracer trace.Tracer

	// faults logs faults that may last.
	faults *faultlog.Log

	// beforeLeaving is for tests: it is called between a host's decision to leave
	// and its leaving.
	beforeLeaving func()
}

func (c *Config) fill() error {
	if err := model.CheckName("worker", c.ID); err != nil {
		return err
	}
	if c.Programs == nil {
		return fmt.Errorf("worker %s: Programs is nil; it tells which program a space runs", c.ID)
	}
	if c.Weight < 0 || math.IsNaN(c.Weight) || math.IsInf(c.Weight, 0) {
		return fmt.Errorf("worker %s: weight %v is no share of the partitions", c.ID, c.Weight)
	}
	if min(c.Heartbeat, c.MemberTTL, c.Handover, c.Checkpoint, c.Aside) < 0 {
		return fmt.Errorf("worker %s: heartbeat %v, member TTL %v, handover limit %v, checkpoint interval %v and the time until a space is set aside, %v, must not be negative; 0 is the default", c.ID, c.Heartbeat, c.MemberTTL, c.Handover, c.Checkpoint, c.Aside)
	}
	if c.History < 0 || c.PurgeDelay < 0 {
		return fmt.Errorf("worker %s: history %v and purge delay %v must not be negative; 0 is the default", c.ID, c.History, c.PurgeDelay)
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Heartbeat, 500*time.Millisecond)
	def(&c.MemberTTL, 15*time.Second)
	if c.BacklogBytes <= 0 {
		c.BacklogBytes = 64 << 20
	}
	def(&c.Handover, 5*time.Second)
	def(&c.Checkpoint, time.Second)
	def(&c.Aside, 5*time.Second)
	def(&c.Idle, time.Minute)
	def(&c.RunLimit, 30*time.Second)
	def(&c.DocumentWait, 5*time.Minute)
	def(&c.PurgeDelay, 3*time.Minute)
	if c.HistoryBytes == 0 {
		c.HistoryBytes = 1 << 30
	}
	if c.HistoryBytes < 0 {
		c.HistoryBytes = math.MaxInt64
	}
	if c.Performing <= 0 {
		c.Performing = 256
	}
	if c.MaxAwake == 0 {
		c.MaxAwake = 10_000
	}
	if c.Build == "" {
		c.Build = executable()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.faults = faultlog.New(c.Logger)
	if c.OnError == nil {
		c.OnError = c.logError
	}
	if c.OnConsole == nil {
		c.OnConsole = c.logConsole
	}
	if c.beforeLeaving == nil {
		c.beforeLeaving = func() {}
	}
	return nil
}
