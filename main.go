package settle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/internal/devserver"
)

// Main is the main function of a program: it runs a deployment until the process is interrupted, and exits, with status 1 after an error.
//
//	func main() { settle.Main(settle.Config{Programs: settle.Always(house())}) }
//
// The embedded server listens at 127.0.0.1:4222 unless Server.Listen names another address, so that the command settle can be used.
//
// `settle dev` builds and runs the program of a directory, and again when its files change. The process is one worker of the server of `settle dev`
// then: Server, Bus and Workers are not used, and of HTTP neither the address nor the certificate. For a worker of a fleet, with flags, see package spaceworker.
func Main(cfg Config) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	run := cfg.run
	if child, is := devserver.ChildOf(os.Getenv); is {
		signal.Ignore(os.Interrupt) // it is for settle dev, which ends this process
		ctx = child.Context(ctx, os.Stdin, devserver.End)
		run = func(ctx context.Context) error { return cfg.work(ctx, child) }
	}
	only, err := cfg.Programs.Describe(os.Getenv)
	if err == nil && !only {
		err = run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work runs a worker of `settle dev`, which has a coordinator, until ctx ends.
func (cfg Config) work(ctx context.Context, child devserver.Child) error {
	if cfg.Logger == nil {
		cfg.Logger = defaultLog()
	}
	cfg.HTTP.Addr, cfg.HTTP.TLSCert, cfg.HTTP.TLSKey = child.HTTP, "", ""
	b, err := bus.Connect(ctx, bus.Config{URL: child.NATS, Name: "worker/" + firstWorker, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	defer b.Close()
	w, err := StartWorker(ctx, b, cfg.worker(firstWorker))
	if err != nil {
		return err
	}
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return w.Stop(last)
}

// run runs a deployment until ctx ends. A second signal ends the process at once.
func (cfg Config) run(ctx context.Context) error {
	if cfg.Server.Listen == "" {
		cfg.Server.Listen = defaultListen
	}
	d, err := Start(ctx, cfg)
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return nil
		}
		return err
	}
	if server := d.Server(); server != nil {
		durable := "every write is on disk before it is acknowledged"
		if cfg.Server.Fsync != embedded.FsyncAlways {
			durable = "a crash of the machine loses the last writes"
		}
		fmt.Printf("NATS    %s\ndata    %s (%s)\nCtrl-C ends it; what is there stays.\n", server.ClientURL(), d.cfg.Server.StoreDir, durable)
	}
	<-ctx.Done()
	signal.Reset()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return d.Stop(last)
}

// defaultListen is where the server of Main listens.
const defaultListen = "127.0.0.1:4222"

// stopTime is how long Main waits for running handlers at the end.
const stopTime = 10 * time.Second
