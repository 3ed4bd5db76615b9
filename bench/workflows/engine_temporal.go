//go:build !counts

package workflows

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/settlehq/settle/bench/harness"
)

// temporal is Temporal's development server: an action is an activity.
type temporal struct{}

func (temporal) Name() string { return "Temporal" }

func (temporal) About() string {
	return "Temporal's development server on SQLite, in a process of its own; the worker is in this process, an action is an activity"
}

const temporalQueue = "flows"

func (temporal) Start(ctx context.Context, at *harness.Site, a *Actions) (System, error) {
	if at.Others == nil || at.Others.NoTemporal != nil {
		return nil, notRun("%v", at.Others.WhyNotTemporal())
	}
	c, err := client.DialContext(ctx, client.Options{HostPort: at.Others.Temporal, Logger: harness.Silent{}})
	if err != nil {
		return nil, err
	}
	w := worker.New(c, temporalQueue, worker.Options{MaxConcurrentWorkflowTaskPollers: 8, MaxConcurrentActivityTaskPollers: 8})
	for _, action := range []string{noop, double} {
		w.RegisterActivityWithOptions(func(_ context.Context, in int64) (int64, error) { return a.do(action, in), nil }, activity.RegisterOptions{Name: action})
	}
	w.RegisterWorkflowWithOptions(temporalRun, workflow.RegisterOptions{Name: "run"})
	return &temporalSystem{at, c, w}, w.Start()
}

func temporalRun(ctx workflow.Context, program string, n int64) (int64, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: &sdk.RetryPolicy{MaximumAttempts: 1}})
	return programNamed(program).run(temporalFlow{ctx}, n)
}

type temporalFlow struct{ ctx workflow.Context }

type temporalFuture struct {
	ctx workflow.Context
	f   workflow.Future
}

func (f temporalFlow) call(action string, in int64) future {
	return temporalFuture{f.ctx, workflow.ExecuteActivity(f.ctx, action, in)}
}

func (f temporalFuture) get() (v int64, err error) {
	err = f.f.Get(f.ctx, &v)
	return v, err
}

func (f temporalFlow) sleep(seconds int64) error {
	return workflow.Sleep(f.ctx, time.Duration(seconds)*time.Second)
}

type temporalSystem struct {
	at     *harness.Site
	client client.Client
	worker worker.Worker
}

func (s *temporalSystem) Start(ctx context.Context, program, id string, n int64) error {
	_, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: temporalQueue}, "run", program, n)
	return err
}

func (s *temporalSystem) Result(ctx context.Context, id string) (v int64, err error) {
	err = s.client.GetWorkflow(ctx, id, "").Get(ctx, &v)
	return v, err
}

func (s *temporalSystem) Parts() harness.Parts {
	return harness.Parts{InClient: true, Others: s.at.Others.TemporalPIDs()}
}

func (s *temporalSystem) Close() error {
	s.worker.Stop()
	s.client.Close()
	return nil
}
