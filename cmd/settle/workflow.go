package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// workflowCmd is `settle workflow`.
type workflowCmd struct {
	Start   workflowStartCmd   `cmd:"" help:"Start a run of a workflow."`
	Status  workflowStatusCmd  `cmd:"" help:"Print the state of a run, its parent and its children, and what it waits for."`
	History workflowHistoryCmd `cmd:"" help:"Print what a run has done, step by step, as far as that is kept."`
	List    workflowListCmd    `cmd:"" help:"List runs of a space, the one started last first."`
	Search  workflowSearchCmd  `cmd:"" help:"Find runs in several spaces, or in all."`
	Result  workflowResultCmd  `cmd:"" help:"Wait for the end of a run, and print its result."`
	Watch   workflowWatchCmd   `cmd:"" help:"Follow a run until it ends, with its graph on a terminal."`
	Signal  workflowSignalCmd  `cmd:"" help:"Send a signal to a run."`
	Cancel  workflowCancelCmd  `cmd:"" help:"Cancel a run."`
	Retry   workflowRetryCmd   `cmd:"" help:"Let a run that has failed, or was cancelled, go on from the step that failed."`
	Reset   workflowResetCmd   `cmd:"" help:"Let a run go on from one of its steps; what it has done after it is dropped."`
	Graph   workflowGraphCmd   `cmd:"" help:"Print the graph of a workflow of a program."`
	Perform workflowPerformCmd `cmd:"" help:"Perform an action of a space with a command, until interrupted."`
}

// withRuns connects, and calls f with the runs of a space.
func (c *inName) withRuns(ctx context.Context, io streams, space string, f func(r flow.Runs) error) error {
	return c.withRunsOn(ctx, io, space, func(_ *bus.Bus, r flow.Runs) error { return f(r) })
}

// withRunsOn is withRuns with the connection.
func (c *inName) withRunsOn(ctx context.Context, io streams, space string, f func(b *bus.Bus, r flow.Runs) error) error {
	if err := model.CheckName("space", space); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, ofSpaces(space), func(b *bus.Bus, client *settle.Client) error {
		err := f(b, flow.In(client.Space(space)))
		var refused *flow.Refusal
		switch is := errors.As(err, &refused); {
		case errors.Is(err, flow.ErrInvalid):
			return usage(err)
		case is && refused.Reason == runs.NoRun:
			return fmt.Errorf("%w; `settle workflow list %s` lists those that it has", err, space)
		case errors.Is(err, flow.ErrNoRun):
			return fmt.Errorf("%w in space %s; `settle workflow list %s` lists those that it has", err, space, space)
		}
		return usageIfName(err)
	})
}

// ofJSON parses an argument, "" for none.
func ofJSON(what, text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	v, err := model.ParseValue([]byte(text))
	if err != nil {
		return nil, usage(fmt.Errorf("%s is not JSON: %w", what, err))
	}
	return v, nil
}

// workflowStartCmd is `settle workflow start`.
type workflowStartCmd struct {
	inName
	Space     string            `arg:"" help:"The space that the run lives in."`
	Workflow  string            `arg:"" help:"The workflow, of the program that the space runs."`
	Args      string            `arg:"" optional:"" name:"arguments" help:"A JSON object with the arguments by name."`
	ID        *string           `name:"id" help:"The ID of the run: to start it again has no effect. Default: a random one, which is printed." placeholder:"RUN"`
	Deadline  *time.Duration    `help:"How long the run may take; then it fails with a DeadlineError. Default: what the workflow says."`
	Priority  int               `help:"Of the calls of an action that wait in the space, those of runs with the highest priority are performed first: from -9 to 9." default:"0"`
	Attribute map[string]string `help:"A value by which 'settle workflow list' finds the run: JSON of a number or a boolean, or else a text." placeholder:"KEY=VALUE" mapsep:"none"`
	Wait      bool              `help:"Wait for the end, and print the result. The exit code is 1 unless the run is done."`
	Timeout   time.Duration     `help:"How long to wait for a worker, or with --wait for the end." default:"30s"`
}

