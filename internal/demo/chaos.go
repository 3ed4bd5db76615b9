package demo

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/settlehq/settle/internal/pause"
)

// fleet is the part of a deployment that chaos needs.
type fleet interface {
	Workers() []string
	KillWorker(id string) bool
	AddWorker(ctx context.Context) (string, error)
}

// chaos kills random workers, spread over the run by the share of handled events, and adds a new
// one a moment after each.
func (r *run) chaos(ctx context.Context, f fleet) error {
	for i := range r.o.Kill {
		at := r.logs.at(r.logs.total * (i + 1) / (r.o.Kill + 1))
		select {
		case <-at:
		case <-ctx.Done():
			return ctx.Err()
		}
		alive := f.Workers()
		victim := alive[rand.IntN(len(alive))]
		if !f.KillWorker(victim) {
			return fmt.Errorf("kill worker %s: it is gone already", victim)
		}
		r.note(Note{Kind: Killed, Worker: victim})
		if err := pause.For(ctx, r.o.Rejoin); err != nil {
			return err
		}
		joined, err := f.AddWorker(ctx)
		if err != nil {
			return fmt.Errorf("add a worker after %s was killed: %w", victim, err)
		}
		r.note(Note{Kind: Joined, Worker: joined})
	}
	return nil
}
