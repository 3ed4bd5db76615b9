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
