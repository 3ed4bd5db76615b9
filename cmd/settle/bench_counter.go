package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/bench"
)

// benchCounterCmd is `settle bench counter`.
type benchCounterCmd struct {
	Spaces     int    `default:"100" help:"Spaces over which the events are spread evenly."`
	Events     int    `default:"200000" help:"Events of the throughput measurement."`
	Single     int    `default:"2000" help:"Events of the latency measurement, one at a time."`
	Partitions int    `default:"4" help:"Partitions of the deployment."`
	Fsync      string `default:"both" enum:"always,interval,both" help:"When the server syncs an acknowledged write to disk: always before it answers, or every interval (2 minutes)."`
	Store      string `help:"Directory for the server's files. Default: a temporary one." placeholder:"DIR"`
	JSON       string `name:"json" help:"Write the figures as JSON to FILE; - is standard output." placeholder:"FILE"`
}

// Run runs the benchmark once per fsync setting, each on a fresh server.
func (c *benchCounterCmd) Run(ctx context.Context, io streams) error {
	if c.Spaces < 1 || c.Events < c.Spaces || c.Single < 1 || c.Partitions < 1 {
		return usage(fmt.Errorf("bench counter needs at least one space, event and partition, and an event per space"))
	}
	var results []bench.Counter
	for _, mode := range c.modes() {
		r, err := c.one(ctx, io, mode)
		if err != nil {
			return err
		}
		results = append(results, r)
		if c.JSON != "-" {
			r.Print(io.out)
		}
	}
	return c.write(io, results)
}

func (c *benchCounterCmd) modes() []embedded.Fsync {
	switch c.Fsync {
	case "always":
		return []embedded.Fsync{embedded.FsyncAlways}
	case "interval":
		return []embedded.Fsync{embedded.FsyncInterval}
	default:
		return []embedded.Fsync{embedded.FsyncInterval, embedded.FsyncAlways}
	}
}

func (c *benchCounterCmd) one(ctx context.Context, io streams, mode embedded.Fsync) (bench.Counter, error) {
	dir, err := os.MkdirTemp(c.Store, "settle-bench-")
	if err != nil {
		return bench.Counter{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // best effort: it is a temporary directory
	return bench.RunCounter(ctx, bench.CounterConfig{
		Dir: dir, Fsync: mode, Spaces: c.Spaces, Events: c.Events, Single: c.Single, Partitions: c.Partitions,
		Phase: func(what string) { fmt.Fprintf(io.err, "%s ...\n", what) },
	})
}

func (c *benchCounterCmd) write(io streams, results []bench.Counter) error {
	if c.JSON == "" {
		return nil
	}
	data, err := json.MarshalIndent(results, "", "  ")
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
