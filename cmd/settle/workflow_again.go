package main

import (
	"context"
	"fmt"
	"time"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/runs"
)

// workflowRetryCmd is `settle workflow retry`.
type workflowRetryCmd struct {
	inName
	Space   string        `arg:"" help:"A space."`
	ID      string        `arg:"" name:"run" help:"A run that has failed, or was cancelled."`
	Latest  bool          `help:"Let it go on in the version of the workflow that the program has now. It is refused if the steps that are kept would have been others there."`
	Wait    bool          `help:"Wait for the end, and print the result. The exit code is 1 unless the run is done."`
	Timeout time.Duration `help:"How long to wait for a worker, or with --wait for the end." default:"30s"`
}

// Run tries a run again.
func (c *workflowRetryCmd) Run(ctx context.Context, io streams) error {
	o := goingOn{in: &c.inName, space: c.Space, id: c.ID, wait: c.Wait, timeout: c.Timeout}
	return o.run(ctx, io, func(ctx context.Context, r flow.Runs) (string, error) {
		goes := "goes on from the step that failed"
		if s, err := r.Status(ctx, c.ID); err == nil && s.State == flow.Cancelled {
			goes = "goes on where it was cancelled"
		}
		return goes, r.Retry(ctx, c.ID, latest(c.Latest)...)
	})
}

// workflowResetCmd is `settle workflow reset`.
type workflowResetCmd struct {
	inName
	Space   string        `arg:"" help:"A space."`
	ID      string        `arg:"" name:"run" help:"A run, which may have ended."`
	Step    int           `arg:"" help:"The last step that is kept: see 'settle workflow history'."`
	Latest  bool          `help:"Let it go on in the version of the workflow that the program has now. It is refused if the steps that are kept would have been others there."`
	Wait    bool          `help:"Wait for the end, and print the result. The exit code is 1 unless the run is done."`
	Timeout time.Duration `help:"How long to wait for a worker, or with --wait for the end." default:"30s"`
}

// Run resets a run.
func (c *workflowResetCmd) Run(ctx context.Context, io streams) error {
	if c.Step < 1 {
		return usage(fmt.Errorf("the step is %d; `settle workflow history %s %s` numbers them from 1 on", c.Step, c.Space, c.ID))
	}
	o := goingOn{in: &c.inName, space: c.Space, id: c.ID, wait: c.Wait, timeout: c.Timeout}
	return o.run(ctx, io, func(ctx context.Context, r flow.Runs) (string, error) {
		return fmt.Sprintf("goes on from step %d", c.Step), r.Reset(ctx, c.ID, c.Step, latest(c.Latest)...)
	})
}

func latest(is bool) (options []flow.AgainOption) {
	if is {
		options = append(options, flow.Latest())
	}
	return options
}

// goingOn is a command after which a run goes on.
type goingOn struct {
	in        *inName
	space, id string
	wait      bool
	timeout   time.Duration
}

func (o *goingOn) run(ctx context.Context, io streams, operate func(context.Context, flow.Runs) (done string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return o.in.withRuns(ctx, io, o.space, func(r flow.Runs) error {
		done, err := operate(ctx, r)
		if err != nil {
			return err
		}
		if o.wait {
			return printEnd(ctx, io, r, o.id, o.timeout)
		}
		fmt.Fprintf(io.out, "%s: %s\n", o.id, done)
		return nil
	})
}

// workflowHistoryCmd is `settle workflow history`.
type workflowHistoryCmd struct {
	inName
	Space string `arg:"" help:"A space."`
	ID    string `arg:"" name:"run" help:"A run, which may have ended."`
	JSON  bool   `name:"json" help:"Print a JSON object per line, with whole values."`
}

// Run prints the steps of a run.
func (c *workflowHistoryCmd) Run(ctx context.Context, io streams) error {
	return c.withRuns(ctx, io, c.Space, func(r flow.Runs) error {
		h, err := r.History(ctx, c.ID)
		if err != nil {
			return err
		}
		for i := range h.Events {
			if c.JSON {
				if err := printLine(io.out, &h.Events[i]); err != nil {
					return err
				}
				continue
			}
			printEvent(io, &h.Events[i])
		}
		switch {
		case h.Gone() == h.Status.Steps:
			fmt.Fprintf(io.err, "the steps of run %s are not kept any more\n", c.ID)
		case h.Gone() > 0:
			fmt.Fprintf(io.err, "the steps of run %s before %d are not kept any more\n", c.ID, h.Gone()+1)
		}
		if !c.JSON {
			printStatus(io, h.Status)
		}
		return nil
	})
}

// maxPrinted is how much of a value a line of a history has.
const maxPrinted = 200

func printEvent(io streams, e *flow.Event) {
	text := string(e.Kind)
	switch e.Kind {
	case runs.EventDone, runs.EventFailed:
		text = fmt.Sprintf("%s (line %d, %s), attempt %d, %s", e.Action, e.Line, e.Work, e.Attempt, e.Kind)
	case runs.EventSignal:
		text = "signal " + e.Signal
	case runs.EventMet:
		text = fmt.Sprintf("condition (line %d)", e.Line)
	case runs.EventCancel:
		text = "cancel: " + e.Why
	case runs.EventRetry, runs.EventReset:
		text = fmt.Sprintf("%s, after %d steps", e.Kind, e.Steps)
	}
	switch {
	case e.Error != nil:
		text += fmt.Sprintf(": %.*s", maxPrinted, e.Error.Error())
	case len(e.Value) > maxPrinted:
		text += fmt.Sprintf(": %.*s... (%d bytes)", maxPrinted, e.Value, len(e.Value))
	case e.Value != nil:
		text += ": " + string(e.Value)
	}
	if e.Started > 0 {
		text += fmt.Sprintf("; %d started", e.Started)
	}
	fmt.Fprintf(io.out, "%4d  %s  %s\n", e.Step, time.UnixMilli(e.At).UTC().Format(time.RFC3339), text)
}
