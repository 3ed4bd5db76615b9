//go:build !counts

package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/registry"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"

	"github.com/settlehq/settle/bench/harness"
)

// goWorkflows is github.com/cschleiden/go-workflows on SQLite: an entity is a workflow that receives signals, and
// answers each through an activity. A signal has no id that would make a repeated one known.
type goWorkflows struct{}

func (goWorkflows) Name() string { return "go-workflows" }

func (goWorkflows) About() string {
	return "github.com/cschleiden/go-workflows on SQLite: an entity is a workflow, an event a signal, which an activity answers"
}

// At reports whether the site's durability is that of the engine: a commit of SQLite is on the disk.
func (goWorkflows) At(s *harness.Site) bool { return s.Always }

// The names by which entities and their answers are registered.
const (
	entityWorkflow = "entity"
	answerActivity = "answer"
	addSignal      = "add"
	// renewal is after how many events an entity continues as a new run, so that its history stays short.
	renewal = 500
)

// goEvent is a signal.
type goEvent struct {
	ID string
	// Path has the entities that the handler's successors go to.
	Path []string
	// Silent reports that nothing waits for this hop of a chain, Read that the event is a question.
	Silent, Read bool
}

func (goWorkflows) Start(ctx context.Context, at *harness.Site) (System, error) {
	dir, err := os.MkdirTemp(at.Dir, "go-workflows-")
	if err != nil {
		return nil, err
	}
	b := sqlite.NewSqliteBackend(filepath.Join(dir, "db"), sqlite.WithBackendOptions(backend.WithLogger(slog.New(slog.DiscardHandler)), backend.WithRemoveContinuedAsNewInstances()))
	o := worker.DefaultOptions
	o.WorkflowPollingInterval, o.ActivityPollingInterval = time.Millisecond, time.Millisecond
	o.WorkflowExecutorCacheSize = 20_000
	o.SingleWorkerMode = true
	s := &goSystem{backend: b, worker: worker.New(b, &o), client: client.New(b), answers: newAnswers(), created: map[string]bool{}}
	if err := s.worker.RegisterActivity(s.answer, registry.WithName(answerActivity)); err != nil {
		return nil, err
	}
	if err := s.worker.RegisterWorkflow(goEntity, registry.WithName(entityWorkflow)); err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	return s, s.worker.Start(inner)
}

func goEntity(ctx workflow.Context, name string, count int64) error {
	var named *goSystem // a workflow has no activities, only their names
	signals := workflow.NewSignalChannel[goEvent](ctx, addSignal)
	for range renewal {
		ev, ok := signals.Receive(ctx)
		if !ok {
			return nil
		}
		if !ev.Read {
			count++
		}
		if len(ev.Path) > 0 {
			next := goEvent{ID: ev.ID, Path: ev.Path[1:], Silent: len(ev.Path) > 1}
			if _, err := workflow.SignalWorkflow(ctx, ev.Path[0], addSignal, next).Get(ctx); err != nil {
				return err
			}
		}
		if ev.Silent {
			continue
		}
		if _, err := workflow.ExecuteActivity[any](ctx, workflow.DefaultActivityOptions, named.answer, name, ev.ID, count).Get(ctx); err != nil {
			return err
		}
	}
	return workflow.ContinueAsNew(ctx, name, count)
}

type goSystem struct {
	backend backend.Backend
	worker  *worker.Worker
	client  *client.Client
	cancel  context.CancelFunc
	answers *answers

	mu      sync.Mutex
	created map[string]bool // the entities that there are
	reads   int
}

// answer is the activity.
func (s *goSystem) answer(_ context.Context, entity, id string, count int64) error {
	s.answers.give(entity, id, count)
	return nil
}

func (s *goSystem) Add(ctx context.Context, entity, id string) (int64, error) {
	s.mu.Lock()
	known := s.created[entity]
	s.created[entity] = true
	s.mu.Unlock()
	if !known {
		if _, err := s.client.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: entity}, entityWorkflow, entity, int64(0)); err != nil {
			return 0, err
		}
	}
	return s.signal(ctx, entity, entity, goEvent{ID: id})
}

// signal sends an event to an entity, and waits for the answer of the entity that gives it.
func (s *goSystem) signal(ctx context.Context, entity, answers string, ev goEvent) (int64, error) {
	ch := s.answers.begin(answers, ev.ID)
	if err := s.client.SignalWorkflow(ctx, entity, addSignal, ev); err != nil {
		return 0, fmt.Errorf("signal %s: %w", entity, err)
	}
	return s.answers.wait(ctx, ch)
}

func (s *goSystem) Chain(ctx context.Context, entities []string, id string) error {
	_, err := s.signal(ctx, entities[0], entities[len(entities)-1], goEvent{ID: id, Path: entities[1:], Silent: true})
	return err
}

// State asks the entity, so that the answer is what its workflow has.
func (s *goSystem) State(ctx context.Context, entity string) (State, error) {
	s.mu.Lock()
	s.reads++
	id := "read" + strconv.Itoa(s.reads)
	s.mu.Unlock()
	count, err := s.signal(ctx, entity, entity, goEvent{ID: id, Read: true})
	return State{Count: count}, err
}

func (s *goSystem) Parts() harness.Parts { return harness.Parts{InClient: true} }

func (s *goSystem) Close() error {
	s.cancel()
	return errors.Join(s.worker.WaitForCompletion(), s.backend.Close())
}
