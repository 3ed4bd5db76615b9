// Command spaceworker hosts spaces. Run any number of them with the same flags: they divide the
// partitions among themselves, and take over from one that dies.
//
// It may be started before the NATS servers and before the deployment exists: it waits for both,
// and logs that. On SIGTERM it completes running handlers, saves its spaces, leaves the fleet, and
// exits with status 0; or with status 1 and what was not saved, if no server could be reached for 5
// s, or handlers did not return within 20 s.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/counter"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/internal/flags"
	"github.com/settlehq/settle/internal/process"
)

type command struct {
	process.Flags
	Program string `help:"The program of the spaces: hosted, for deployed programs (settle deploy); or one of the examples: ${enum}." enum:"hosted,counter,flights" default:"hosted" env:"SETTLE_PROGRAM"`

	HTTPAddr      string   `name:"http" help:"Offer documents over HTTP at this address, such as 127.0.0.1:8470. Any but a loopback address needs a token. Default: not at all." env:"SETTLE_HTTP" placeholder:"ADDR"`
	HTTPTokenFile string   `name:"http-token-file" help:"File with the token of the clients. The token can also be in SETTLE_HTTP_TOKEN." type:"existingfile" env:"SETTLE_HTTP_TOKEN_FILE" placeholder:"FILE"`
	HTTPOrigin    []string `name:"http-origin" help:"Origin of pages that may also read, such as https://board.example.com. Repeatable." env:"SETTLE_HTTP_ORIGIN" placeholder:"ORIGIN"`
	HTTPHost      []string `name:"http-host" help:"Host name that clients may use for this address. Repeatable." env:"SETTLE_HTTP_HOST" placeholder:"NAME"`

	flags.Worker
}

// programs are the programs built into this binary; nil stands for deployed ones. A Go program of
// your own goes into a binary of your own: see settle.StartWorker.
var programs = map[string]settle.Programs{
	"counter": settle.Always(counter.Program()),
	"flights": flights.Programs,
}

var errReplaced = errors.New("the worker has ended, because another process runs under its id; give this one another id")

const description = "Hosts the spaces of its share of the partitions."

func main() {
	var c command
	process.Main("spaceworker", description, &c, c.run, flags.Names(&c.Worker))
}

// run serves spaces until ctx ends, or another process has taken the worker's id.
func (c *command) run(ctx context.Context) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	err = c.Run(ctx, "worker", os.Stderr, func(p process.Process) (func(context.Context) error, error) {
		cfg.ID, cfg.Logger, cfg.Tracer = p.ID, p.Logger, p.Tracer
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
func (c *command) config() (settle.WorkerConfig, error) {
	cfg := c.Config()
	cfg.Programs, cfg.Hosted, cfg.Program = programs[c.Program], c.Program == settle.HostedLabel, c.Program
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
