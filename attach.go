package settle

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// Attachment is a runtime in the application's process that takes part in one space beside its
// owner. See worker.Attachment.
type Attachment = worker.Attachment

// AttachConfig configures an attachment. ID and Space are required.
type AttachConfig struct {
	// ID names the runtime in the log. It should be unique among running attachments and workers.
	ID string
	// Space is the space, Program the program that its owner runs. Without a program, derived
	// documents can be read but are computed by the owner only.
	Space   string
	Program *Program
	// Events makes the attachment handle the space's events, too, in a race with the owner; each
	// still takes effect once. It requires Program: an event for which that has no handler ends as
	// refused, even if the owner's program has one.
	Events bool
	// Limits and Budgets are those of this runtime. ConflictWindow is how long a transaction is
	// retried that loses against other commits.
	Limits
	Budgets

	Logger    *slog.Logger
	Tracer    trace.Tracer
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)
}

// Attach takes part in a space, and returns when its attachment is in the log. Several runtimes may
// host a space at the same time: the worker that owns it, and any number of applications. Each
// applies its transactions to its own copy at once; the runtime that commits second is refused,
// integrates the other's commit, and redoes its remaining work.
//
// It needs a worker's permissions on the bus. An application that only sends, calls, reads and
// watches should use a Client: its Watch also makes the owner compute a derived document.
//
// Attach to write to a space without an event and a handler (an editor, a gateway, a test), and to
// see its documents at once, computed in the application's own process.
func Attach(ctx context.Context, bus port.Bus, cfg AttachConfig) (*Attachment, error) {
	own := worker.AttachConfig{
		ID: cfg.ID, Space: cfg.Space, Events: cfg.Events,
		Limits: cfg.Limits, Budgets: cfg.Budgets,
		Logger: cfg.Logger, Tracer: cfg.Tracer, OnError: cfg.OnError, OnConsole: cfg.OnConsole,
	}
	if p := cfg.Program; p != nil {
		core, err := p.Core()
		if err != nil {
			return nil, err
		}
		own.Program = core
	}
	if b, knows := bus.(interface {
		MayCommit(ctx context.Context, space string) error
	}); knows {
		if err := b.MayCommit(ctx, cfg.Space); err != nil {
			return nil, err
		}
	}
	return worker.Attach(ctx, bus, own)
}
