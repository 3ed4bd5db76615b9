//go:build !counts

package events

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/settlehq/settle/bench/harness"
)

// riverEngine is River on PostgreSQL: an event is a job, which changes the entity's row and completes itself in one
// transaction. Jobs have no order, so that of an entity's events is that of its clients.
type riverEngine struct{}

func (riverEngine) Name() string { return "River" }

func (riverEngine) About() string {
	return "River on PostgreSQL: an event is a job with a transaction on the entity's row, polling every millisecond"
}

func (riverEngine) At(s *harness.Site) bool { return s.Always }

type riverEvent struct {
	Entity string `json:"entity" river:"unique"`
	ID     string `json:"id"     river:"unique"`
}

func (riverEvent) Kind() string { return "add" }

func (riverEngine) Start(ctx context.Context, at *harness.Site) (System, error) {
	if at.Others == nil || at.Others.NoPostgres != nil {
		return nil, notRun("%v", at.Others.WhyNotPostgres())
	}
	rows, err := newRows(ctx, at.Others.Postgres+"river")
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(rows.pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	s := &riverSystem{at: at, rows: rows, answers: newAnswers()}
	workers := river.NewWorkers()
	river.AddWorker(workers, s)
	river.AddWorker(workers, &riverHops{s: s})
	s.client, err = river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}, Workers: workers,
		FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return s, s.client.Start(context.WithoutCancel(ctx))
}

type riverSystem struct {
	river.WorkerDefaults[riverEvent]
	at      *harness.Site
	rows    *rows
	client  *river.Client[pgx.Tx]
	answers *answers
}

// Work performs a job.
func (s *riverSystem) Work(ctx context.Context, job *river.Job[riverEvent]) error {
	var count int64
	err := pgx.BeginFunc(ctx, s.rows.pool, func(tx pgx.Tx) (err error) {
		if count, err = s.rows.add(ctx, tx, job.Args.Entity, job.Args.ID); err != nil {
			return err
		}
		_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
	if err == nil {
		s.answers.give(job.Args.Entity, job.Args.ID, count)
	}
	return err
}

// riverChain is a job: one event of a chain.
type riverChain struct{ chain }

func (riverChain) Kind() string { return "hop" }

type riverHops struct {
	river.WorkerDefaults[riverChain]
	s *riverSystem
}

// Work performs a job, whose transaction inserts that of the next event.
func (h *riverHops) Work(ctx context.Context, job *river.Job[riverChain]) error {
	c, s := job.Args.chain, h.s
	var count int64
	err := pgx.BeginFunc(ctx, s.rows.pool, func(tx pgx.Tx) (err error) {
		if count, err = s.rows.add(ctx, tx, c.Path[0], c.event()); err != nil {
			return err
		}
		if len(c.Path) > 1 {
			if _, err := s.client.InsertTx(ctx, tx, riverChain{chain{c.Path[1:], c.ID}}, nil); err != nil {
				return err
			}
		}
		_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
	if err == nil && len(c.Path) == 1 {
		s.answers.give(c.Path[0], c.ID, count)
	}
	return err
}

func (s *riverSystem) Chain(ctx context.Context, entities []string, id string) error {
	c := chain{entities, entities[0] + "/" + id}
	ch := s.answers.begin(entities[len(entities)-1], c.ID)
	if _, err := s.client.Insert(ctx, riverChain{c}, nil); err != nil {
		return err
	}
	_, err := s.answers.wait(ctx, ch)
	return err
}

func (s *riverSystem) Add(ctx context.Context, entity, id string) (int64, error) {
	ch := s.answers.begin(entity, id)
	if err := s.Post(ctx, entity, id); err != nil {
		return 0, err
	}
	return s.answers.wait(ctx, ch)
}

func (s *riverSystem) Post(ctx context.Context, entity, id string) error {
	_, err := s.client.Insert(ctx, riverEvent{entity, id}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	return err
}

func (s *riverSystem) State(ctx context.Context, entity string) (State, error) {
	return s.rows.state(ctx, entity)
}

func (s *riverSystem) Parts() harness.Parts {
	return harness.Parts{InClient: true, Others: s.at.Others.PostgresPIDs()}
}

func (s *riverSystem) Close() error {
	err := s.client.Stop(context.Background())
	s.rows.pool.Close()
	return err
}
