package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNoServer ends what Stop and Close wait for: the bus has reached no server for as long as a
// handover may take.
var ErrNoServer = errors.New("no server could be reached")

// reachable is a Bus that knows whether it reaches a server now. Of one that does not tell, it is
// assumed.
type reachable interface{ Reachable() bool }

// looksPerLimit is how often a limit is divided into looks at the server.
const looksPerLimit = 10

// WhileReachable is ctx until the bus has reached no server for the whole of the limit; then it
// ends with the cause ErrNoServer. The function ends it at once.
func WhileReachable(ctx context.Context, bus Bus, limit time.Duration) (context.Context, context.CancelFunc) {
	r, tells := bus.(reachable)
	if !tells {
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

// cutOff reports whether such a context has ended for want of a server.
func cutOff(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrNoServer) }

// noteUndone notes how many spaces of a partition are cut off before they are saved.
func (p *partition) noteUndone() {
	for _, h := range p.all() {
		if !h.clean.Load() {
			p.undone++
		}
	}
}

// awayError says what a worker has not done that had to leave without a server.
func (w *Worker) awayError(parts []*partition) error {
	spaces, of := 0, []string{}
	for _, p := range parts {
		if p.undone > 0 {
			spaces += p.undone
			of = append(of, fmt.Sprint(p.number))
		}
	}
	undone := "every space was saved before"
	switch {
	case spaces == 1:
		undone = "1 space was not saved, of partition " + of[0]
	case spaces > 1:
		undone = fmt.Sprintf("%d spaces were not saved, of partitions %s", spaces, strings.Join(of, ", "))
	}
	return fmt.Errorf("worker %s has left without announcing it: %w for %v; %s; nothing that was acknowledged is lost, the next owner goes on from the log",
		w.cfg.ID, ErrNoServer, w.cfg.Handover, undone)
}