// Run starts a run.
func (c *workflowStartCmd) Run(ctx context.Context, io streams) error {
	args, err := ofJSON("the argument", c.Args)
	if err != nil {
		return err
	}
	if c.Deadline != nil && *c.Deadline <= 0 {
		return usage(fmt.Errorf("the deadline is %v; it must be positive", *c.Deadline))
	}
	id := ""
	switch {
	case c.ID == nil:
		id = "run-" + strings.ToLower(settle.NewID().String())
		id = id[:min(len(id), 24)]
	case *c.ID == "": // a variable of a shell that is not set, perhaps
		return usage(errors.New("--id is empty; give the run an ID, or leave --id out for a random one"))
	default:
		id = *c.ID
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.withRuns(ctx, io, c.Space, func(r flow.Runs) error {
		options := []flow.StartOption{flow.Attributes(attributesOf(c.Attribute))}
		if c.Priority != 0 {
			options = append(options, flow.Priority(c.Priority))
		}
		if c.Deadline != nil {
			options = append(options, flow.EndWithin(*c.Deadline))
		}
		fresh, err := r.Start(ctx, c.Workflow, id, args, options...)
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("run %s: no worker has started it within %v; it will start when one serves space %s (%w)", id, c.Timeout, c.Space, err)
		case err != nil:
			return err
		case c.Wait:
			return printEnd(ctx, io, r, id, c.Timeout)
		case !fresh:
			fmt.Fprintf(io.out, "%s: exists already\n", id)
		default:
			fmt.Fprintf(io.out, "%s: started\n", id)
		}
		return nil
	})
}

// printEnd waits for the end of a run, and prints its result.
func printEnd(ctx context.Context, io streams, r flow.Runs, id string, timeout time.Duration) error {
	s, err := r.Wait(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("run %s has not ended within %v; it goes on", id, timeout)
	case err != nil:
		return err
	case s.State == flow.Failed && s.Error != nil:
		return fmt.Errorf("run %s has failed: %w", id, s.Error)
	case s.Error != nil:
		return fmt.Errorf("run %s is %s: %w", id, s.State, s.Error)
	}
	fmt.Fprintln(io.out, s.Result)
	return nil
}

