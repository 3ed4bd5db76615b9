package settle

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// AttachConfig configures an attachment. ID is required.
type AttachConfig struct {
	// ID names the runtime in the log. It should be unique among running attachments and workers.
	ID string
	// Program is the program that the owner of the space runs. Without a program, derived documents can
	// be read but are computed by the owner only.
	Program *Program
	// Events makes the attachment handle the space's events, too, in a race with the owner; each
	// still takes effect once. It requires Program: an event for which that has no handler ends as
	// refused, even if the owner's program has one.
	Events bool
	// Limits and Budgets are those of this runtime. ConflictWindow is how long a transaction is
	// retried that loses against other commits.
	ledger.Limits
	space.Budgets

	// Logger receives what an operator should know, Tracer spans; by default those of the client.
	Logger *slog.Logger
	Tracer trace.Tracer
	// OnError and OnConsole are as in WorkerConfig.
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)
}

// Attach takes part in the space, and returns when its attachment is in the log. Several runtimes may
// host a space at the same time: the worker that owns it, and any number of applications. Each
// applies its transactions to its own copy at once; the runtime that commits second is refused,
// integrates the other's commit, and redoes its remaining work. Close the attachment when it is not
// needed any more; it does not end with the client.
//
// It needs a worker's permissions on the bus. An application that only sends, calls, reads and
// watches needs no attachment: Watch also makes the owner compute a derived document.
//
// Attach to write to a space without an event and a handler (an editor, a gateway, a test), and to
// see its documents at once, computed in the application's own process.
func (s Space) Attach(ctx context.Context, cfg AttachConfig) (*worker.Attachment, error) {
	own := worker.AttachConfig{
		ID: cfg.ID, Space: s.name, Events: cfg.Events,
		Limits: cfg.Limits, Budgets: cfg.Budgets,
		Logger: cmp.Or(cfg.Logger, s.client.logger), Tracer: cfg.Tracer, OnError: cfg.OnError, OnConsole: cfg.OnConsole,
	}
	if own.Tracer == nil {
		own.Tracer = s.client.observed.tracer
	}
	if p := cfg.Program; p != nil {
		core, err := p.Core()
		if err != nil {
			return nil, err
		}
		own.Program = core
	}
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	bus := s.client.bus
	if b, knows := bus.(interface {
		MayCommit(ctx context.Context, space string) error
	}); knows {
		if err := b.MayCommit(ctx, s.name); err != nil {
			return nil, err
		}
	}
	own.Computed = live.NewComputed(bus)
	if !cfg.Events {
		return worker.Attach(ctx, bus, own)
	}
	rules, err := access.Open(ctx, bus, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("attach %s to space %s: %w", cfg.ID, s.name, err)
	}
	own.Access = rules
	a, err := worker.Attach(ctx, bus, own)
	if err != nil {
		rules.Close()
		return nil, err
	}
	go func() { // ends with the attachment
		<-a.Done()
		rules.Close()
	}()
	return a, nil
}
