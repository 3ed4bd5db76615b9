package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/drain"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker"
)

// WorkerConfig configures a worker. ID and Programs (or Hosted) are required.
type WorkerConfig struct {
	ID       string
	Programs Programs
	// Hosted makes spaces for which Programs returns nil run deployed programs, as assigned by the
	// rules that `settle deploy` writes; Programs may then be nil. See package program. A worker
	// that hosts them serves nothing before it has read the rules.
	Hosted bool
	// Program is announced as the name of Programs; see worker.Config. Default: "hosted" if Hosted
	// is set and Programs is nil.
	Program string
	// Options are what can be tuned.
	worker.Options
	// Starlark bounds what one run of a hosted program may use.
	Starlark star.Limits `prefix:"starlark-"`
	// Live bounds the reads and watches that the worker serves concurrently.
	Live live.Config
	// HTTP serves the documents of all spaces over HTTP, and takes events, if its Addr is set; see package
	// gateway.
	HTTP gateway.Config `prefix:"http-"`
	// Logger receives what an operator should know, Tracer spans; nil discards them.
	Logger *slog.Logger
	Tracer trace.Tracer
	// Meter makes the instruments of the worker's metrics (docs/metrics.md); nil measures nothing.
	Meter metric.Meter
	// OnError and OnConsole receive the errors and the output of user code. Several spaces may call
	// them concurrently, and they must not block; by default both are logged.
	OnError   func(space.ErrorInfo)
	OnConsole func(space.ConsoleInfo)
	// OnDrain is called once, in a goroutine of its own, when an operator has asked this worker to stop (`settle drain`): it is to call Stop,
	// as after SIGTERM. By default the worker stops, and Done is closed.
	OnDrain func(*worker.Worker)
	// Now is the wall clock, for tests; default time.Now.
	Now func() time.Time
}

// StartWorker starts a worker and returns when it serves its partitions: it is how a Go program
// joins a fleet. bus is the result of bus.Connect; with Config.AwaitServer, connecting waits for
// the servers, too. If the deployment has not been provisioned, StartWorker logs that and waits for
// it until ctx ends, with that as the error.
func StartWorker(ctx context.Context, bus port.Bus, cfg WorkerConfig) (*worker.Worker, error) {
	programs, err := cfg.own()
	if err != nil {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("worker %s: %w", cfg.ID, err)
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
	rules, err := access.Open(ctx, bus, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("start worker %s: %w", cfg.ID, err)
	}
	cfg.HTTP.Access, cfg.Live.Access = rules, rules
	asked := &askedOverHTTP{bus: bus}
	cfg.HTTP.Questions = asked
	events := &ingress{bus: bus, id: cfg.ID, logger: cfg.Logger, tracer: cfg.Tracer}
	serveHTTP, err := cfg.listen(events)
	if err != nil {
		rules.Close()
		return nil, err
	}
	hosted, err := cfg.host(ctx, bus)
	if err != nil {
		serveHTTP(nil, nil)
		rules.Close()
		return nil, err
	}
	inner := cfg.inner()
	inner.Access, inner.Hosted = rules, hosted.used()
	inner.Programs, inner.Host, inner.Version, inner.Connection = hosted.beside(programs), host, version, connection
	events.programs = inner.Programs
	var answers *live.Server // before the worker is started
	inner.Computed = func(ctx context.Context, space, document string) (bool, error) {
		return answers.Computed(ctx, space, document)
	}
	w, err := worker.New(bus, inner)
	if err != nil {
		serveHTTP(nil, nil)
		hosted.close()
		rules.Close()
		return nil, err
	}
	answers = live.NewServer(bus, w, cfg.Live)
	hosted.notify(w)
	asked.worker = w
	go func() { // ends with the worker
		<-w.Done()
		rules.Close()
	}()
	if err := w.Start(ctx); err != nil {
		serveHTTP(nil, nil)
		w.Kill()
		return nil, err
	}
	events.answers, events.denied = answers, w.NoteDenied
	w.Beside(answers.Run)
	w.Beside(questions.NewServer(bus, w, rules, cfg.Logger).Run)
	w.Beside(func(ctx context.Context, leaving <-chan struct{}) { cfg.awaitDrain(ctx, bus, w, leaving) })
	w.AddFigures(func(f *status.Figures) { f.Watches = answers.Watches() })
	serveHTTP(w, answers)
	return w, nil
}

// drainTime is how long a worker that nothing else stops may take to finish running work and to save.
const drainTime = time.Minute

// awaitDrain stops a worker when an operator asks for it, until ctx ends or the worker leaves.
func (cfg *WorkerConfig) awaitDrain(ctx context.Context, bus port.Bus, w *worker.Worker, leaving <-chan struct{}) {
	records, can := bus.(port.Records)
	if !can {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-leaving:
			cancel()
		case <-ctx.Done():
		}
	}()
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	r := drain.Await(ctx, records, w.ID(), w.Life(), log)
	if r == nil {
		return
	}
	log.Info("an operator has asked this worker to stop", "worker", w.ID(), "by", r.By)
	if cfg.OnDrain != nil {
		go cfg.OnDrain(w) // ends with Stop, which waits for this call
		return
	}
	go func() { // ends with Stop, which waits for this call
		last, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		if err := w.Stop(last); err != nil {
			log.Warn("worker was not stopped in good order", "worker", w.ID(), "error", err)
		}
	}()
}

