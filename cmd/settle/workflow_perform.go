package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
)

// workflowPerformCmd is `settle workflow perform`.
type workflowPerformCmd struct {
	inName
	Space   string        `arg:"" help:"A space."`
	Action  string        `arg:"" help:"An action of its program that no worker performs: one of a program in Starlark with watched = True."`
	Command []string      `arg:"" help:"The command and its arguments, behind --."`
	AtATime int           `help:"How many commands run at the same time." default:"4"`
	Timeout time.Duration `help:"The longest time of a command, unless the workflow has a shorter one." default:"1m"`
}

// Help describes what a command gets, and what it returns.
func (workflowPerformCmd) Help() string {
	return `The command is started for each pending task of the action. It reads the arguments as JSON,
{"args": [...], "kwargs": {...}}, and writes the result as JSON; no output is null. If it exits with another code
than 0, the action fails, with the last line that it has written to stderr as its error:

    TypeOfError: what happened      or      what happened

The environment has SETTLE_KEY, SETTLE_SPACE, SETTLE_RUN, SETTLE_ATTEMPT, SETTLE_EVENT and SETTLE_IDEMPOTENCY_KEY, as that of
` + "`settle perform`" + `. A command may run twice for one task: pass SETTLE_IDEMPOTENCY_KEY on to the service that it uses.

Start one such process per space and action; two would each run the command, and so does a performer that gets the same tasks:
` + "`settle perform`" + ` performs an action of all spaces, in any number of processes, and is what to use unless the action is declared
with watched = True.`
}

// Run performs tasks until it is interrupted.
func (c *workflowPerformCmd) Run(ctx context.Context, io streams) error {
	if err := errors.Join(model.CheckName("space", c.Space), model.CheckName("action", c.Action)); err != nil {
		return usage(err)
	}
	if c.AtATime < 1 {
		return usage(errors.New("--at-a-time must be at least 1"))
	}
	return c.use(ctx, io, ofSpaces(c.Space), func(b *bus.Bus, client *settle.Client) error {
		p := performing{cmd: c, io: io, client: client, deployment: b.Prefix(), underWay: map[taskID]bool{}, ended: make(chan taskID)}
		return p.run(ctx)
	})
}

// taskID is a task, and which of its starts.
type taskID struct {
	key string
	n   int64
}

// performing performs the tasks of an action.
type performing struct {
	cmd        *workflowPerformCmd
	io         streams
	client     *settle.Client
	deployment string // its prefix
	underWay   map[taskID]bool
	// reported are tasks whose end was sent, until the document has it.
	reported map[taskID]bool
	ended    chan taskID
}

func (p *performing) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	docs := make(chan model.Value)
	g.Go(func() error { // ends with ctx
		for u, err := range p.client.Space(p.cmd.Space).Watch(ctx, p.cmd.Action) {
			if err != nil {
				return err
			}
			select {
			case docs <- u.Value:
			case <-ctx.Done():
			}
		}
		return nil
	})
	g.Go(func() error { // ends with ctx
		p.reported = map[taskID]bool{}
		var doc model.Value
		hint := sync.OnceFunc(p.hint)
		for {
			select {
			case <-ctx.Done():
				return nil
			case doc = <-docs:
				if doc.Get("tasks").Len() == 0 {
					hint()
				}
			case id := <-p.ended:
				delete(p.underWay, id)
				p.reported[id] = true
			}
			p.begin(ctx, g, doc)
		}
	})
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil // interrupted, which is the normal end
	}
	return err
}

// hint says which tasks are expected, because those of an action that is not watched never come.
func (p *performing) hint() {
	fmt.Fprintf(p.io.err, "document %s of space %s has no task: those of watched actions are expected in it; `settle perform %s` gets the others\n", p.cmd.Action, p.cmd.Space, p.cmd.Action)
}

// begin starts commands for pending tasks.
func (p *performing) begin(ctx context.Context, g *errgroup.Group, doc model.Value) {
	there := map[taskID]bool{}
	for key, entry := range doc.Get("tasks").All() {
		t := space.TaskOf(key, entry)
		id := taskID{key, t.N}
		there[id] = true
		if t.State != space.TaskPending || p.underWay[id] || p.reported[id] || len(p.underWay) >= p.cmd.AtATime {
			continue
		}
		p.underWay[id] = true
		g.Go(func() error { // ends with the command
			err := p.perform(ctx, t)
			select {
			case p.ended <- id:
			case <-ctx.Done():
			}
			return err
		})
	}
	for id := range p.reported { // any order: each on its own
		if !there[id] {
			delete(p.reported, id)
		}
	}
}

// perform runs the command for a task, and reports how it has ended.
func (p *performing) perform(ctx context.Context, t space.Task) error {
	out, failed := p.command(ctx, t)
	if ctx.Err() != nil {
		return nil
	}
	c := space.Completion{Key: t.Key, N: t.N, Out: out}
	what := "done"
	if failed != nil {
		c.Out, c.Err = model.Value{}, failed.Text()
		what = failed.Error()
	}
	fmt.Fprintf(p.io.out, "%s %s: %s\n", p.cmd.Action, t.Key, what)
	_, err := p.client.Send(ctx, settle.Outgoing{Space: p.cmd.Space, Stream: p.cmd.Action, ID: settle.NewID(), Payload: c.Value()})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// command runs the command for a task, and returns its result or its error.
func (p *performing) command(ctx context.Context, t space.Task) (out model.Value, failed *runs.ActionError) {
	timeout := p.cmd.Timeout
	if ms, is := t.In.Get("timeout").AsInt(); is {
		timeout = min(timeout, time.Duration(ms)*time.Millisecond)
	}
	run, _ := t.In.Get("run").AsString()
	x := performCommand{
		argv: p.cmd.Command, timeout: timeout, in: model.Object(model.F("args", t.In.Get("args")), model.F("kwargs", t.In.Get("kwargs"))),
		env: []string{
			"SETTLE_KEY=" + t.Key, "SETTLE_SPACE=" + p.cmd.Space, "SETTLE_RUN=" + run, "SETTLE_ATTEMPT=" + t.In.Get("attempt").String(),
			"SETTLE_IDEMPOTENCY_KEY=" + model.IdempotencyKey(p.deployment, p.cmd.Space, p.cmd.Action, t.Key), "SETTLE_EVENT=" + t.Event,
		},
	}
	return x.run(ctx)
}
