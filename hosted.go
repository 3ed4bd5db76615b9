package settle

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker"
)

// hosting is the registry of deployed programs of a worker that hosts them.
type hosting struct {
	registry *program.Registry
	usage    star.Usage
	worker   atomic.Pointer[worker.Worker] // notified of changes once it exists
	end      context.CancelFunc            // ends the programs' runs
}

// host opens the registry of deployed programs if Hosted is set, else returns nil. It returns when
// the registry has read the rules that assign programs to spaces.
func (cfg *WorkerConfig) host(ctx context.Context, bus port.Bus) (*hosting, error) {
	if !cfg.Hosted {
		return nil, nil
	}
	records, ok := bus.(program.Records)
	if !ok {
		return nil, fmt.Errorf("worker %s: Hosted is set, but a %T stores no programs", cfg.ID, bus)
	}
	within, end := context.WithCancel(context.Background()) // ends with the worker
	h := &hosting{end: end}
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	var err error
	h.registry, err = program.Open(ctx, records, program.Config{
		Logger: logger.With("worker", cfg.ID), OnChange: h.refresh,
		Compile: func(v *program.Version) (*space.Program, error) {
			p, err := star.Compile(v.Source(), star.Options{Limits: cfg.Starlark, Context: within, Usage: &h.usage})
			if err != nil {
				return nil, err
			}
			return p.Space(), nil
		},
	})
	if err != nil {
		end()
		return nil, fmt.Errorf("start worker %s: %w", cfg.ID, err)
	}
	return h, nil
}

// used returns what the runs of deployed programs have used, nil if the worker hosts none.
func (h *hosting) used() func() (steps, bytes uint64) {
	if h == nil {
		return nil
	}
	return h.usage.Read
}

// refresh makes the worker look up again which programs its spaces run.
func (h *hosting) refresh() {
	if w := h.worker.Load(); w != nil {
		w.Refresh()
	}
}

// notify makes w the worker that is notified of changes. It looks up earlier ones when it loads a
// space.
func (h *hosting) notify(w *worker.Worker) {
	if h == nil {
		return
	}
	h.worker.Store(w)
	w.AddFigures(func(f *status.Figures) {
		for _, t := range h.registry.Problems() {
			f.Unrunnable = append(f.Unrunnable, t.String())
		}
	})
	w.Beside(func(ctx context.Context, leaving <-chan struct{}) {
		select {
		case <-leaving:
		case <-ctx.Done():
		}
		h.registry.Close() // runs in progress complete
	})
	go func() { // ends with the worker
		<-w.Done()
		h.end()
	}()
}

// close releases a registry that was never given a worker.
func (h *hosting) close() {
	if h != nil {
		h.registry.Close()
		h.end()
	}
}

// beside resolves programs of this executable first, then deployed ones.
func (h *hosting) beside(own func(string) (*space.Program, error)) func(string) (*space.Program, error) {
	if h == nil {
		return own
	}
	return func(name string) (*space.Program, error) {
		if own != nil {
			if p, err := own(name); p != nil || err != nil {
				return p, err
			}
		}
		return h.registry.Programs(name)
	}
}
