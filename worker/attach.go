package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/host"
)

// AttachConfig configures an attachment.
type AttachConfig struct {
	// ID names the runtime in the log. It should be unique among live runtimes; with a duplicate nothing is
	// lost, but the log does not show which runtime made a commit.
	ID string
	// Space is the space, Program the program that its owner runs. Without a program, derived documents can
	// be read here, but only other runtimes compute them; the attachment then cannot detect that a document
	// is derived and must not be written.
	Space   string
	Program *space.Program
	// Events makes the attachment handle the space's events as well, concurrently with the owner and other
	// attachments: each event still takes effect once. Without it, the attachment handles neither those nor
	// the follow-ups that its own transactions send. Events needs the Program: an event without a handler in
	// it is refused, even if the owner has one.
	Events bool

	// Limits and Budgets apply to this runtime. ConflictWindow limits how long a transaction is retried after
	// conflicts.
	ledger.Limits
	space.Budgets

	// Handover limits how long Close retries while no server can be reached; default 5 s.
	Handover time.Duration

	// OnError, OnConsole, Logger and Tracer are as in Config.
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)
	Logger    *slog.Logger
	Tracer    trace.Tracer
	// Access is as in Config. It is needed with Events only.
	Access *access.Book
	// Computed is as in Config.
	Computed func(ctx context.Context, space, document string) (exists bool, err error)
}

// Attachment is a runtime that takes part in one space beside its owner, in the process of an application. It
// runs the same code over the same log: its transactions apply at once to its own copy of the space, its
// nodes run as far as documents are observed here, and commits travel in both directions through the log. No
// runtime is in charge: a commit that does not follow all earlier commits is refused, undone, and retried on
// top of them. All methods are safe for concurrent use.
type Attachment struct {
	*host.Attachment
	runs *RunCounts
}

// Attach joins a space, and returns when the join is in the log. The caller owns the bus, which must outlive
// the attachment.
func Attach(ctx context.Context, bus Bus, cfg AttachConfig) (*Attachment, error) {
	if cfg.Events && cfg.Program == nil {
		return nil, fmt.Errorf("attach %s to space %s: Events needs the Program that the space's owner runs; without it every event that it wins would be refused", cfg.ID, cfg.Space)
	}
	runs := cfg.Program
	if runs == nil {
		runs = space.NewProgram("none")
	}
	own := Config{
		ID: cfg.ID, Programs: func(string) (*space.Program, error) { return nil, nil }, // not called: the host has its program
		Options: Options{Handover: cfg.Handover, Limits: cfg.Limits, Budgets: cfg.Budgets}, withoutEvents: !cfg.Events,
		OnError: cfg.OnError, OnConsole: cfg.OnConsole, Logger: cfg.Logger, Tracer: cfg.Tracer, Access: cfg.Access, Computed: cfg.Computed,
	}
	if err := own.fill(); err != nil {
		return nil, err
	}
	e, err := newEngine(&own)
	if err != nil {
		return nil, err
	}
	a, err := host.Attach(ctx, bus, host.AttachConfig{Config: e.config(), Space: cfg.Space, Runs: program{runs, e}, Events: cfg.Events})
	if err != nil {
		return nil, err
	}
	return &Attachment{a, e.runs}, nil
}

// Transact makes a transaction and returns when it is in the log, on top of all earlier commits. f may be
// called several times: whenever the commit of another runtime has undone the transaction, f runs again on
// the new state, at once and then after growing pauses, for as long as ConflictWindow. After that, Transact
// returns a space.ConvergenceError, and passes it to OnError. An error of f is returned, and f is not called
// again. by names the author in the log.
//
// f runs in the loop of the space: it must be quick, and must not call the attachment. It reads derived
// documents as they are, without waiting for stale ones.
//
// If ctx ends first, the transaction may or may not be in the log; it is not retried.
func (a *Attachment) Transact(ctx context.Context, by string, f func(tx *space.Tx) error) error {
	cause := telemetry.Of(ctx)
	return a.Attachment.Transact(ctx, by, func(g host.Graph) (uint64, error) {
		return g.(*core).Transact(by, func(tx *space.Tx) error {
			tx.CausedBy(cause)
			return f(tx)
		})
	})
}

// Runs returns how often each node has run here, including runs that were not committed.
func (a *Attachment) Runs() map[string]uint64 {
	out := map[string]uint64{}
	for k, n := range a.runs.all() { // any order: into a map
		out[k.Node] = n
	}
	return out
}
