package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/performer"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// performCmd is `settle perform`.
type performCmd struct {
	connection
	Action  string        `arg:"" help:"An external action: one of a program in Starlark, or of External in Go."`
	Command []string      `arg:"" optional:"" help:"The command and its arguments, behind --. Not with --http."`
	HTTP    []string      `name:"http" sep:"none" help:"Make the HTTP requests that the tasks ask for, to this host: https://api.example.com, or all hosts below a domain: https://*.example.com. Can be repeated." placeholder:"HOST"`
	Private bool          `help:"With --http: let the names of these hosts lead to addresses that are not public."`
	Queue   string        `help:"Take the tasks of this queue, instead of those that are in none." placeholder:"NAME"`
	Slots   int           `help:"How many commands run at the same time. Further tasks go to other performers, or wait." default:"4"`
	Timeout time.Duration `help:"The longest time of a command, unless the task has a shorter one; 0 for no limit." default:"0s"`
}

// Help describes what a command gets, and what it returns.
func (performCmd) Help() string {
	return `Workers hand the tasks of the action to this process, from all spaces; start as many as are needed, anywhere. The
command reads the input as JSON, which is {"args": [...], "kwargs": {...}} for a call of a workflow, and writes the result as
JSON; no output is null. If it exits with another code than 0, the attempt fails, with the last line that it has written to
stderr as its error:

    TypeOfError: what happened      or      what happened

The environment has SETTLE_ACTION, SETTLE_SPACE, SETTLE_KEY, SETTLE_RUN (of a workflow), SETTLE_ATTEMPT, SETTLE_EVENT (which has started
the task), and SETTLE_IDEMPOTENCY_KEY. A command may run twice for one task: pass SETTLE_IDEMPOTENCY_KEY on to the service that it uses; it is the
same for each attempt, and unique over all spaces and deployments. What the command writes to descriptor 3, JSON in lines, is the progress that others see. It is killed when the task is cancelled. On Ctrl-C, tasks that have not ended
go to other performers.

With --http, no command is needed: the input is {"url": ..., "method": "GET", "headers": {...}, "body": ...}, and the result
{"status": 200, "headers": {...}, "body": ...}. Only the named hosts are asked, redirects included; a status of 429, or of 500 or
above, is a failed attempt. With any other status, 404 included, the task is done, and the program looks at the status of the result. The key goes along as the header Idempotency-Key, and the event as Settle-Event.

A performer that reaches no server waits for one, and prints that once. The user of the connection needs the role performer, and no other.`
}

// Run performs tasks until it is interrupted.
func (c *performCmd) Run(ctx context.Context, io streams) error {
	err := model.CheckName("action", c.Action)
	if err == nil && c.Queue != "" {
		err = model.CheckName("queue", c.Queue)
	}
	switch {
	case err != nil:
		return usage(err)
	case c.Slots < 1:
		return usage(errors.New("--slots must be at least 1"))
	case c.Timeout < 0:
		return usage(errors.New("--timeout must not be negative"))
	case (len(c.Command) == 0) == (len(c.HTTP) == 0):
		return usage(errors.New("name a command, behind --, or hosts that may be asked: --http https://api.example.com"))
	case c.Private && len(c.HTTP) == 0:
		return usage(errors.New("--private is for --http"))
	}
	do := c.perform
	if len(c.HTTP) > 0 {
		call, end, err := c.calls()
		if err != nil {
			return usage(err)
		}
		defer end()
		do = call
	}
	log, flush, err := logOf(ctx, io, "settle-performer")
	if err != nil {
		return usage(err)
	}
	defer flush()
	b, err := c.connect(ctx, io, log)
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Fprintln(io.err, c.begins())
	var mu sync.Mutex
	return performer.Serve(ctx, b, performer.Config{
		Action: c.Action, Queue: c.Queue, Slots: c.Slots, Logger: log,
		Do: func(ctx context.Context, w *performer.Work, progress func(model.Value)) (model.Value, error) {
			out, err := do(ctx, w, progress)
			what := "done"
			if err != nil {
				what = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(io.out, "%s %s %s: %s\n", w.Action, w.Space, w.Key, what)
			return out, err
		},
	})
}

// connect connects as soon as a server can be reached: a performer may start before the server does. Each attempt looks for the server of `settle dev` again.
func (c *performCmd) connect(ctx context.Context, io streams, log *slog.Logger) (*bus.Bus, error) {
	for n := 1; ; n++ {
		here := c.connection
		at, file := here.useLocalServer()
		cfg := here.config("performer/" + c.Action)
		cfg.Logger = log
		b, err := bus.Dial(cfg)
		if err == nil {
			return b, nil
		}
		if err = unreachable(err, at, file); !bus.IsAway(err) && !at.Exited() {
			return nil, err
		}
		if n == 1 {
			fmt.Fprintf(io.err, "waiting for a server: %v; Ctrl-C ends\n", err)
		}
		if pause.For(ctx, pause.Backoff(n)) != nil {
			return nil, err
		}
	}
}

// begins describes what the performer takes from now on.
func (c *performCmd) begins() string {
	from := ""
	if c.Queue != "" {
		from = " of queue " + c.Queue
	}
	return fmt.Sprintf("performing tasks of action %s%s, up to %d at a time; Ctrl-C ends", c.Action, from, c.Slots)
}

// perform runs the command for a task.
func (c *performCmd) perform(ctx context.Context, w *performer.Work, progress func(model.Value)) (model.Value, error) {
	x := performCommand{
		argv: c.Command, timeout: c.limit(w), in: w.In, progress: progress,
		env: []string{
			"SETTLE_ACTION=" + w.Action, "SETTLE_KEY=" + w.Key, "SETTLE_SPACE=" + w.Space, "SETTLE_RUN=" + w.Run, "SETTLE_ATTEMPT=" + strconv.Itoa(w.Attempt),
			"SETTLE_IDEMPOTENCY_KEY=" + w.IdempotencyKey, "SETTLE_EVENT=" + w.Event,
		},
	}
	out, failed := x.run(ctx)
	if failed != nil {
		return model.Value{}, &performer.Error{Type: failed.Type, Message: failed.Message}
	}
	return out, nil
}

// limit returns how long a task may take, 0 for no limit.
func (c *performCmd) limit(w *performer.Work) time.Duration {
	if w.Timeout > 0 && (c.Timeout == 0 || w.Timeout < c.Timeout) {
		return w.Timeout
	}
	return c.Timeout
}
