package live

import (
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// Computed returns when a document of any space is up to date there, or cannot become so: nothing derives it, its computation fails, or the space has no
// program. It reports whether the log has a value of the document then. It is for the spaces of this process that begin to read the document, and is
// no get of a client: it counts among none, and no limit applies. While no owner answers, it asks again until ctx ends, which is no error;
// the error is model.ErrStopped if the server is leaving.
func (s *Server) Computed(ctx context.Context, space, document string) (exists bool, err error) {
	q := Get{Space: space, Document: document}
	if err := q.check(); err != nil {
		return false, err
	}
	if !s.startCall() {
		return false, model.ErrStopped
	}
	defer s.inFlight.Done()
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	defer s.cancelWhen(s.leaving, cancel)()
	for n := 0; ; n++ {
		a, err := s.ask(ctx, q)
		switch {
		case err == nil:
			return a.inLog(), nil
		case !retryable(err):
			return false, nil
		case pause.For(ctx, min(10*time.Millisecond<<min(n, 10), retryDelay)) == nil:
		case errors.Is(ctx.Err(), context.Canceled):
			return false, model.ErrStopped
		default:
			return false, nil
		}
	}
}

// Computed does the same as Server.Computed, over NATS. Without a worker it returns after Grace.
func (c *Client) Computed(ctx context.Context, space, document string) (exists bool, err error) {
	q := Get{Space: space, Document: document}
	if until, has := ctx.Deadline(); has {
		q.Timeout = Duration(max(time.Until(until), time.Millisecond))
	}
	a, err := c.Get(ctx, q)
	return err == nil && a.inLog(), nil
}

// inLog reports whether the log has the value: that of a space that does not exist follows from nothing, and is in no log.
func (a *Answer) inLog() bool { return a.Found && a.Revision > 0 }
