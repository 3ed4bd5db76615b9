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

// Config says how a worker behaves.
type Config struct {
	// ID names the worker. It must be unique among those that are alive; a restart
	// may reuse it.
	ID string
	// Programs tells which program a space runs. Without one (nil, or an error,
	// which is logged) the worker leaves the space alone, and its events wait. It is asked
	// when a space is loaded, and again by Refresh, and must not wait for anything. The same
	// program is the same pointer.
	Programs func(space string) (*space.Program, error)

	// Heartbeat is how often the worker announces itself and looks for others
	// that have gone; default 500 ms. A dead process is noticed within two.
	Heartbeat time.Duration
	// MemberTTL is how long a member that stands still, but whose process answers,
	// keeps its partitions; default 15 s, because the store itself may be silent
	// for 4 to 9 s while it elects a leader.
	MemberTTL time.Duration
	// Handover is how long a partition that becomes another worker's may take to finish
	// what is under way and save, until it is cut off; default 5 s. The other waits for
	// it as long, and a little longer, at the most. It is also how long Stop goes on while no
	// server can be reached.
	Handover time.Duration
	// Checkpoint is how often changed documents are saved; default 1 s. It bounds
	// by how much the STATE bucket trails the log.
	Checkpoint time.Duration
	// Aside is for how long a space may hold back up to where its partition is known to be done with
	// its lane, until the partition goes on without it (docs/adr/0033); default 5 s.
	Aside time.Duration
	// Idle is for how long a space is at rest, with nothing to do and nobody who observes
	// it, before it leaves memory; default 1 min, negative never. It comes back with the
	// next event or observer, at the cost of loading it.
	Idle time.Duration
	// MaxAwake is how many spaces may be in memory; default 10,000, negative without
	// limit. Beyond that, those that have been at rest longest leave at once; if all
	// have something to do, there are more.
	MaxAwake int
	// History is for how long commits are kept in the log that no restart needs any more:
	// they are what receipts and trees are read from. The default is the deployment's
	// horizon, and the hour for which lanes remember events longer. HistoryBytes bounds
	// what they take per partition, whatever their age; default 1 GiB, negative without
	// limit. PurgeDelay is for how long a checkpoint must have stood before commits that it
	// covers go; default 3 min, which is longer than servers that do not sync always take to
	// write to disk what they have accepted (sync_interval, 2 min). Workers may differ.
	History      time.Duration
	HistoryBytes int64
	PurgeDelay   time.Duration
	// BacklogBytes bounds, roughly, the memory of the events that have been read and not
	// been handled, over all spaces; default 64 MiB. Beyond it they stay in the stream,
	// but for one per space. One space is given 8 MiB at the most.
	BacklogBytes int64
	// DocumentWait is for how long an event waits for a document of another space that its handler, or
	// what that reads, needs and that cannot be read; default 5 min, negative without end. Then the
	// event fails. It is measured by the worker that serves the space, and begins anew with another.
	// It is longer than a store takes to restart or to elect a leader, as the event is a dead letter
	// then.
	DocumentWait time.Duration
	// RunLimit is how long one run of a handler or of a node may take; default 30 s, negative
	// without end. space.Program.Within says otherwise of a handler. A second later code that has
	// not returned is given up (docs/adr/0034): its space is loaded again and goes on, up to as
	// often as handlers that end their process are tried, and its goroutine is left behind. There
	// may be 100 of these; then no more is given up until some have returned.
	RunLimit time.Duration
	// Performing is how many tasks (see tasks.Performer) are done at a time, over all spaces;
	// default 256.
	Performing int
	// Weight is this worker's share of the partitions relative to others; 0 is 1.
	Weight float64
	// Program is announced as the name of the programs that this worker hosts, so that
	// people are told when workers of one deployment host different ones: events that a
	// program has no handler for are refused. Optional.
	Program string
	// Host, Version and Connection are announced for people: the machine, the version of
	// the executable, and the name of the connection. All are optional.
	Host, Version, Connection string

	// Now is the wall time, by which events that wait for a time come due; default time.Now.
	// It may jump, either way.
	Now func() time.Time

	// Build tells the code that runs from any other: what a node has observed spares it a
	// run after a restart only if the code is the same. It concerns nodes that name no
	// Version of their own. Default: a hash of the executable's file.
	Build string

	// Space is the template for the spaces' own settings. Space and Runtime are
	// filled in.
	Space space.Config

	// OnError and OnConsole are handed the errors and the output of user code, with what
	// they belong to (seed 002). They are called while a space runs, by several spaces at
	// a time, and must be quick. Default: they are logged.
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)

	// Logger gets what an operator should know. Default: discard.
	Logger *slog.Logger
	// Tracer records spans; nil records none and costs nothing.
	Tracer trace.Tracer

	// faults is where faults are logged that may last.
	faults *faultlog.Log

	// beforeLeaving is for tests: it is called between a host's finding that it may leave
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
