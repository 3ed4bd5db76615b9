package settle

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// Worker hosts spaces over a bus. Stop hands them back in good order, Kill does
// not.
type Worker = worker.Worker

// WorkerConfig says how a worker behaves. ID and Programs (or Hosted) are required; the rest
// has defaults. worker.Config says more about each.
type WorkerConfig struct {
	ID       string
	Programs Programs
	// Hosted has spaces for which Programs has none run the programs that were deployed, as
	// the rules say that `settle deploy` makes; Programs may be nil then. See package program.
	// A worker that hosts them serves nothing before it knows the rules.
	Hosted bool
	// Limits bound what a run of a hosted program may use.
	Limits star.Limits
	// Program is announced as the name of Programs; see worker.Config. Default: "hosted" if
	// Hosted is set and Programs is not.
	Program string
	// Heartbeat is how often the worker announces itself, default 500 ms; MemberTTL how long one
	// that stands still keeps its partitions, default 15 s; Checkpoint how often changed documents
	// are saved, default 1 s.
	Heartbeat, MemberTTL, Checkpoint time.Duration
	// Idle is for how long a space is at rest before it leaves memory, default 1 minute, negative
	// never; MaxAwake how many may be in memory, default 10,000, negative without limit.
	Idle     time.Duration
	MaxAwake int
	// Weight is the worker's share of the partitions relative to others, default 1;
	// Performing how many attempts of actions and inputs it makes at a time, over all spaces,
	// default 256; BacklogBytes about how much memory events may take that were read and not
	// handled, default 64 MiB; Handover for how long a handler may go on that is running when
	// its partition moves to another worker, default 5 s.
	//
	// DocumentWait is for how long an event waits for a document of another space that cannot be read,
	// until it fails; default 5 minutes, negative without end.
	//
	// RunLimit is how long one run of a handler, computation or effect may take, default 30 s,
	// negative without end; a handler may have another (Within). What has not returned a second
	// later is given up; see worker.Config.
	Weight       float64
	Performing   int
	RunLimit     time.Duration
	DocumentWait time.Duration
	BacklogBytes int64
	Handover     time.Duration
	// History is for how long commits are kept that no restart needs, by default an hour longer
	// than the deployment's horizon; HistoryBytes how much of them per partition, default 1 GiB,
	// negative without limit; PurgeDelay how long a checkpoint has stood before commits that it
	// covers go, default 3 minutes.
	History, PurgeDelay time.Duration
	HistoryBytes        int64
	// Logger gets what an operator should know, Tracer spans; nil for nobody.
	Logger *slog.Logger
	Tracer trace.Tracer
	// OnError and OnConsole get the errors and the output of user code. They are called by
	// several spaces at a time and must be quick; by default both are logged.
	OnError   func(ErrorInfo)
	OnConsole func(ConsoleInfo)
	// HTTP offers the documents of all spaces over HTTP, too, if its Addr is set; see package
	// gateway.
	HTTP gateway.Config
	// Live bounds what the worker answers at a time.
	Live live.Config
	// Now is the wall time, for tests; default time.Now.
	Now func() time.Time
}

// StartWorker starts a worker and returns when it serves its partitions: what a
// program of your own does to join a fleet. The bus is one that bus.Connect has
// returned; with Config.AwaitServer that waits for the servers, too. Where Provision has not been
// called, StartWorker waits for a deployment until ctx ends, and logs that it does; the error then
// says so.
func StartWorker(ctx context.Context, bus port.Bus, cfg WorkerConfig) (*Worker, error) {
	programs, err := cfg.own()
	if err != nil {
		return nil, err
	}
	if b, can := bus.(interface {
		AwaitDeployment(ctx context.Context) error
	}); can {
		if err := b.AwaitDeployment(ctx); err != nil {
			return nil, fmt.Errorf("start worker %s: %w", cfg.ID, err)
		}
	}
	host, connection, version := hostname(), "", ""
	if b, ok := bus.(interface {
		ConnectionName() string
		ProgramVersion() string
	}); ok {
		connection, version = b.ConnectionName(), b.ProgramVersion()
	}
	serveHTTP, err := cfg.listen()
	if err != nil {
		return nil, err
	}
	hosted, err := cfg.host(ctx, bus)
	if err != nil {
		serveHTTP(nil, nil)
		return nil, err
	}
	inner := cfg.inner()
	inner.Programs, inner.Host, inner.Version, inner.Connection = hosted.beside(programs), host, version, connection
	w, err := worker.New(bus, inner)
	if err != nil {
		serveHTTP(nil, nil)
		hosted.close()
		return nil, err
	}
	hosted.tell(w)
	if err := w.Start(ctx); err != nil {
		serveHTTP(nil, nil)
		w.Kill()
		return nil, err
	}
	answers := live.NewServer(bus, w, cfg.Live)
	w.Beside(answers.Run)
	w.Tell(func(f *worker.Figures) { f.Watches = answers.Watches() })
	serveHTTP(w, answers)
	return w, nil
}

// inner is what the worker itself is told of this.
func (cfg *WorkerConfig) inner() worker.Config {
	return worker.Config{
		ID: cfg.ID, Program: cfg.Program, Heartbeat: cfg.Heartbeat, MemberTTL: cfg.MemberTTL,
		Checkpoint: cfg.Checkpoint, Idle: cfg.Idle, MaxAwake: cfg.MaxAwake, Logger: cfg.Logger, Tracer: cfg.Tracer,
		Weight: cfg.Weight, Performing: cfg.Performing, BacklogBytes: cfg.BacklogBytes, Handover: cfg.Handover, RunLimit: cfg.RunLimit, DocumentWait: cfg.DocumentWait,
		History: cfg.History, HistoryBytes: cfg.HistoryBytes, PurgeDelay: cfg.PurgeDelay,
		OnError: cfg.OnError, OnConsole: cfg.OnConsole, Now: cfg.Now,
	}
}

// own are the programs of this executable, nil for none beside those that are deployed.
func (cfg *WorkerConfig) own() (func(string) (*space.Program, error), error) {
	if cfg.Programs != nil || !cfg.Hosted {
		return cfg.Programs.resolve()
	}
	cfg.Program = cmp.Or(cfg.Program, HostedLabel)
	return nil, nil
}

// listen occupies the address for HTTP before anything is begun. What it returns serves
// there beside a worker, or gives the address back if there is none.
func (cfg *WorkerConfig) listen() (serve func(*Worker, *live.Server), err error) {
	if cfg.Live.Logger == nil {
		cfg.Live.Logger = cfg.Logger
	}
	if cfg.HTTP.Addr == "" {
		return func(*Worker, *live.Server) {}, nil
	}
	if cfg.HTTP.Logger == nil {
		cfg.HTTP.Logger = cfg.Logger
	}
	g, err := gateway.Listen(cfg.HTTP)
	if err != nil {
		return nil, err
	}
	return func(w *Worker, answers *live.Server) {
		if w == nil {
			g.Close()
			return
		}
		w.Beside(func(ctx context.Context, leaving <-chan struct{}) { g.Serve(ctx, leaving, answers) })
	}, nil
}

// hostname is the machine's name, "" if it has none.
func hostname() string {
	name, _ := os.Hostname()
	return name
}
