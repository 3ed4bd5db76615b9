package workflows

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/bench/harness"
)

// Engine runs workflows.
type Engine interface {
	Name() string
	About() string
	// Start starts the engine at a site. An error that is ErrNotRun means that the engine cannot be run there.
	Start(ctx context.Context, at *harness.Site, a *Actions) (System, error)
}

// System is an engine that runs. Its workers are in this process.
type System interface {
	// Start starts a run of a program under an id, and returns when that is durable.
	Start(ctx context.Context, program, id string, n int64) error
	// Result waits for the result of a run.
	Result(ctx context.Context, id string) (int64, error)
	Parts() harness.Parts
	Close() error
}

// ErrNotRun is in errors that say why an engine is not run.
var ErrNotRun = errors.New("not run")

func notRun(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotRun, fmt.Sprintf(format, args...))
}

// Engines are all engines.
func Engines() []Engine {
	return append([]Engine{settleEngine{embedded: true}, settleEngine{}, settleEngine{performers: true}}, others...)
}

// others are engines with modules of their own, which a build with the tag counts does without. They keep a database, so
// that they run where an acknowledged write is on the disk.
var others []Engine

// steps is what a program in Go does: it is an adapter of an engine.
type steps interface {
	// call starts an action. The result is waited for with get.
	call(action string, in int64) future
	sleep(seconds int64) error
}

type future interface{ get() (int64, error) }
