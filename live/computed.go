package live

import (
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

const (
	// maxComputing is how many questions of Computed a process has under way, so that a document that is made of thousands of others asks no owner for all of
	// them at once. The others wait for their turn.
	maxComputing = 128
	// computingPatience is how long one of them may take: a document that is not computed so soon is asked for again, after the questions that wait.
	computingPatience = time.Second
)

// Computed returns when a document of any space is up to date there, or cannot become so: nothing derives it, its computation fails, or the space has no
// program. It reports whether the log has a value of the document then. It is for the spaces of this process that begin to read the document, and is
// no get of a client: it counts among none, and has a limit of its own. While no owner answers, it asks again until ctx ends, which is no error;
// the error is model.ErrStopped if the server is leaving.
func (s *Server) Computed(ctx context.Context, space, document string) (exists bool, err error) {
	o := ownerRequest{Get: Get{Space: space, Document: document}, Patience: Duration(computingPatience)}
	if err := o.check(); err != nil {
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
		a, err := s.computing.take(ctx, func() (Answer, error) { o := o; return s.askFor(ctx, &o) })
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

// NewComputed returns a function that does the same as Server.Computed, over NATS and in a process without a server. It asks until its context ends, too, if there is no worker.
func NewComputed(bus port.Client) func(ctx context.Context, space, document string) (exists bool, err error) {
	c, places := Client{Bus: bus, Grace: MaxTimeout}, make(turns, maxComputing)
	return func(ctx context.Context, space, document string) (exists bool, err error) {
		a, err := places.take(ctx, func() (Answer, error) {
			q := Get{Space: space, Document: document}
			if until, has := ctx.Deadline(); has {
				q.Timeout = Duration(max(time.Until(until), time.Millisecond))
			}
			return c.Get(ctx, q)
		})
		return err == nil && a.inLog(), nil
	}
}

// turns bounds how many questions are asked at a time.
type turns chan struct{}

// take asks when there is a place, which questions get in the order in which they wait for one.
func (t turns) take(ctx context.Context, ask func() (Answer, error)) (Answer, error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	defer func() { <-t }()
	return ask()
}

// inLog reports whether the log has the value: that of a space that does not exist follows from nothing, and is in no log.
func (a *Answer) inLog() bool { return a.Found && a.Revision > 0 }
