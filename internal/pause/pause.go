// Package pause waits for a duration or the end of a context, for loops that retry.
package pause

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, and returns ctx.Err(). For 0 it returns at once.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Backoff returns the pause after n consecutive empty answers: none at first, then a millisecond,
// doubling up to a second.
func Backoff(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(time.Millisecond<<min(n-1, 10), time.Second)
}