// check returns an error for the first invalid option, before anything is started.
func (cfg *WorkerConfig) check() error {
	checked := *cfg
	return errors.Join(checked.Options.Fill(), checked.Starlark.Fill(), checked.Live.Fill(), checked.HTTP.Fill())
}

// inner returns the configuration of package worker.
func (cfg *WorkerConfig) inner() worker.Config {
	return worker.Config{
		ID: cfg.ID, Program: cfg.Program, Options: cfg.Options, Logger: cfg.Logger, Tracer: cfg.Tracer, Meter: cfg.Meter,
		OnError: cfg.OnError, OnConsole: cfg.OnConsole, Now: cfg.Now,
	}
}

// own resolves the programs of this executable; nil if the worker runs deployed ones only.
func (cfg *WorkerConfig) own() (func(string) (*space.Program, error), error) {
	if cfg.Programs != nil || !cfg.Hosted {
		return cfg.Programs.resolve()
	}
	cfg.Program = cmp.Or(cfg.Program, program.HostedLabel)
	return nil, nil
}

// listen binds the address for HTTP before anything is started. The returned function serves there
// beside a worker, or releases the address if w is nil.
func (cfg *WorkerConfig) listen(events *ingress) (serve func(*worker.Worker, *live.Server), err error) {
	if cfg.Live.Logger == nil {
		cfg.Live.Logger = cfg.Logger
	}
	cfg.Live.Tracer, cfg.Live.Meter, cfg.HTTP.Tracer, cfg.HTTP.Meter = cfg.Tracer, cfg.Meter, cfg.Tracer, cfg.Meter
	if cfg.HTTP.Addr == "" {
		return func(*worker.Worker, *live.Server) {}, nil
	}
	if cfg.HTTP.Logger == nil {
		cfg.HTTP.Logger = cfg.Logger
	}
	g, err := gateway.Listen(cfg.HTTP)
	if err != nil {
		return nil, err
	}
	return func(w *worker.Worker, answers *live.Server) {
		if w == nil {
			g.Close()
			return
		}
		w.Beside(func(ctx context.Context, leaving <-chan struct{}) {
			defer events.close()
			g.Serve(ctx, leaving, answers, events)
		})
	}, nil
}

// hostname returns the machine's name, "" if it is unknown.
func hostname() string {
	name, _ := os.Hostname()
	return name
}
