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
	"github.com/settlehq/settle/worker"
)

// HostedLabel is what workers call the programs that they host, if those are the deployed
// ones; see WorkerConfig.Program.
const HostedLabel = "hosted"

// hosting is what a worker knows of deployed programs, if it hosts them.
type hosting struct {
	registry *program.Registry
	worker   atomic.Pointer[Worker] // that is told of changes, once there is one
	end      context.CancelFunc     // of the programs' runs
}

// host opens the registry, if the worker is to have one. It returns when that knows what the
// spaces run.
func (cfg *WorkerConfig) host(ctx context.Context, bus port.Bus) (*hosting, error) {
	if !cfg.Hosted {
		return nil, nil
	}
	records, ok := bus.(program.Records)
	if !ok {
		return nil, fmt.Errorf("worker %s: Hosted is set, and a %T keeps no programs", cfg.ID, bus)
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
			p, err := star.Compile(v.Source(), star.Options{Limits: cfg.Limits, Context: within})
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

// refresh has the worker ask again what its spaces run.
func (h *hosting) refresh() {
	if w := h.worker.Load(); w != nil {
		w.Refresh()
	}
}

// tell is who is told of changes from here on. What has changed before it hears of as it asks.
func (h *hosting) tell(w *Worker) {
	if h == nil {
		return
	}
	h.worker.Store(w)
	w.Tell(func(f *worker.Figures) {
		for _, t := range h.registry.Troubles() {
			f.Unrunnable = append(f.Unrunnable, t.String())
		}
	})
	w.Beside(func(ctx context.Context, leaving <-chan struct{}) {
		select {
		case <-leaving:
		case <-ctx.Done():
		}
		h.registry.Close() // what runs, runs to its end
	})
	go func() { // ends with the worker
		<-w.Done()
		h.end()
	}()
}

// close ends what tell has never been called for.
func (h *hosting) close() {
	if h != nil {
		h.registry.Close()
		h.end()
	}
}

// beside asks the programs of this executable first, and then those that are deployed.
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
