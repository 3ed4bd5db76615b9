package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
)

// treeCmd is `settle tree`.
type treeCmd struct {
	connection
	Event  string `arg:"" help:"The event's id."`
	Space  string `short:"s" help:"The space of the event, if several spaces have an event with this id." placeholder:"SPACE"`
	Stream string `help:"The stream of the event, if several streams have an event with this id." placeholder:"STREAM"`
	Events int    `help:"The largest number of events to print." default:"1000"`
	Depth  int    `help:"The largest number of generations to print." default:"100"`
	Full   bool   `help:"Print errors and results in full."`

	Timeout time.Duration `help:"How long the command may take." default:"1m"`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// Help explains what printTree prints.
func (treeCmd) Help() string {
	return "P parked: its sender's commit is not released yet. . queued in its lane. w waits for its time. ✓ handled. ✗ failed or refused. - dropped (its sender's transaction was undone) or cancelled. ? forgotten: it is older than the horizon. ! unknown: its lane or log is missing. The first 5 generations are indented; deeper ones show their number. Times are relative to the first line."
}

// Run prints what an event has caused.
func (c *treeCmd) Run(ctx context.Context, io streams) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.use(ctx, io, ofSpaces(c.Space).patient(c.Timeout), func(_ *bus.Bus, client *settle.Client) error {
		tree, err := client.Tree(ctx, history.TreeQuery{
			Event: c.Event, Space: c.Space, Stream: c.Stream, MaxEvents: c.Events, MaxDepth: c.Depth,
		})
		if err != nil {
			return usageIfName(err)
		}
		if c.JSON {
			return printIndented(io.out, tree)
		}
		printTree(io.out, tree, c.Full)
		return nil
	})
}

func printIndented(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// printLine prints JSON on one line.
func printLine(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
