// Package fleetworker is a process that runs a worker of a fleet: what the command spaceworker and package
// spaceworker share.
package fleetworker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/console"
	"github.com/settlehq/settle/internal/flags"
	"github.com/settlehq/settle/internal/process"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// Command has the flags of a worker's process.
type Command struct {
	process.Flags

	HTTPAddr      string   `name:"http" help:"Serve documents over HTTP at this address, such as 127.0.0.1:8470. An address other than a loopback address needs a token. Default: no HTTP." env:"SETTLE_HTTP" placeholder:"ADDR"`
	HTTPTokenFile string   `name:"http-token-file" help:"File with the token for clients. The token can also be in SETTLE_HTTP_TOKEN." type:"existingfile" env:"SETTLE_HTTP_TOKEN_FILE" placeholder:"FILE"`
	HTTPOrigin    []string `name:"http-origin" help:"Origin of pages that may also read, such as https://board.example.com. Repeatable." env:"SETTLE_HTTP_ORIGIN" placeholder:"ORIGIN"`
	HTTPHost      []string `name:"http-host" help:"Host name that clients may use for this address. Repeatable." env:"SETTLE_HTTP_HOST" placeholder:"NAME"`

	flags.Worker
}

// Description is what the help of a worker's process begins with.
const Description = "Serves the spaces of its share of the partitions."

var errDrained = errors.New("an operator has asked the worker to stop")

var errReplaced = errors.New("the worker has ended, because another process runs under its id; give this one another id")

// Main parses the command line into flags, which embed c, calls serve until SIGTERM or SIGINT, and exits.
// name is that of the program.
func Main(name string, flagsAround any, c *Command, serve func(ctx context.Context) error) {
	process.Main(name, Description, flagsAround, serve, flags.Names(&c.Worker))
}

// Serve serves spaces with these programs until ctx ends, an operator asks the worker to stop, or another process has taken the worker's id.
// name is announced as the name of the programs; nil programs stand for deployed ones.
func (c *Command) Serve(ctx context.Context, programs settle.Programs, name string) error {
	if only, err := programs.Describe(os.Getenv); only {
		return err
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	cfg.Programs, cfg.Hosted, cfg.Program = programs, programs == nil, name
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	err = c.Run(ctx, "worker", os.Stderr, func(p process.Process) (func(context.Context) error, error) {
		cfg.ID, cfg.Logger, cfg.Tracer, cfg.Meter = p.ID, p.Logger, p.Tracer, p.Meter
		cfg.OnDrain = func(*worker.Worker) { end(errDrained) } // as SIGTERM does
		if cfg.HTTP.Addr != "" {
			pages, err := console.OnBus(p.Bus, console.Config{Principal: model.Operator, Logger: p.Logger})
			if err != nil {
				return nil, err
			}
			context.AfterFunc(ctx, pages.Close)
			cfg.HTTP.Pages = pages
		}
		w, err := settle.StartWorker(ctx, p.Bus, cfg)
		if err != nil {
			return nil, fmt.Errorf("start worker %s: %w", p.ID, err)
		}
		go func() { // ends with the worker, which Stop ends at the latest
			<-w.Done()
			end(errReplaced)
		}()
		return w.Stop, nil
	})
	if errors.Is(context.Cause(ctx), errReplaced) {
		return errReplaced
	}
	return err
}

// config returns the configuration of the worker.
func (c *Command) config() (settle.WorkerConfig, error) {
	cfg := c.Config()
	cfg.HTTP.Addr, cfg.HTTP.Token, cfg.HTTP.Origins, cfg.HTTP.Hosts = c.HTTPAddr, os.Getenv("SETTLE_HTTP_TOKEN"), c.HTTPOrigin, c.HTTPHost
	if c.HTTPTokenFile == "" {
		return cfg, nil
	}
	token, err := os.ReadFile(c.HTTPTokenFile)
	if cfg.HTTP.Token = strings.TrimSpace(string(token)); err == nil && cfg.HTTP.Token == "" {
		err = fmt.Errorf("the token file %s is empty", c.HTTPTokenFile)
	}
	return cfg, err
}
