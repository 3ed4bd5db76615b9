// Package flags declares the options of a worker as flags of the commands that run workers. Names,
// environment variables and defaults follow from the configuration in Go: see package options.
package flags

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/options"
	"github.com/settlehq/settle/program/star"
)

// Worker are the flags of a command that runs workers.
type Worker struct {
	settle.Options
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
func Names(w *Worker) kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		left := map[any]options.Option{}
		for _, o := range options.Of(w) {
			left[o.Value.Addr().Interface()] = o
		}
		err := kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
			if f, ok := n.(*kong.Flag); ok {
				if o, ok := left[f.Target.Addr().Interface()]; ok {
					delete(left, f.Target.Addr().Interface())
					if f.Name != o.Flag {
						return fmt.Errorf("the flag of %s is --%s, and --%s in package options", o.Path, f.Name, o.Flag)
					}
					describe(f, o)
				}
			}
			return next(nil)
		})
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d options of a worker have no flag", len(left))
		}
		return err
	})
}

// describe adds the environment variable and the default of an option to its flag.
func describe(f *kong.Flag, o options.Option) {
	f.Envs = []string{o.Env}
	f.Tag.Envs = f.Envs
	if o.Default != "" {
		f.Default, f.HasDefault = o.Default, true
	}
}
