// Package pause waits for a time, but not beyond a context: what loops do that ask again
// later.
package pause

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, and returns the error of ctx then. It does not wait
// at all for 0.
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

// Backoff is how long to wait after n answers in a row that brought nothing: not at
// all at first, then a millisecond, doubled up to a second.
func Backoff(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(time.Millisecond<<min(n-1, 10), time.Second)
}
