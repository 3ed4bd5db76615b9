package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/bench"
)

// benchEndlessCmd is `settle bench endless`.
type benchEndlessCmd struct {
	Events  int    `default:"1000000" help:"Events that the space handles. A worker is killed and replaced after 1, 10 and 100 percent of them."`
	History int64  `default:"8388608" help:"Bytes of the log to keep in addition to those that a restart needs."`
	Fsync   string `default:"interval" enum:"always,interval" help:"When the server syncs an acknowledged write to disk."`
	Store   string `help:"Directory for the server's files. Default: a temporary one." placeholder:"DIR"`
	JSON    string `name:"json" help:"Write the figures as JSON to FILE; - is standard output." placeholder:"FILE"`
}

// Run runs the benchmark. It fails if the log or the restart time has grown with the number of events.
func (c *benchEndlessCmd) Run(ctx context.Context, io streams) error {
	if c.Events < 100 || c.History < 1 {
		return usage(errors.New("bench endless needs 100 events at least, and a positive history"))
	}
	dir, err := os.MkdirTemp(c.Store, "settle-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // best effort: it is a temporary directory
	mode := embedded.FsyncInterval
	if c.Fsync == "always" {
		mode = embedded.FsyncAlways
	}
	result, err := bench.RunEndless(ctx, bench.EndlessConfig{
		Dir: dir, Fsync: mode, Events: c.Events, HistoryBytes: c.History,
		Phase: func(what string) { fmt.Fprintf(io.err, "%s ...\n", what) },
	})
	if err != nil {
		return err
	}
	if c.JSON != "-" {
		result.Print(io.out)
	}
	if err := c.write(io, result); err != nil {
		return err
	}
	if !result.Bounded {
		return errors.New("the log or a restart has grown with the number of events")
	}
	return nil
}

func (c *benchEndlessCmd) write(io streams, result bench.Endless) error {
	if c.JSON == "" {
		return nil
	}
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if c.JSON == "-" {
		_, err = io.out.Write(data)
		return err
	}
	return os.WriteFile(c.JSON, data, 0o644)
}
