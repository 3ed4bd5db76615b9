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

// Worker hosts spaces over a bus. Stop hands them over to other workers, Kill does not.
type Worker = worker.Worker

// WorkerConfig configures a worker. ID and Programs (or Hosted) are required; the rest has
// defaults. worker.Config documents each option in full.
type WorkerConfig struct {
	ID       string
	Programs Programs
	// Hosted makes spaces for which Programs returns nil run deployed programs, as assigned by the
	// rules that `settle deploy` writes; Programs may then be nil. See package program. A worker
	// that hosts them serves nothing before it has read the rules.
	Hosted bool
	// Limits bounds what one run of a hosted program may use.
	Limits star.Limits
	// Program is announced as the name of Programs; see worker.Config. Default: "hosted" if Hosted
	// is set and Programs is nil.
	Program string
	// Heartbeat is the interval at which the worker announces itself, default 500 ms; MemberTTL is
	// how long a worker that has stopped announcing keeps its partitions, default 15 s; Checkpoint
	// is the interval at which changed documents are saved, default 1 s.
	Heartbeat, MemberTTL, Checkpoint time.Duration
	// Idle is how long a space is at rest before it is unloaded, default 1 minute, negative for
	// never; MaxAwake is the maximum number of spaces in memory, default 10,000, negative for no
	// limit.
	Idle     time.Duration
	MaxAwake int
	// Weight is the worker's share of the partitions relative to other workers, default 1;
	// Performing is the maximum number of concurrent attempts of actions and inputs over all
	// spaces, default 256; BacklogBytes is the approximate memory for events that were read but not
	// handled, default 64 MiB; Handover is how long a running handler may continue while its
	// partition moves to another worker, default 5 s.
	//
	// DocumentWait is how long an event waits for a document of another space that cannot be read
	// before it fails; default 5 minutes, negative for no limit.
	//
	// RunLimit is how long one run of a handler, computation or effect may take, default 30 s,
	// negative for no limit; Within sets it for one handler. A run that has not returned one second
	// later is abandoned; see worker.Config.
	Weight       float64
	Performing   int
	RunLimit     time.Duration
	DocumentWait time.Duration
	BacklogBytes int64
	Handover     time.Duration
	// History is how long commits are kept that no restart needs, by default one hour longer than
	// the deployment's horizon; HistoryBytes is how much of them is kept per partition, default 1
	// GiB, negative for no limit; PurgeDelay is how old a checkpoint must be before the commits
	// that it covers are purged, default 3 minutes.
	History, PurgeDelay time.Duration
	HistoryBytes        int64
	// Logger receives what an operator should know, Tracer spans; nil discards them.
	Logger *slog.Logger
	Tracer trace.Tracer
	// OnError and OnConsole receive the errors and the output of user code. Several spaces may call
	// them concurrently, and they must not block; by default both are logged.
	OnError   func(ErrorInfo)
	OnConsole func(ConsoleInfo)
	// HTTP serves the documents of all spaces over HTTP, too, if its Addr is set; see package
	// gateway.
	HTTP gateway.Config
	// Live bounds the reads and watches that the worker serves concurrently.
	Live live.Config
	// Now is the wall clock, for tests; default time.Now.
	Now func() time.Time
}

// StartWorker starts a worker and returns when it serves its partitions: it is how a Go program
// joins a fleet. bus is the result of bus.Connect; with Config.AwaitServer, connecting waits for
// the servers, too. If the deployment has not been provisioned, StartWorker logs that and waits for
// it until ctx ends, with that as the error.
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
	hosted.notify(w)
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

// inner returns the configuration of package worker.
func (cfg *WorkerConfig) inner() worker.Config {
	return worker.Config{
		ID: cfg.ID, Program: cfg.Program, Heartbeat: cfg.Heartbeat, MemberTTL: cfg.MemberTTL,
		Checkpoint: cfg.Checkpoint, Idle: cfg.Idle, MaxAwake: cfg.MaxAwake, Logger: cfg.Logger, Tracer: cfg.Tracer,
		Weight: cfg.Weight, Performing: cfg.Performing, BacklogBytes: cfg.BacklogBytes, Handover: cfg.Handover, RunLimit: cfg.RunLimit, DocumentWait: cfg.DocumentWait,
		History: cfg.History, HistoryBytes: cfg.HistoryBytes, PurgeDelay: cfg.PurgeDelay,
		OnError: cfg.OnError, OnConsole: cfg.OnConsole, Now: cfg.Now,
	}
}

// own resolves the programs of this executable; nil if the worker runs deployed ones only.
func (cfg *WorkerConfig) own() (func(string) (*space.Program, error), error) {
	if cfg.Programs != nil || !cfg.Hosted {
		return cfg.Programs.resolve()
	}
	cfg.Program = cmp.Or(cfg.Program, HostedLabel)
	return nil, nil
}

// listen binds the address for HTTP before anything is started. The returned function serves there
// beside a worker, or releases the address if w is nil.
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

// hostname returns the machine's name, "" if it is unknown.
func hostname() string {
	name, _ := os.Hostname()
	return name
}
