//go:build !counts

package workflows

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settlehq/settle/bench/harness"
)

// dbosEngine is DBOS on PostgreSQL: an action is a step in a goroutine of its workflow.
type dbosEngine struct{}

func (dbosEngine) Name() string { return "DBOS" }

func (dbosEngine) About() string {
	return "DBOS for Go on PostgreSQL: workflows in the same process, an action is a step"
}

func (dbosEngine) Start(ctx context.Context, at *harness.Site, a *Actions) (System, error) {
	if at.Others == nil || at.Others.NoPostgres != nil {
		return nil, notRun("%v", at.Others.WhyNotPostgres())
	}
	cfg, err := pgxpool.ParseConfig(at.Others.Postgres + "flows")
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 64
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return nil, err
	}
	d, err := dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{AppName: "bench-flows", SystemDBPool: pool, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	s := &dbosSystem{at: at, actions: a, pool: pool, dbos: d}
	dbos.RegisterWorkflow(d, s.flow, dbos.WithWorkflowName("flow"))
	return s, dbos.Launch(d)
}

type dbosSystem struct {
	at      *harness.Site
	actions *Actions
	pool    *pgxpool.Pool
	dbos    dbos.Context
	// handles are the runs whose results nothing has waited for.
	handles sync.Map
}

type dbosRun struct {
	Program string
	N       int64
}

// flow is the workflow.
func (s *dbosSystem) flow(ctx dbos.Context, r dbosRun) (int64, error) {
	return programNamed(r.Program).run(dbosFlow{ctx, s.actions}, r.N)
}

type dbosFlow struct {
	ctx     dbos.Context
	actions *Actions
}

type dbosFuture struct {
	outcome <-chan dbos.StepOutcome[int64]
	err     error
}

func (f dbosFlow) call(action string, in int64) future {
	ch, err := dbos.Go(f.ctx, func(context.Context) (int64, error) { return f.actions.do(action, in), nil }, dbos.WithStepName(action))
	return dbosFuture{ch, err}
}

func (f dbosFuture) get() (int64, error) {
	if f.err != nil {
		return 0, f.err
	}
	o := <-f.outcome
	return o.Result, o.Err
}

func (f dbosFlow) sleep(seconds int64) error {
	_, err := dbos.Sleep(f.ctx, time.Duration(seconds)*time.Second)
	return err
}

func (s *dbosSystem) Start(_ context.Context, program, id string, n int64) error {
	h, err := dbos.RunWorkflow(s.dbos, s.flow, dbosRun{program, n}, dbos.WithWorkflowID(id))
	if err == nil {
		s.handles.Store(id, h)
	}
	return err
}

func (s *dbosSystem) Result(_ context.Context, id string) (int64, error) {
	v, known := s.handles.LoadAndDelete(id)
	if !known {
		return 0, fmt.Errorf("there is no run %s", id)
	}
	return v.(dbos.WorkflowHandle[int64]).GetResult()
}

func (s *dbosSystem) Parts() harness.Parts {
	return harness.Parts{InClient: true, Others: s.at.Others.PostgresPIDs()}
}

func (s *dbosSystem) Close() error {
	dbos.Shutdown(s.dbos, 10*time.Second)
	s.pool.Close()
	return nil
}
