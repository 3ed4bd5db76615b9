//go:build !counts

package workflows

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/core"
	"github.com/cschleiden/go-workflows/registry"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"

	"github.com/settlehq/settle/bench/harness"
)

// goWorkflows is github.com/cschleiden/go-workflows on SQLite, with WAL and the default of SQLite for syncs. Its
// polling is tuned, and it knows that it is alone.
type goWorkflows struct{}

func (goWorkflows) Name() string { return "go-workflows" }

func (goWorkflows) About() string {
	return "github.com/cschleiden/go-workflows on SQLite, in the same process, polling every millisecond"
}

const goWorkflow = "run"

func (goWorkflows) Start(ctx context.Context, at *harness.Site, a *Actions) (System, error) {
	if at.Servers.Size() > 1 {
		return nil, notRun("it has one database")
	}
	dir, err := os.MkdirTemp(at.Dir, "go-workflows-")
	if err != nil {
		return nil, err
	}
	b := sqlite.NewSqliteBackend(filepath.Join(dir, "db"), sqlite.WithBackendOptions(backend.WithLogger(slog.New(slog.DiscardHandler))))
	o := worker.DefaultOptions
	o.WorkflowPollingInterval, o.ActivityPollingInterval = time.Millisecond, time.Millisecond
	o.WorkflowExecutorCacheSize = 20_000
	o.SingleWorkerMode = true
	w := worker.New(b, &o)
	if err := w.RegisterActivity(&goActions{a}); err != nil {
		return nil, err
	}
	if err := w.RegisterWorkflow(func(ctx workflow.Context, name string, n int64) (int64, error) {
		return programNamed(name).run(goFlow{ctx}, n)
	}, registry.WithName(goWorkflow)); err != nil {
		return nil, err
	}
	s := &goSystem{backend: b, worker: w, client: client.New(b)}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	return s, w.Start(inner)
}

// goActions are activities, which the engine knows by the names of the methods.
type goActions struct{ a *Actions }

// Noop and Double are the actions.
func (g *goActions) Noop(_ context.Context, in int64) (int64, error) { return g.a.do(noop, in), nil }

func (g *goActions) Double(_ context.Context, in int64) (int64, error) {
	return g.a.do(double, in), nil
}

type goFlow struct{ ctx workflow.Context }

type goFuture struct {
	ctx workflow.Context
	f   workflow.Future[int64]
}

func (f goFlow) call(action string, in int64) future {
	var named *goActions // a workflow has no activities, only their names
	activity := named.Noop
	if action == double {
		activity = named.Double
	}
	return goFuture{f.ctx, workflow.ExecuteActivity[int64](f.ctx, workflow.ActivityOptions{RetryOptions: workflow.RetryOptions{MaxAttempts: 1}}, activity, in)}
}

func (f goFuture) get() (int64, error) { return f.f.Get(f.ctx) }

func (f goFlow) sleep(seconds int64) error {
	return workflow.Sleep(f.ctx, time.Duration(seconds)*time.Second)
}

type goSystem struct {
	backend backend.Backend
	worker  *worker.Worker
	client  *client.Client
	cancel  context.CancelFunc
	// instances are the runs whose results nothing has waited for.
	instances sync.Map
}

func (s *goSystem) Start(ctx context.Context, program, id string, n int64) error {
	instance, err := s.client.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: id}, goWorkflow, program, n)
	if err == nil {
		s.instances.Store(id, instance)
	}
	return err
}

func (s *goSystem) Result(ctx context.Context, id string) (int64, error) {
	v, known := s.instances.LoadAndDelete(id)
	if !known {
		return 0, fmt.Errorf("there is no run %s", id)
	}
	instance := v.(*core.WorkflowInstance)
	// The client's own wait gives up, and polls ever less often.
	for {
		state, err := s.client.GetWorkflowInstanceState(ctx, instance)
		if err != nil {
			return 0, err
		}
		if state == core.WorkflowInstanceStateFinished {
			break
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("run %s: %w", id, ctx.Err())
		}
	}
	return client.GetWorkflowResult[int64](ctx, s.client, instance, time.Minute)
}

func (s *goSystem) Parts() harness.Parts { return harness.Parts{InClient: true} }

func (s *goSystem) Close() error {
	s.cancel()
	if err := s.worker.WaitForCompletion(); err != nil {
		return err
	}
	return s.backend.Close()
}
