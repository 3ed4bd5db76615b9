package worldtest

import (
	"context"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// Process is a worker with a connection of its own, so that it can crash alone.
type Process struct {
	*worker.Worker
	Bus *membus.Bus
	w   *World
}

// Worker starts a worker on a connection of its own, and kills it when the test ends.
func (w *World) Worker(cfg worker.Config) *Process {
	w.Helper()
	b := w.Connect(cfg.ID)
	return w.WorkerOn(b, b, cfg)
}

// WorkerOn is Worker with a bus over, which wraps its connection b.
func (w *World) WorkerOn(b *membus.Bus, over port.Bus, cfg worker.Config) *Process {
	w.Helper()
	p := w.NewWorker(b, over, cfg)
	if err := p.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	return p
}

// NewWorker returns a worker that is to be started, and kills it when the test ends. Without a logger of its own, it
// logs to the journal.
func (w *World) NewWorker(b *membus.Bus, over port.Bus, cfg worker.Config) *Process {
	w.Helper()
	if cfg.Logger == nil {
		cfg.Logger = w.Logger()
	}
	p, err := worker.New(over, cfg)
	if err != nil {
		w.Fatal(err)
	}
	process := &Process{Worker: p, Bus: b, w: w}
	w.Cleanup(process.Crash) // does nothing after Shutdown
	return process
}

// Crash ends the process as SIGKILL would.
func (p *Process) Crash() {
	p.Kill()
	p.Bus.Kill()
}

// Shutdown ends the process as SIGTERM would.
func (p *Process) Shutdown() {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		p.w.Errorf("stop: %v", err)
	}
	p.Bus.Close()
}

// Always returns the programs of a worker that runs p in every space.
func Always(p *space.Program) func(string) (*space.Program, error) {
	return func(string) (*space.Program, error) { return p, nil }
}

// Coordinator starts a coordinator on a connection of its own, and stops it when the test ends.
func (w *World) Coordinator() *coordinator.Coordinator {
	return w.CoordinatorOn(w.Connect("coordinator"), coordinator.Config{})
}

// CoordinatorOn starts a coordinator that logs to the journal, and stops it when the test ends.
func (w *World) CoordinatorOn(b port.Bus, cfg coordinator.Config) *coordinator.Coordinator {
	cfg.Logger = w.Logger()
	c := coordinator.New(b, cfg)
	c.Start()
	w.Cleanup(c.Stop)
	return c
}