// workflowStatusCmd is `settle workflow status`.
type workflowStatusCmd struct {
	inName
	Space  string `arg:"" help:"A space."`
	ID     string `arg:"" name:"run" help:"A run."`
	Graph  bool   `help:"Print the graph of the run, with the state of each node: done, running, waiting or failed."`
	Format string `help:"With --graph: text, or svg for a drawing." enum:"text,svg" default:"text"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// statusLine is a run as `settle workflow status --json` prints it.
type statusLine struct {
	Run      string            `json:"run"`
	Workflow string            `json:"workflow"`
	Version  string            `json:"version,omitzero"`
	State    string            `json:"state"`
	Started  int64             `json:"started"`
	Ended    int64             `json:"ended,omitzero"`
	Steps    int               `json:"steps,omitzero"`
	Priority int               `json:"priority,omitzero"`
	Undoing  *runs.ActionError `json:"undoing,omitzero"`
	Waiting  []string          `json:"waiting,omitzero"`
	Progress []progressLine    `json:"progress,omitzero"`
	// Unperformed are the actions among those that it waits for which have no performer.
	Unperformed []fleet.Unperformed `json:"unperformed,omitzero"`
	Result      model.Value         `json:"result,omitzero"`
	Attributes  model.Value         `json:"attributes,omitzero"`
	Error       *runs.ActionError   `json:"error,omitzero"`
	Parent      string              `json:"parent,omitzero"`
	Children    []childLine         `json:"children,omitzero"`
}

func lineOf(s *flow.Status) statusLine {
	return statusLine{
		Run: s.ID, Workflow: s.Workflow, Version: s.Version, State: string(s.State), Started: s.Started, Ended: s.Ended, Steps: s.Steps,
		Priority: s.Priority, Undoing: s.Undoing, Waiting: flow.Describe(s), Attributes: s.Attributes, Result: s.Result, Error: s.Error, Parent: parentText(s), Children: childLines(s),
	}
}

// Run prints the state of a run.
func (c *workflowStatusCmd) Run(ctx context.Context, io streams) error {
	return c.withRunsOn(ctx, io, c.Space, func(b *bus.Bus, r flow.Runs) error {
		run, now := r.Reader(c.ID), io.now() // of what is read next
		s, err := run.Status(ctx)
		if err != nil {
			return err
		}
		if c.Graph && !c.JSON {
			return c.drawn(io, s)
		}
		progress, err := progressOf(ctx, run, s)
		if err != nil {
			return err
		}
		idle := idleFor(ctx, b, c.Space, s)
		if c.JSON {
			line := lineOf(s)
			line.Progress, line.Unperformed = progress, idle
			return printLine(io.out, line)
		}
		d := textOf(io)
		d.now, d.idle = now, idle
		return printLines(io, append(d.lines(s), progressText(progress)...))
	})
}

// idleFor returns the actions that a run waits for and that have no performer, as the workers know it; none if no worker can be asked.
func idleFor(ctx context.Context, b fleet.Bus, space string, s *flow.Status) []fleet.Unperformed {
	if !slices.ContainsFunc(s.Waiting, func(w workflow.Open) bool { return w.Action != "" }) && !s.Opaque {
		return nil
	}
	list, _ := fleet.UnperformedFor(ctx, b, space) // beside what the log says
	return slices.DeleteFunc(list, func(u fleet.Unperformed) bool {
		return u.Last.Sub(u.Since) < idleAfter || !s.Opaque && !slices.ContainsFunc(s.Waiting, func(w workflow.Open) bool { return w.Action == u.Action })
	})
}

// idleAfter is how long tasks have to wait for a performer before that is said: one may be about to start.
const idleAfter = time.Second

// drawn prints the graph of a run, with the state of its nodes.
func (c *workflowStatusCmd) drawn(io streams, s *flow.Status) error {
	if c.Format == "svg" || s.State != flow.Running || s.Opaque {
		return c.graph(io, s)
	}
	return printLines(io, textOf(io).frame(s, math.MaxInt))
}

// textOf draws a run for what it is printed on.
func textOf(io streams) runText {
	screen, _ := sheetFor(io.out)
	return runText{sheet: screen, now: io.now()}
}

func printLines(io streams, lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(io.out, line); err != nil {
			return err
		}
	}
	return nil
}

// progressLine is what the performer of a call has reported last.
type progressLine struct {
	Action  string      `json:"action"`
	Call    string      `json:"call"` // the last part of its key
	Attempt int         `json:"attempt"`
	Value   model.Value `json:"value"`
}

// progressOf reads the progress of the first calls that a run waits for.
func progressOf(ctx context.Context, run *flow.Reader, s *flow.Status) (list []progressLine, err error) {
	calls := s.Waiting[:min(len(s.Waiting), maxWaiting)]
	values, err := run.Progress(ctx, s, calls)
	for i, v := range values {
		if w := &calls[i]; !v.IsAbsent() {
			list = append(list, progressLine{w.Action, w.ID, w.Attempt, v})
		}
	}
	return list, err
}

// progressText prints each progress on a line, at most its first characters.
func progressText(list []progressLine) (lines []string) {
	const most = 200
	for _, p := range list {
		text := []rune(p.Value.String())
		if len(text) > most {
			text = append(text[:most], '…')
		}
		lines = append(lines, fmt.Sprintf("  progress of %s, call %s: %s", p.Action, p.Call, string(text)))
	}
	return lines
}

// graph prints the graph of a run whose nodes are not followed.
func (c *workflowStatusCmd) graph(io streams, s *flow.Status) error {
	switch {
	case s.Graph == nil:
		return fmt.Errorf("run %s is %s, and its graph is not in the space any more", c.ID, s.State)
	case s.Opaque:
		fmt.Fprintln(io.err, "the state of the nodes is not known here: the code of the run calls functions of the worker")
	}
	if c.Format == "svg" {
		return printSVG(io, s.Graph, s.Mark)
	}
	fmt.Fprint(io.out, s.Graph.Text(stateOf(s)))
	return nil
}

func printSVG(io streams, g *workflow.Graph, mark func(fn, node int) workflow.Mark) error {
	text, err := g.SVG(mark)
	fmt.Fprint(io.out, text)
	return err
}

// stateOf returns the notes about the nodes of a graph in a run.
func stateOf(s *flow.Status) func(fn, node int) string {
	at := map[[2]int]int{}
	for _, w := range s.Waiting {
		at[[2]int{w.Func, w.Node}]++
	}
	return func(fn, node int) string {
		if n := at[[2]int{fn, node}]; n > 0 {
			return fmt.Sprintf("<- %d %s", n, s.Mark(fn, node))
		}
		return string(s.Mark(fn, node))
	}
}

// printStatus prints a run without its graph.
func printStatus(io streams, s *flow.Status) {
	screen, _ := sheetFor(io.out)
	for _, line := range (runText{sheet: screen, now: io.now()}).lines(s) {
		fmt.Fprintln(io.out, line)
	}
}

// workflowResultCmd is `settle workflow result`.
type workflowResultCmd struct {
	inName
	Space   string        `arg:"" help:"A space."`
	ID      string        `arg:"" name:"run" help:"A run."`
	Timeout time.Duration `help:"How long to wait." default:"30s"`
}

// Run prints the result of a run.
func (c *workflowResultCmd) Run(ctx context.Context, io streams) error {
	return c.withRuns(ctx, io, c.Space, func(r flow.Runs) error {
		ctx, cancel := context.WithTimeout(ctx, c.Timeout) // without the time to connect
		defer cancel()
		if _, err := r.Status(ctx, c.ID); errors.Is(err, flow.ErrNoRun) {
			return err
		}
		return printEnd(ctx, io, r, c.ID, c.Timeout)
	})
}

// workflowSignalCmd is `settle workflow signal`.
type workflowSignalCmd struct {
	inName
	Space   string        `arg:"" help:"A space."`
	ID      string        `arg:"" name:"run" help:"A run."`
	Signal  string        `arg:"" help:"The name that the workflow waits for."`
	Value   string        `arg:"" optional:"" help:"JSON."`
	Timeout time.Duration `help:"How long to wait for a worker." default:"10s"`
}

// Run sends a signal.
func (c *workflowSignalCmd) Run(ctx context.Context, io streams) error {
	value, err := ofJSON("the value", c.Value)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.withRuns(ctx, io, c.Space, func(r flow.Runs) error {
		before, _ := r.Status(ctx, c.ID) // an error is that of the signal, too
		if err := r.Signal(ctx, c.ID, c.Signal, value); err != nil {
			return err
		}
		fmt.Fprintf(io.out, "%s: signal %s received\n", c.ID, c.Signal)
		if note := unexpected(before, c.Signal); note != "" {
			fmt.Fprintln(io.err, note)
		}
		return nil
	})
}

// unexpected says that a run did not wait for a signal when it was sent, "" if it did, or if that is not known. Its name may be misspelt.
func unexpected(s *flow.Status, signal string) string {
	if s == nil || s.State != flow.Running || s.Opaque && len(s.Waiting) == 0 {
		return ""
	}
	waits := map[string]bool{}
	for i := range s.Waiting {
		if name := s.Waiting[i].Signal; name != "" {
			waits["signal "+name] = true
		}
	}
	switch {
	case waits["signal "+signal]:
		return ""
	case len(waits) == 0:
		return fmt.Sprintf("the run waits for no signal now; %s is kept until it waits for it", signal)
	}
	return fmt.Sprintf("the run waits for %s now; signal %s is kept until it waits for it", strings.Join(sortedKeys(waits), ", "), signal)
}

// workflowCancelCmd is `settle workflow cancel`.
type workflowCancelCmd struct {
	inName
	Space   string        `arg:"" help:"A space."`
	ID      string        `arg:"" name:"run" help:"A run."`
	Reason  string        `help:"The reason, which is the message of its error." placeholder:"TEXT"`
	AtOnce  bool          `name:"at-once" help:"End the run without its undo steps, or during them."`
	Timeout time.Duration `help:"How long to wait for a worker." default:"10s"`
}

// Run cancels a run.
func (c *workflowCancelCmd) Run(ctx context.Context, io streams) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.withRuns(ctx, io, c.Space, func(r flow.Runs) error {
		cancel := r.Cancel
		if c.AtOnce {
			cancel = r.CancelAtOnce
		}
		if err := cancel(ctx, c.ID, c.Reason); err != nil {
			return err
		}
		s, err := r.Status(ctx, c.ID)
		if err != nil {
			return fmt.Errorf("the cancellation was received, and the state of the run cannot be read: %w", err)
		}
		fmt.Fprintf(io.out, "%s: %s\n", c.ID, afterCancel(s))
		return nil
	})
}

// afterCancel describes a run that has received its cancellation. One that executed undo steps already ends with the error that
// they are executed for.
func afterCancel(s *flow.Status) string {
	switch {
	case s.State == flow.Running && s.Undoing != nil && s.Undoing.Type != workflow.CancelledError:
		return fmt.Sprintf("had failed before, and executes its undo steps; then it ends with %s; --at-once ends it now", display.FirstLine(s.Undoing.Error()))
	case s.State == flow.Running:
		return "executes its undo steps; then it is cancelled"
	case s.State != flow.Cancelled && s.Error != nil:
		return fmt.Sprintf("has ended: it has %s with %s", s.State, display.FirstLine(s.Error.Error()))
	}
	return string(s.State)
}

// workflowGraphCmd is `settle workflow graph`.
type workflowGraphCmd struct {
	File   string `arg:"" help:"A program in Starlark."`
	Name   string `arg:"" optional:"" name:"workflow" help:"One of its workflows. Default: the only one."`
	Format string `help:"text, dot (Graphviz), mermaid, svg or json." enum:"text,dot,mermaid,svg,json" default:"text"`
}

// Run prints the graph of a workflow.
func (c *workflowGraphCmd) Run(io streams) error {
	src, err := program.Read(program.NameOf(c.File), c.File)
	if err != nil {
		return usage(err)
	}
	p, err := star.Compile(src, star.Options{})
	if err != nil {
		return err
	}
	var names []string
	for _, d := range p.Workflows() {
		if names = append(names, d.Name); c.Name == d.Name || c.Name == "" && len(p.Workflows()) == 1 {
			return c.print(io, d)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf(`%s has no workflow: write workflow("name", run) below a function run`, c.File)
	}
	return usage(fmt.Errorf("%s has the workflows %s; name one of them", c.File, strings.Join(names, ", ")))
}

func (c *workflowGraphCmd) print(io streams, d *runs.Definition) error {
	switch c.Format {
	case "dot":
		fmt.Fprint(io.out, d.Graph.DOT())
	case "svg":
		return printSVG(io, d.Graph, nil)
	case "mermaid":
		fmt.Fprint(io.out, d.Graph.Mermaid())
	case "json":
		data, err := d.Graph.Encode()
		if err != nil {
			return err
		}
		return printIndented(io.out, json.RawMessage(data))
	default:
		fmt.Fprint(io.out, d.Graph.Text(nil))
		fmt.Fprintln(io.out, "\nversion", d.Version)
	}
	return nil
}
