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
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/counter"
	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/process"
)

type flags struct {
	process.Flags
	Program    string        `help:"The program of the spaces: hosted, for deployed programs (settle deploy); or one of the examples: ${enum}." enum:"hosted,counter,flights" default:"hosted" env:"SETTLE_PROGRAM"`
	Heartbeat  time.Duration `help:"How often the worker announces itself and checks for dead workers." default:"500ms"`
	Checkpoint time.Duration `help:"How often changed documents are saved to the STATE buckets." default:"1s"`
	Idle       time.Duration `help:"How long a space is at rest before it leaves memory; negative: never." default:"1m"`
	MaxAwake   int           `help:"The largest number of spaces in memory; beyond it, the spaces that have been at rest longest leave. Negative: no limit." default:"10000"`
	Weight     float64       `help:"This worker's share of the partitions, relative to other workers." default:"1"`
	Performing int           `help:"The largest number of concurrent attempts of actions and inputs." default:"256"`

	DocumentWait time.Duration `help:"How long an event waits for a document of another space that cannot be read, until it fails; negative: without a limit." default:"5m" env:"SETTLE_DOCUMENT_WAIT"`
	RunLimit     time.Duration `help:"How long one run of a handler, computation or effect may take, unless its program says otherwise; negative: no limit." default:"30s" env:"SETTLE_RUN_LIMIT"`

	HTTP          string   `name:"http" help:"Offer documents over HTTP at this address, such as 127.0.0.1:8470. Any but a loopback address needs a token. Default: not at all." env:"SETTLE_HTTP" placeholder:"ADDR"`
	HTTPTokenFile string   `name:"http-token-file" help:"File with the token of the clients. The token can also be in SETTLE_HTTP_TOKEN." type:"existingfile" placeholder:"FILE"`
	HTTPOrigin    []string `name:"http-origin" help:"Origin of pages that may also read, such as https://board.example.com. Repeatable." placeholder:"ORIGIN"`
	HTTPHost      []string `name:"http-host" help:"Host name that clients may use for this address. Repeatable." placeholder:"NAME"`

	History      time.Duration `help:"How long commits stay in the log that no restart needs: receipts are read from them. Default: the horizon of the deployment, and an hour." env:"SETTLE_HISTORY"`
	HistoryBytes int64         `help:"Bytes of such commits to keep per partition, however young; negative: no limit." default:"1073741824" env:"SETTLE_HISTORY_BYTES"`
	PurgeDelay   time.Duration `help:"The age of a checkpoint before the commits that it covers are purged: longer than the servers take to write to disk (their sync_interval)." default:"3m" env:"SETTLE_PURGE_DELAY"`
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
	var f flags
	process.Main("spaceworker", description, &f, func(ctx context.Context) error {
		web, err := f.gateway()
		if err != nil {
			return err
		}
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		err = f.Run(ctx, "worker", os.Stderr, func(p process.Process) (func(context.Context) error, error) {
			w, err := settle.StartWorker(ctx, p.Bus, settle.WorkerConfig{
				ID: p.ID, Programs: programs[f.Program], Hosted: f.Program == settle.HostedLabel, Program: f.Program, Options: settle.Options{Heartbeat: f.Heartbeat, Checkpoint: f.Checkpoint, Idle: f.Idle, MaxAwake: f.MaxAwake, Weight: f.Weight, Performing: f.Performing, RunLimit: f.RunLimit, DocumentWait: f.DocumentWait, History: f.History, HistoryBytes: f.HistoryBytes, PurgeDelay: f.PurgeDelay},

				Logger: p.Logger, Tracer: p.Tracer, HTTP: web,
			})
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
	})
}

// gateway returns the configuration of the HTTP gateway.
func (f *flags) gateway() (gateway.Config, error) {
	cfg := gateway.Config{Addr: f.HTTP, Token: os.Getenv("SETTLE_HTTP_TOKEN"), Origins: f.HTTPOrigin, Hosts: f.HTTPHost}
	if f.HTTPTokenFile == "" {
		return cfg, nil
	}
	token, err := os.ReadFile(f.HTTPTokenFile)
	if cfg.Token = strings.TrimSpace(string(token)); err == nil && cfg.Token == "" {
		err = fmt.Errorf("the token file %s is empty", f.HTTPTokenFile)
	}
	return cfg, err
}
