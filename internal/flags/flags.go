// Package flags declares the options of a worker as flags of the commands that run workers. Names,
// environment variables and defaults follow from the configuration in Go: see package options.
package flags

import (
	"github.com/alecthomas/kong"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/optionflags"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/worker"
)

// Worker are the flags of a command that runs workers.
type Worker struct {
	worker.Options
	Starlark star.Limits    `embed:"" prefix:"starlark-"`
	Live     live.Config    `embed:""`
	HTTP     gateway.Config `embed:"" prefix:"http-"`
}

// Config returns the configuration of a worker with these options.
func (w *Worker) Config() settle.WorkerConfig {
	return settle.WorkerConfig{Options: w.Options, Starlark: w.Starlark, Live: w.Live, HTTP: w.HTTP}
}

// Names makes a parser give the flags of w, which is a part of its grammar, the environment variables
// and the defaults of package options.
func Names(w *Worker) kong.Option { return optionflags.Of(w) }
