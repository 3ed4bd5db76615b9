package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/console"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/internal/flags"
	"github.com/settlehq/settle/internal/telemetry/export"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// Config configures a dev server. The zero value runs the programs of the working directory, or the
// sample.
type Config struct {
	// Programs are files of programs in Starlark and directories of them, or one directory of a program in Go; the default is the working directory.
	Programs []string
	// Dir is the directory that contains the data, in Store; default the working directory.
	Dir string
	// Reset removes the data first.
	Reset bool
	// Trace keeps the newest traces in memory, and shows them over HTTP.
	Trace bool
	// Worker has the options of the workers.
	Worker flags.Worker
	// Version is the version of the executable.
	Version string
	// Out receives the output for people.
	Out io.Writer
	// Ready, if set, is called when everything runs and the files are watched.
	Ready func(Server)
	// NATSPort and HTTPPort are the first ports to try; default 7422 and 7333.
	NATSPort, HTTPPort int
	// Rehearsal is how long a start may try out events to find one to suggest; default 300 ms.
	Rehearsal time.Duration
	// SampleEvery is how often the sensors of the sample send a reading, and RestartAfter after how long a worker that was killed is started
	// again; default 2 s and 3 s.
	SampleEvery, RestartAfter time.Duration
}

func (c *Config) fill() {
	c.NATSPort, c.HTTPPort = cmp.Or(c.NATSPort, NATSPort), cmp.Or(c.HTTPPort, HTTPPort)
	c.SampleEvery, c.RestartAfter = cmp.Or(c.SampleEvery, sampleEvery), cmp.Or(c.RestartAfter, restartAfter)
	c.Rehearsal = cmp.Or(c.Rehearsal, rehearsalTime)
}

// workers is the number of workers: two, so that one can take over from the other.
const workers = 2

// partitions is the number of partitions of a new deployment: both workers get some, and few to
// start.
const partitions = 4

// dev is a running dev server.
type dev struct {
	cfg      Config
	run      *settle.Deployment
	bus      *bus.Bus
	programs []*hosted
	reported []string // files that were reported as new
	server   Server
	traces   *traces
	claims   claims
	log      *slog.Logger
	began    time.Time
	pages    atomic.Pointer[console.Console]
	web      web            // serves HTTP in front of a program in Go
	golang   *golang        // nil unless the program is one in Go
	chaos    sync.WaitGroup // answers to requests to kill workers, and what follows from them
}

// Run runs a dev server until ctx ends.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg.fill()
	log, flush, err := export.Logs(ctx, export.Logging{Service: "settle-dev", Local: screen{out: cfg.Out}, Level: slog.LevelInfo})
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushPatience)
		defer cancel()
		flush(last)
	}()
	d := &dev{cfg: cfg, log: slog.New(log), began: time.Now()}
	if cfg.Reset {
		if err := d.reset(); err != nil {
			return err
		}
	}
	if err := d.find(); err != nil {
		return err
	}
	defer d.claims.release() // when nothing listens any more
	if err := d.start(ctx); err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		if d.golang != nil {
			d.golang.stop()
		}
		d.web.stop()
		d.pages.Load().Close()
		err = errors.Join(err, d.run.Stop(last))
	}()
	hide, err := d.showTraces(ctx)
	if err != nil {
		return err
	}
	defer hide()
	if err := d.begin(ctx); err != nil {
		return err
	}
	return d.serve(ctx)
}

// stopPatience is the time for saving work in progress.
const stopPatience = 20 * time.Second

// flushPatience is the time for sending the last lines of the log.
const flushPatience = 3 * time.Second

func (d *dev) store() string { return filepath.Join(d.cfg.Dir, Store) }

func (d *dev) reset() error {
	err := embedded.RemoveStore(d.store())
	switch {
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintf(d.cfg.Out, "%s: there was nothing to remove\n", d.store())
	case err != nil:
		return fmt.Errorf("reset: %w", err)
	default:
		fmt.Fprintf(d.cfg.Out, "%s: removed\n", d.store())
	}
	return nil
}

// find finds the programs.
func (d *dev) find() error {
	files, err := sources(d.cfg.Programs)
	if err != nil {
		return err
	}
	if dir := goDirectory(d.cfg.Programs); len(files) == 0 && dir != "" {
		return d.findGo(dir)
	}
	seen := map[string]string{}
	for _, file := range files {
		name := program.NameOf(file)
		if err := model.CheckName("program", name); err != nil {
			return fmt.Errorf("%w; rename %s", err, file)
		}
		if other := seen[name]; other != "" {
			return fmt.Errorf("%s and %s are both named %s; rename one, or run them one at a time", other, file, name)
		}
		seen[name] = file
		d.programs = append(d.programs, &hosted{file: file, name: name, spaces: spacesOf(name, len(files))})
	}
	if len(files) == 0 {
		d.programs = []*hosted{{name: SampleSpace, spaces: program.All}}
	}
	return nil
}

