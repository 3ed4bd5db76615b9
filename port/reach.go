package port

import (
	"context"
	"errors"
	"time"
)

// ErrNoServer ends the wait of a process that is leaving while no server can be reached.
var ErrNoServer = errors.New("no server could be reached")

// reachable is a bus that knows whether it is connected to a server. A bus that does not implement
// it counts as connected.
type reachable interface{ Reachable() bool }

// looksPerLimit is the number of times WhileReachable checks the connection within its limit.
const looksPerLimit = 10

// WhileReachable returns a context that ends with ctx, or with the cause ErrNoServer once the bus has reached
// no server for the whole limit. The returned function ends the context at once.
func WhileReachable(ctx context.Context, bus any, limit time.Duration) (context.Context, context.CancelFunc) {
	r, knows := bus.(reachable)
	if !knows {
		return context.WithCancel(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() { // ends with ctx, which the caller ends
		look := time.NewTicker(max(limit/looksPerLimit, time.Millisecond))
		defer look.Stop()
		for missed := 0; missed < looksPerLimit; {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if missed++; r.Reachable() {
				missed = 0
			}
		}
		end(ErrNoServer)
	}()
	return ctx, func() { end(nil) }
}
