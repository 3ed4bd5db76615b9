//go:build !counts

package events

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/settlehq/settle/bench/harness"
)

// temporal is Temporal's development server: an entity is a workflow, an event an update, whose id makes a repeated
// one known and whose result is the count. The hops of a chain are signals between workflows.
type temporal struct{}

func (temporal) Name() string { return "Temporal" }

func (temporal) About() string {
	return "Temporal's development server on SQLite: an entity is a workflow, an event an update, a hop of a chain a signal"
}

func (temporal) At(s *harness.Site) bool { return s.Always }

func (temporal) Start(ctx context.Context, at *harness.Site) (System, error) {
	if at.Others == nil || at.Others.NoTemporal != nil {
		return nil, notRun("%v", at.Others.WhyNotTemporal())
	}
	c, err := client.DialContext(ctx, client.Options{HostPort: at.Others.Temporal, Logger: harness.Silent{}})
	if err != nil {
		return nil, err
	}
	s := &temporalSystem{at: at, client: c, worker: worker.New(c, "events", worker.Options{MaxConcurrentWorkflowTaskPollers: 8}), answers: newAnswers()}
	s.worker.RegisterWorkflowWithOptions(temporalEntity, workflow.RegisterOptions{Name: entityWorkflow})
	s.worker.RegisterActivityWithOptions(s.answer, activity.RegisterOptions{Name: answerActivity})
	return s, s.worker.Start()
}

const hopSignal = "hop"

func temporalEntity(ctx workflow.Context, count int64) error {
	handled := 0
	if err := workflow.SetUpdateHandler(ctx, addSignal, func(workflow.Context) (int64, error) {
		handled++
		count++
		return count, nil
	}); err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(ctx, "count", func() (int64, error) { return count, nil }); err != nil {
		return err
	}
	hops := workflow.GetSignalChannel(ctx, hopSignal)
	busy := false
	var failed error
	workflow.Go(ctx, func(ctx workflow.Context) {
		for c := (chain{}); failed == nil && hops.Receive(ctx, &c); c = (chain{}) {
			busy = true
			handled++
			count++
			failed = temporalHop(ctx, c, count)
			busy = false
		}
	})
	// A signal that has not been received does not go on to the next run.
	if err := workflow.Await(ctx, func() bool { return failed != nil || handled >= renewal && !busy && hops.Len() == 0 }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return workflow.NewContinueAsNewError(ctx, entityWorkflow, count)
}

// temporalHop sends the next event of a chain, or answers its client.
func temporalHop(ctx workflow.Context, c chain, count int64) error {
	if len(c.Path) > 1 {
		return workflow.SignalExternalWorkflow(ctx, c.Path[1], "", hopSignal, chain{c.Path[1:], c.ID}).Get(ctx, nil)
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteActivity(ctx, answerActivity, c.Path[0], c.ID, count).Get(ctx, nil)
}

type temporalSystem struct {
	at      *harness.Site
	client  client.Client
	worker  worker.Worker
	answers *answers
}

// answer is the activity at the end of a chain.
func (s *temporalSystem) answer(_ context.Context, entity, id string, count int64) error {
	s.answers.give(entity, id, count)
	return nil
}

func (s *temporalSystem) Add(ctx context.Context, entity, id string) (count int64, err error) {
	if id == "first" {
		if _, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: entity, TaskQueue: "events"}, entityWorkflow, int64(0)); err != nil {
			return 0, err
		}
	}
	for range 10 { // an update that meets the end of a run is refused
		var h client.WorkflowUpdateHandle
		h, err = s.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: entity, UpdateID: id, UpdateName: addSignal, WaitForStage: client.WorkflowUpdateStageCompleted})
		if err == nil {
			if err = h.Get(ctx, &count); err == nil {
				return count, nil
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, fmt.Errorf("update of %s: %w", entity, err)
}

func (s *temporalSystem) Post(ctx context.Context, entity, id string) error {
	_, err := s.Add(ctx, entity, id)
	return err
}

func (s *temporalSystem) Chain(ctx context.Context, entities []string, id string) error {
	c := chain{entities, entities[0] + "/" + id}
	ch := s.answers.begin(entities[len(entities)-1], c.ID)
	if err := s.client.SignalWorkflow(ctx, entities[0], "", hopSignal, c); err != nil {
		return err
	}
	_, err := s.answers.wait(ctx, ch)
	return err
}

func (s *temporalSystem) State(ctx context.Context, entity string) (st State, err error) {
	v, err := s.client.QueryWorkflow(ctx, entity, "", "count")
	if err != nil {
		return st, err
	}
	return st, v.Get(&st.Count)
}

func (s *temporalSystem) Parts() harness.Parts {
	return harness.Parts{InClient: true, Others: s.at.Others.TemporalPIDs()}
}

func (s *temporalSystem) Close() error {
	s.worker.Stop()
	s.client.Close()
	return nil
}
