package settle

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// Attachment is a runtime that takes part in one space beside its owner, in your own
// process. See worker.Attachment.
type Attachment = worker.Attachment

// ConvergenceError says that an event or a transaction met one conflict after another for
// as long as the conflict window.
type ConvergenceError = space.ConvergenceError

// AttachConfig says how an application takes part in a space. ID and Space are required.
type AttachConfig struct {
	// ID names the runtime in the log. It should be unique among those that are alive.
	ID string
	// Space is the space, Program the one that its owner runs. Without a program, what is
	// derived can be read and is computed by others alone.
	Space   string
	Program *Program
	// Events has the attachment handle the space's events, too, in a race with the owner:
	// each still takes effect once. It needs the Program then: an event for which it has no
	// handler ends refused, whatever the owner has.
	Events bool
	// ConflictWindow is for how long a transaction is made again that the commits of others
	// undo; default 30 s.
	ConflictWindow time.Duration

	Logger    *slog.Logger
	Tracer    trace.Tracer
	OnError   func(ErrorInfo)
	OnConsole func(ConsoleInfo)
}

// Attach takes part in a space, and returns when that is in the log. Several runtimes may
// host a space at the same time: the worker that owns it, and any number of applications.
// Each applies its transactions at once to its own copy; whoever commits second is refused,
// takes in what was first, and does again what is still to do.
//
// It needs the rights of a worker on the bus. An application that only sends, calls, reads and
// watches is served better by a Client: its Watch also has a document computed by the owner.
//
// An application attaches to write to a space without an event and a handler (an editor, a
// gateway, a test), and to see what it has at once, computed in its own process.
func Attach(ctx context.Context, bus port.Bus, cfg AttachConfig) (*Attachment, error) {
	own := worker.AttachConfig{
		ID: cfg.ID, Space: cfg.Space, Events: cfg.Events,
		Settings: space.Config{ConflictWindow: cfg.ConflictWindow},
		Logger:   cfg.Logger, Tracer: cfg.Tracer, OnError: cfg.OnError, OnConsole: cfg.OnConsole,
	}
	if p := cfg.Program; p != nil {
		if p.Err() != nil {
			return nil, p.Err()
		}
		own.Program = p.p
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
