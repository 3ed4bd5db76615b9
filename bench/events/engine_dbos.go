//go:build !counts

package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settlehq/settle/bench/harness"
)

// dbosEngine is DBOS on PostgreSQL: an event is a workflow under the event's id, with one step, which is a transaction
// that changes the entity's row.
type dbosEngine struct{}

func (dbosEngine) Name() string { return "DBOS" }

func (dbosEngine) About() string {
	return "DBOS for Go on PostgreSQL: an event is a workflow with a transaction on the entity's row"
}

func (dbosEngine) At(s *harness.Site) bool { return s.Always }

func (dbosEngine) Start(ctx context.Context, at *harness.Site) (System, error) {
	if at.Others == nil || at.Others.NoPostgres != nil {
		return nil, notRun("%v", at.Others.WhyNotPostgres())
	}
	rows, err := newRows(ctx, at.Others.Postgres+"dbos")
	if err != nil {
		return nil, err
	}
	d, err := dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{AppName: "bench-events", SystemDBPool: rows.pool, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	s := &dbosSystem{at: at, rows: rows, dbos: d, answers: newAnswers()}
	dbos.RegisterWorkflow(d, s.handle, dbos.WithWorkflowName("add"))
	dbos.RegisterWorkflow(d, s.hop, dbos.WithWorkflowName("hop"))
	return s, dbos.Launch(d)
}

type dbosEvent struct{ Entity, ID string }

type dbosSystem struct {
	at      *harness.Site
	rows    *rows
	dbos    dbos.Context
	answers *answers
}

// handle is the workflow.
func (s *dbosSystem) handle(ctx dbos.Context, ev dbosEvent) (int64, error) {
	return dbos.RunAsStep(ctx, func(ctx context.Context) (count int64, err error) {
		err = pgx.BeginFunc(ctx, s.rows.pool, func(tx pgx.Tx) error {
			count, err = s.rows.add(ctx, tx, ev.Entity, ev.ID)
			return err
		})
		return count, err
	})
}

// chain is the rest of a chain: the entities that it has not reached.
type chain struct {
	Path []string `json:"path"`
	ID   string   `json:"id"`
}

// event is the id of the chain's next event.
func (c chain) event() string { return c.ID + "/" + strconv.Itoa(len(c.Path)) }

// hop is the workflow of one event of a chain, which starts that of the next one.
func (s *dbosSystem) hop(ctx dbos.Context, c chain) (int64, error) {
	count, err := s.handle(ctx, dbosEvent{c.Path[0], c.event()})
	if err != nil {
		return 0, err
	}
	if len(c.Path) == 1 {
		s.answers.give(c.Path[0], c.ID, count)
		return count, nil
	}
	next := chain{c.Path[1:], c.ID}
	_, err = dbos.RunWorkflow(ctx, s.hop, next, dbos.WithWorkflowID(next.event()))
	return count, err
}

func (s *dbosSystem) Chain(ctx context.Context, entities []string, id string) error {
	c := chain{entities, entities[0] + "/" + id}
	ch := s.answers.begin(entities[len(entities)-1], c.ID)
	if _, err := dbos.RunWorkflow(s.dbos, s.hop, c, dbos.WithWorkflowID(c.event())); err != nil {
		return err
	}
	_, err := s.answers.wait(ctx, ch)
	return err
}

func (s *dbosSystem) Add(_ context.Context, entity, id string) (int64, error) {
	h, err := dbos.RunWorkflow(s.dbos, s.handle, dbosEvent{entity, id}, dbos.WithWorkflowID(entity+"/"+id))
	if err != nil {
		return 0, err
	}
	return h.GetResult()
}

func (s *dbosSystem) Post(ctx context.Context, entity, id string) error {
	_, err := s.Add(ctx, entity, id)
	return err
}

func (s *dbosSystem) State(ctx context.Context, entity string) (State, error) {
	return s.rows.state(ctx, entity)
}

func (s *dbosSystem) Parts() harness.Parts {
	return harness.Parts{InClient: true, Others: s.at.Others.PostgresPIDs()}
}

func (s *dbosSystem) Close() error {
	dbos.Shutdown(s.dbos, 10*time.Second)
	s.rows.pool.Close()
	return nil
}

// rows are entities in a table, and the ids of the events that they contain.
type rows struct{ pool *pgxpool.Pool }

func newRows(ctx context.Context, url string) (*rows, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 64
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS entity (name text PRIMARY KEY, count bigint NOT NULL);
		CREATE TABLE IF NOT EXISTS applied (entity text, event text, PRIMARY KEY (entity, event))`)
	return &rows{pool}, err
}

// add applies an event unless it is applied.
func (r *rows) add(ctx context.Context, tx pgx.Tx, entity, id string) (count int64, err error) {
	tag, err := tx.Exec(ctx, "INSERT INTO applied VALUES ($1, $2) ON CONFLICT DO NOTHING", entity, id)
	if err != nil {
		return 0, err
	}
	change := "INSERT INTO entity AS e VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET count = e.count + 1 RETURNING count"
	if tag.RowsAffected() == 0 {
		change = "SELECT count FROM entity WHERE name = $1"
	}
	return count, tx.QueryRow(ctx, change, entity).Scan(&count)
}

func (r *rows) state(ctx context.Context, entity string) (st State, err error) {
	err = r.pool.QueryRow(ctx, "SELECT count FROM entity WHERE name = $1", entity).Scan(&st.Count)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("there is no entity %s", entity)
	}
	return st, err
}
