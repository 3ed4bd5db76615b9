package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/internal/demo"
	"github.com/settlehq/settle/internal/telemetry/export"
)

// demoFlightsCmd is `settle demo flights`.
type demoFlightsCmd struct {
	Input      string `help:"Flights to replay instead of the built-in ones: a JSON array of {date, delay, distance, origin, destination}, plain or gzipped." placeholder:"FILE"`
	Program    string `default:"go" enum:"go,star" help:"The language of the program: ${enum} (examples/flights has both)."`
	Workers    int    `default:"2" help:"Workers that share the airports."`
	Partitions int    `default:"4" help:"Partitions of the deployment, which the workers divide among themselves."`
	Duplicate  int    `default:"1" help:"Send every event N times, with the same id." placeholder:"N"`
	Processes  bool   `help:"Run every worker, and the coordinator, as a process of its own. --kill is then SIGKILL."`
	Kill       int    `default:"0" help:"N times during the run, kill a random worker without any shutdown. A new one joins a moment later." placeholder:"N"`
	Store      string `help:"Directory for the embedded server's files. The same input continues there. Default: a temporary one, removed at the end." placeholder:"DIR"`
	NATS       string `name:"nats" help:"Use the NATS server at URL instead of an embedded one. The run creates its own streams there (DEMO-*) and deletes them at its end, unless --keep is given. The demo ignores NATS_URL." placeholder:"URL"`
	Keep       bool   `help:"Keep the run's streams on the server of --nats."`
	Fsync      string `default:"always" enum:"always,interval" help:"When the embedded server syncs an acknowledged write to disk: ${enum} (every 2 minutes). A crash of the process loses nothing either way."`
	JSON       string `name:"json" help:"Write the figures as JSON to FILE; - is standard output, and everything else then goes to standard error." placeholder:"FILE"`
}

// Run runs the demo. It ends with an error of exit code 2 for input that cannot be
// used, and of 1 if the run could not be verified.
func (c *demoFlightsCmd) Run(ctx context.Context, io streams) error {
	o := demo.Options{
		Program: c.Program, Workers: c.Workers, Partitions: c.Partitions, Duplicate: c.Duplicate, Kill: c.Kill, Processes: c.Processes,
		Store: c.Store, NATS: c.NATS, Keep: c.Keep,
	}
	if c.Fsync == "interval" {
		o.Fsync = embedded.FsyncInterval
	}
	err := o.Check()
	if err == nil {
		o.Flights, err = c.flights()
	}
	if err != nil {
		return usage(err)
	}
	out, err := openFigures(c.JSON, io)
	if err != nil {
		return usage(err)
	}
	tracer, flush, err := export.Setup(ctx, "settle-demo")
	if err != nil {
		return usage(err)
	}
	o.Tracer = tracer
	err = c.run(ctx, o, io, out)
	return errors.Join(err, flush(context.WithoutCancel(ctx)))
}

func (c *demoFlightsCmd) flights() ([]flights.Flight, error) {
	if c.Input == "" {
		return flights.BuiltIn()
	}
	return flights.Load(c.Input)
}

// figures is where the JSON goes. It is opened before the run, so that a path that
// cannot be written is known at once.
type figures struct {
	io.Writer
	close func() error
}

// openFigures opens the file of --json, nil for none.
func openFigures(name string, io streams) (*figures, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return &figures{io.out, func() error { return nil }}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("--json: %w", err)
	}
	return &figures{f, f.Close}, nil
}

func (c *demoFlightsCmd) run(ctx context.Context, o demo.Options, io streams, out *figures) error {
	people := io.out
	if c.JSON == "-" {
		people = io.err
	}
	res, err := demo.Run(ctx, o, demo.NewScreen(people))
	switch {
	case ctx.Err() != nil:
		return exitError{130, errors.New("interrupted; nothing was verified")}
	case err != nil:
		return err
	}
	return finish(res, people, out)
}

// finish tells people and scripts how the run ended.
func finish(res *demo.Result, people io.Writer, out *figures) error {
	err := res.Summary(people)
	if out != nil {
		err = errors.Join(err, out.put(&res.Report))
	}
	if err != nil {
		return err
	}
	if !res.Report.Verified {
		return exitError{1, errors.New("the run is not verified")}
	}
	return nil
}

func (f *figures) put(r interface{ JSON() ([]byte, error) }) error {
	data, err := r.JSON()
	if err == nil {
		_, err = f.Write(data)
	}
	return errors.Join(err, f.close())
}
