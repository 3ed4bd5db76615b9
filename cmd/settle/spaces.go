package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/internal/optionflags"
	"github.com/settlehq/settle/model"
)

// connection are the flags of the commands that speak to a running deployment.
type connection struct {
	NATS    string `name:"nats" bus:"URL" help:"URL of the NATS server. Default: NATS_URL, then the server of settle dev or settle.Start in this directory, then the selected nats context." placeholder:"URL"`
	Context string `bus:"Context" placeholder:"NAME"`
	Creds   string `bus:"Creds" type:"existingfile" placeholder:"FILE"`
	Prefix  string `bus:"Prefix"`

	principal string // settle.ClientConfig.Principal
}

// inName are the flags of commands that send, or ask workers for documents, in the name of a principal.
type inName struct {
	connection
	Principal string `help:"In whose name the command sends and reads: that of a principal, or operator, which users of the role operator may use and rules do not concern. It is part of the event's id. Default: none." env:"SETTLE_PRINCIPAL" placeholder:"NAME"`
}

// use is connection.use, in the name of the principal.
func (c inName) use(ctx context.Context, io streams, n need, f func(*bus.Bus, *settle.Client) error) error {
	c.principal = c.Principal
	return c.connection.use(ctx, io, n, f)
}

// asOwner makes a command that only reads do so in the name of the operator, unless it has another name or server than that of this directory. The
// server belongs to the developer of this directory: a rule about others must not hide what it does (docs/adr/0097). A command that sends has no such
// default: its event would have another id, and no rule would refuse it.
func (c *inName) asOwner() {
	if _, file := c.localServer(); c.Principal == "" && file != "" {
		c.Principal = model.Operator
	}
}

// reads reports whether the user may read the streams.
func (c inName) reads(ctx context.Context, b *bus.Bus) bool {
	c.principal = c.Principal
	return c.mayRead(ctx, b) == nil
}

// AfterApply replaces an empty prefix, as from an empty environment variable, by the default.
func (c *connection) AfterApply() error {
	c.Prefix = cmp.Or(c.Prefix, bus.DefaultPrefix)
	return nil
}

// use connects to the deployment and calls f with a client, unless a stream that the command needs is defective. The
// bus logs only errors: its warnings are for the operators of the deployment, and are in the logs of its
// processes.
func (c connection) use(ctx context.Context, io streams, n need, f func(*bus.Bus, *settle.Client) error) error {
	log := slog.New(slog.NewTextHandler(io.err, &slog.HandlerOptions{Level: slog.LevelError}))
	at, file := c.useLocalServer()
	cfg := c.config("client/settle")
	cfg.Logger = log
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		return unreachable(err, at, file)
	}
	defer b.Close()
	if unread := c.mayRead(ctx, b); unread != nil {
		if !n.none {
			return unread
		}
		return c.withClient(ctx, io, b, log, f)
	}
	defects, err := n.met(ctx, b.Defects, b.Partitions())
	if errors.Is(err, provision.ErrNoDeployment) {
		hint := "check --prefix"
		if others, _ := b.Deployments(ctx); len(others) > 0 {
			hint = "the account has deployments with --prefix " + strings.Join(others, ", ")
		}
		return fmt.Errorf("there is no deployment with prefix %s on this server; %s, or make one: settle provision", c.Prefix, hint)
	}
	if err != nil {
		return err
	}
	if len(n.spaces) == 0 {
		printDefects(io.err, defects)
	}
	return c.withClient(ctx, io, b, log, f)
}

// mayRead returns an error if the user may not read the streams, as those of principals. Other users get the errors of their requests.
func (c connection) mayRead(ctx context.Context, b *bus.Bus) error {
	if c.principal == "" {
		return nil
	}
	return b.MayRead(ctx)
}

// withClient calls f with a client.
func (c connection) withClient(ctx context.Context, io streams, b *bus.Bus, log *slog.Logger, f func(*bus.Bus, *settle.Client) error) error {
	client, err := settle.NewClient(b, settle.ClientConfig{ID: "settle", Principal: c.principal, Logger: log})
	if err != nil {
		return err
	}
	defer client.Close()
	err = f(b, client)
	if err == nil {
		recordCommand(ctx, io, b)
	}
	return err
}

// config returns the configuration of a connection of that name.
func (c *connection) config(name string) bus.Config {
	cfg := bus.Config{Name: name, Version: version}
	optionflags.FillBus(&cfg, c)
	return cfg
}

// useLocalServer connects to the server that runs in this directory or in one above it, unless a flag
// or the environment names a server. It returns that server and the path of its record, "" for none.
func (c *connection) useLocalServer() (s devserver.Server, file string) {
	s, file = c.localServer()
	if file != "" {
		c.NATS = s.NATS
	}
	return s, file
}

func (c *connection) localServer() (s devserver.Server, file string) {
	if c.NATS != "" || c.Context != "" || os.Getenv("NATS_URL") != "" || os.Getenv("NATS_CONTEXT") != "" {
		return s, ""
	}
	s, file, _ = devserver.Find(".")
	return s, file
}

// unreachable adds to a connection error where the server's address comes from.
func unreachable(err error, s devserver.Server, file string) error {
	switch {
	case file == "":
		return err
	case s.Exited():
		return fmt.Errorf("the server that %s names (%s, process %d) has exited; start it again (settle dev, or go run .), or name another one (--nats)", file, s.NATS, s.PID)
	}
	return fmt.Errorf("%w; the address is from %s (process %d)", err, file, s.PID)
}

// whereCmd is `settle where`.
type whereCmd struct {
	connection
	Space string `arg:"" help:"A space."`
}

// Run prints the NATS subjects and buckets of a space.
func (c *whereCmd) Run(ctx context.Context, io streams) error {
	if err := model.CheckName("space", c.Space); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, need{}, func(b *bus.Bus, _ *settle.Client) error {
		p := model.PartitionOf(c.Space, b.Partitions())
		fmt.Fprintf(io.out, "partition  %d of %d\n", p, b.Partitions())
		fmt.Fprintf(io.out, "events     %s\n", b.LaneSubject(c.Space, "<stream>", "<event id>"))
		fmt.Fprintf(io.out, "commits    %s.log.%d.%s, confirmed ones also on %s.feed.%d.%s\n", c.Prefix, p, c.Space, c.Prefix, p, c.Space)
		fmt.Fprintf(io.out, "documents  bucket %s, keys %s.<document>\n", b.StateBucket(c.Space), c.Space)
		fmt.Fprintf(io.out, "served by  see settle fleet --space %s\n", c.Space)
		return nil
	})
}