// start starts the server, the coordinator and the client.
func (d *dev) start(ctx context.Context) error {
	former := portsOf(d.store())
	nats, err := d.claims.freePort(former.NATS, d.cfg.NATSPort)
	if err != nil {
		return err
	}
	web, err := d.claims.freePort(former.HTTP, d.cfg.HTTPPort)
	if err != nil {
		return err
	}
	if d.run, err = settle.Start(ctx, d.deployment(nats, web)); err != nil {
		return err
	}
	d.bus = d.run.Bus()
	d.server = Server{NATS: d.run.Server().ClientURL(), HTTP: "http://" + web, PID: os.Getpid()}
	pages, err := console.OnBus(d.bus, console.Config{Version: d.cfg.Version, Principal: model.Operator, Remember: true, Traces: d.traces.find(), Logger: d.log})
	if err != nil {
		return errors.Join(err, d.run.Stop(ctx))
	}
	d.pages.Store(pages)
	if err := d.serveGo(ctx, web); err != nil {
		return errors.Join(err, d.run.Stop(ctx))
	}
	return keepPorts(d.server, d.store())
}

// deployment returns the configuration of the deployment, whose servers listen at these addresses.
func (d *dev) deployment(nats, address string) settle.Config {
	o := d.cfg.Worker
	web := o.HTTP
	web.Addr, web.OperatorPages = address, true
	web.Pages = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.pages.Load().ServeHTTP(w, r) }) // workers start when it is there
	return settle.Config{
		Hosted: true, Workers: -1, // added by begin, when they have something to run
		Server:  embedded.Config{StoreDir: d.store(), Listen: nats, Name: devserver.NameOf(d.store())},
		Bus:     bus.Config{Partitions: d.partitions(), Version: d.cfg.Version},
		Options: o.Options, Starlark: o.Starlark, Live: o.Live, HTTP: web,
		OnConsole: d.console, OnError: d.wrong,
		Logger: d.log, Tracer: d.tracer(),
	}
}

// partitions returns 0 for existing data, whose number of partitions is kept.
func (d *dev) partitions() int {
	if _, err := os.Stat(filepath.Join(d.store(), "jetstream")); err == nil {
		return 0
	}
	return partitions
}

// begin deploys the programs, starts the workers, and prints all addresses.
func (d *dev) begin(ctx context.Context) error {
	if err := d.forget(ctx); err != nil {
		return err
	}
	for _, h := range d.programs {
		if _, err := d.load(ctx, h); err != nil {
			d.logFailure(h, err)
		}
	}
	if d.golang != nil {
		d.golang.begin(ctx)
		return d.print(ctx)
	}
	for range workers {
		if _, err := d.run.AddWorker(ctx); err != nil {
			return err
		}
	}
	if d.isSample() {
		if err := d.fillSample(ctx); err != nil {
			return fmt.Errorf("fill the sample: %w", err)
		}
	}
	return d.print(ctx)
}

func (d *dev) isSample() bool { return d.golang == nil && d.programs[0].file == "" }

// serve watches the files until ctx ends.
func (d *dev) serve(ctx context.Context) error {
	removeStaleContexts(d.server.NATS, contextFor(d.server.NATS))
	if _, err := bus.SaveContext(contextFor(d.server.NATS), d.server.NATS, contextDescription); err != nil {
		fmt.Fprintf(d.cfg.Out, "the nats context %s could not be written (%v); use --server %s\n", contextFor(d.server.NATS), err, d.server.NATS)
	} else {
		defer bus.RemoveContext(contextFor(d.server.NATS), d.server.NATS)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the files: %w", err)
	}
	defer w.Close()
	if d.golang != nil {
		err = d.golang.lookAt(w)
	} else {
		err = d.lookAt(w)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer func() {
		cancel()
		following.Wait()
		d.chaos.Wait()
	}()
	if err := d.offerKill(ctx); err != nil {
		return err
	}
	if d.isSample() {
		following.Go(func() { d.live(ctx) }) // ends with ctx
	}
	rules, ready := make(chan program.Rule), make(chan struct{})
	begun := sync.OnceFunc(func() { close(ready) })
	following.Go(func() { d.followRules(ctx, rules, begun) }) // ends with ctx
	select {
	case <-ready:
	case <-ctx.Done():
	}
	if d.cfg.Ready != nil {
		d.cfg.Ready(d.server)
	}
	if d.golang != nil {
		return d.golang.watch(ctx, w, rules, d.learn)
	}
	return d.watch(ctx, w, rules)
}
