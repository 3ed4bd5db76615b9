//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/process"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/test/chaos/history"
	"github.com/settlehq/settle/worker"
)

// The roles in which this program starts itself: cmd/spaceworker, cmd/coordinator and a nats-server,
// from the same code.

// natsRole is a NATS server.
type natsRole struct {
	Config string `help:"nats-server configuration." required:""`
	Store  string `help:"Where the streams are kept." required:""`
	Fsync  string `help:"When acknowledged writes are on the disk." enum:"always,interval" default:"always"`
	Listen string `help:"Where clients connect." required:""`
}

// Run serves until SIGTERM.
func (r *natsRole) Run() error {
	fsync := embedded.FsyncAlways
	if r.Fsync == "interval" {
		fsync = embedded.FsyncInterval
	}
	s, err := embedded.Start(context.Background(), embedded.Config{
		StoreDir: r.Store, Fsync: fsync, Listen: r.Listen, ConfigFile: r.Config,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	s.Shutdown()
	return nil
}

// workerRole is a spaceworker with the program whose results package history expects.
type workerRole struct {
	process.Flags
	Seed    uint64 `help:"Seed of the workload."`
	Spaces  int    `help:"Spaces of the workload."`
	Clients int    `help:"Clients of the workload."`
	Hosted  int    `help:"How many of the spaces run the program that was deployed."`
	HTTP    string `name:"http" help:"Where documents are served over HTTP."`
	Counts  string `help:"File that gets what this worker has counted." placeholder:"FILE"`
	Break   string `help:"Break it on purpose: fence." placeholder:"WHAT"`

	Skew         time.Duration `help:"By how much its clock is off."`
	HistoryBytes int64         `help:"How many bytes of the log stay that no restart needs."`
	PurgeDelay   time.Duration `help:"How long a checkpoint has to stand before the log behind it goes."`
	Idle         time.Duration `help:"How long a space is at rest before it is unloaded from memory."`
}

// Run hosts spaces until SIGTERM.
func (r *workerRole) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w := history.Workload{Seed: r.Seed, Spaces: r.Spaces, Clients: r.Clients, Hosted: r.Hosted}
	return r.Flags.Run(ctx, "worker", os.Stderr, func(p process.Process) (func(context.Context) error, error) {
		var b port.Bus = p.Bus
		if r.Break == breakFence {
			b = unfenced{p.Bus}
		}
		wk, err := settle.StartWorker(ctx, b, settle.WorkerConfig{
			ID: p.ID, Programs: programs(w), Hosted: true, Logger: p.Logger,
			Now:     func() time.Time { return time.Now().Add(r.Skew) },
			HTTP:    gateway.Config{Addr: r.HTTP, Token: webToken, Logger: p.Logger},
			Options: worker.Options{HistoryBytes: r.HistoryBytes, PurgeDelay: r.PurgeDelay, Idle: r.Idle},
		})
		if err != nil {
			return nil, fmt.Errorf("start worker %s: %w", p.ID, err)
		}
		go r.tell(ctx, wk) // ends with ctx
		return func(ctx context.Context) error {
			err := wk.Stop(ctx)
			r.write(wk)
			return err
		}, nil
	})
}

// tell writes the worker's counters to a file, so that they outlive a SIGKILL.
func (r *workerRole) tell(ctx context.Context, w *worker.Worker) {
	for pause.For(ctx, 500*time.Millisecond) == nil {
		r.write(w)
	}
}

func (r *workerRole) write(w *worker.Worker) {
	if r.Counts == "" {
		return
	}
	tmp := r.Counts + ".new"
	text := strconv.FormatUint(w.Counts().Refused, 10)
	if err := os.WriteFile(tmp, []byte(text), 0o600); err == nil {
		_ = os.Rename(tmp, r.Counts) // if this fails, only the report lacks the counts
	}
}

// refusedIn adds up the files that workers have written into a directory.
func refusedIn(dir string) (sum uint64) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.counts")) // the pattern is sound
	for _, name := range files {
		data, err := os.ReadFile(name)
		if n, err2 := strconv.ParseUint(string(data), 10, 64); err == nil && err2 == nil {
			sum += n
		}
	}
	return sum
}

// coordinatorRole is a coordinator.
type coordinatorRole struct {
	process.Flags
	Break string `help:"Break it on purpose: release." placeholder:"WHAT"`
}

// Run releases sends until SIGTERM.
func (r *coordinatorRole) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return r.Flags.Run(ctx, "coordinator", os.Stderr, func(p process.Process) (func(context.Context) error, error) {
		var b port.Bus = p.Bus
		if r.Break == breakRelease {
			b = &forgetful{Bus: p.Bus}
		}
		c := coordinator.New(b, coordinator.Config{Logger: p.Logger})
		c.Start()
		return func(context.Context) error { c.Stop(); return nil }, nil
	})
}
