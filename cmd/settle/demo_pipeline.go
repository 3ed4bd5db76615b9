package main

import (
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/demo"
)

// demoPipelineCmd is `settle demo pipeline`.
type demoPipelineCmd struct {
	Days       int           `default:"4" help:"How many days of the built-in flights: each is a run of the workflow, in a space of its own."`
	Workers    int           `default:"2" help:"Workers that share the runs."`
	Partitions int           `default:"4" help:"Partitions of the deployment, which the workers divide among themselves."`
	Kill       int           `default:"0" help:"Kill a worker that serves a run N times, the last time while a run waits for its approval. A new one joins a moment later." placeholder:"N"`
	Verify     bool          `help:"Compare the reports with those of a plain loop over the same flights, and the actions in them with those that were performed. The exit code is 1 if something differs."`
	InProcess  bool          `help:"Run workers and coordinator in this process. By default each is a process of its own, killed by SIGKILL."`
	Pace       time.Duration `default:"25ms" help:"How long an action takes." placeholder:"DURATION"`
	Sleep      time.Duration `default:"2s" help:"How long each run sleeps before it waits for its approval." placeholder:"DURATION"`
	Approve    time.Duration `name:"approve-after" default:"1s" help:"How long each run waits before the demo approves it, in place of a person." placeholder:"DURATION"`
	Fsync      string        `default:"always" enum:"always,interval" help:"When the embedded server syncs an acknowledged write to disk: ${enum} (every 2 minutes). A crash of the process loses nothing either way."`
	JSON       string        `name:"json" help:"Write the figures as JSON to FILE; - is standard output, and everything else then goes to standard error." placeholder:"FILE"`
}

// Run runs the demo. The exit codes are those of `settle demo flights`.
func (c *demoPipelineCmd) Run(ctx context.Context, io streams) error {
	o := demo.Pipeline{
		Days: c.Days, Workers: c.Workers, Partitions: c.Partitions, Kill: c.Kill, Processes: !c.InProcess, Pace: c.Pace, Sleep: c.Sleep, Hold: c.Approve,
	}
	if c.Fsync == "interval" {
		o.Fsync = embedded.FsyncInterval
	}
	if err := o.Check(); err != nil {
		return usage(err)
	}
	out, err := openFigures(c.JSON, io)
	if err != nil {
		return usage(err)
	}
	people := io.out
	if c.JSON == "-" {
		people = io.err
	}
	rep, err := demo.RunPipeline(ctx, o, people)
	switch {
	case ctx.Err() != nil:
		return exitError{130, errors.New("interrupted; nothing was verified")}
	case err != nil:
		return err
	}
	err = rep.Summary(people, c.Verify)
	if out != nil {
		err = errors.Join(err, out.put(rep))
	}
	if err == nil && c.Verify && !rep.Verified {
		return exitError{1, errors.New("the runs are not verified")}
	}
	return err
}
