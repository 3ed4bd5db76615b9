package workflows

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// parallel is how many preparations run at a time.
const parallel = 64

// inParallel calls f for 0 to n-1.
func inParallel(ctx context.Context, n int64, f func(ctx context.Context, i int64) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, parallel) {
		g.Go(func() error {
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				if err := f(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// quantile returns one of some durations, in milliseconds.
func quantile(list []time.Duration, q float64) float64 {
	slices.Sort(list)
	return float64(list[min(len(list)-1, int(q*float64(len(list))))].Microseconds()) / 1000
}
