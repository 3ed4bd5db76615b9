package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Client asks the workers of a deployment, whichever answer.
type Client struct {
	// Bus is used for nothing but questions.
	Bus port.Client
	// Grace is for how long it goes on asking if there is no worker at all; default 3 s,
	// which is enough for one that is being restarted quickly.
	Grace time.Duration
}

func (c *Client) grace() time.Duration {
	if c.Grace == 0 {
		return 3 * time.Second
	}
	return c.Grace
}

// Get reads a document at the head of the log. It asks again until q.Timeout is over: a
// worker that dies, a takeover and a handover take time and nothing else. The error is a
// *model.ServiceError, or model.ErrNobody if there is no worker.
func (c *Client) Get(ctx context.Context, q Get) (Answer, error) {
	if err := q.check(); err != nil {
		return Answer{}, err
	}
	deadline := time.Now().Add(time.Duration(q.Timeout))
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(margin))
	defer cancel()
	nobody := time.Now().Add(c.grace())
	for {
		a, err := c.getOnce(ctx, q, deadline)
		switch {
		case err == nil || !waits(err):
			return a, err
		case errors.Is(err, model.ErrNobody) && time.Now().After(nobody):
			return a, err
		case time.Now().After(deadline) || pause.For(ctx, again/2) != nil:
			return a, err
		}
	}
}

// getOnce asks one worker, and gives it up when it has taken so long that it may be gone.
func (c *Client) getOnce(ctx context.Context, q Get, deadline time.Time) (a Answer, err error) {
	left := max(time.Until(deadline), time.Millisecond)
	q.Timeout = Duration(left)
	ctx, cancel := context.WithTimeout(ctx, min(left, 2*patience)+margin)
	defer cancel()
	question, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	reply, err := c.Bus.Ask(ctx, AskGet, question)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(reply, &a); err != nil {
		return a, fmt.Errorf("the answer to a get of document %s of space %s: %w", q.Document, q.Space, err)
	}
	return a, nil
}

// Watch delivers the document and then its newest value whenever it has changed, until ctx ends, whatever happens to the
// worker that answers: it asks another one for what is newer than what it has. What is
// delivered never goes back. Deliver also gets heartbeats, Stale and Current, Connected, and
// Broken; a Moved is only a Broken without an error. What a worker has said of how the document
// stands holds until the next says it: after a Broken it is not known.
//
// The error is that of ctx; or a *model.ServiceError that will stay; or model.ErrNobody if
// there was no worker from the first.
func (c *Client) Watch(ctx context.Context, q Watch, deliver func(Event)) error {
	if err := checkNames(q.Space, q.Document); err != nil {
		return err
	}
	w := watching{q: q, deliver: deliver, begun: !q.From.IsZero()}
	began := time.Now()
	for n := 0; ; n++ {
		heard := w.heard
		err := w.once(ctx, c.Bus)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isBadRequest(err) && w.q.From.Print != "":
			w.q.From.Print = "" // a worker of an earlier version answers, which knows revisions only
			continue
		case !waits(err) && !errors.Is(err, context.Canceled):
			return err
		case w.heard == 0 && errors.Is(err, model.ErrNobody) && time.Since(began) > c.grace():
			return err
		}
		if w.heard > heard {
			n = 0
		}
		if w.heard > heard || !w.down && time.Since(began) >= c.grace() {
			w.down = true
			w.tell(Event{Kind: Broken, Revision: w.q.From.Revision, Err: w.why(err)})
		}
		if pause.For(ctx, min(10*time.Millisecond<<min(n, 10), time.Second)) != nil {
			return ctx.Err()
		}
	}
}

// watching is a watch across the workers that answer it.
type watching struct {
	q       Watch
	deliver func(Event)
	begun   bool // a value is known
	heard   int  // messages so far
	down    bool // it was told that nobody answers, and not since that somebody does
}

var (
	errSilent = fmt.Errorf("nothing was heard for %s", 3*Heartbeat)
	errMissed = errors.New("a value was lost on the way")
)

// once watches by one worker.
func (w *watching) once(ctx context.Context, bus port.Client) error {
	question, err := json.Marshal(w.q)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(3*Heartbeat, func() { cancel(errSilent) })
	defer silence.Stop()
	first := true
	err = bus.Listen(ctx, AskWatch, question, func(p model.Part) {
		if ctx.Err() != nil {
			return
		}
		silence.Reset(3 * Heartbeat)
		w.heard++
		if first {
			first, w.down = false, false
			w.tell(Event{Kind: Connected, Revision: w.q.From.Revision})
		}
		if err := w.take(eventOf(p)); err != nil {
			cancel(err)
		}
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// take passes on what is new.
func (w *watching) take(e Event) error {
	switch e.Kind {
	case Moved:
		return ErrMoved
	case Beating, Stale, Current:
		if e.Revision > w.q.From.Revision {
			return errMissed
		}
		w.tell(e)
	case Rewound:
		w.begun, w.q.From = false, Known{}
		w.tell(e)
	case Value, Deleted:
		if w.begun && e.Revision <= w.q.From.Revision {
			return nil
		}
		w.begun, w.q.From = true, e.Known()
		w.tell(e)
	}
	return nil
}

func (w *watching) tell(e Event) { w.deliver(e) }

// why is what is said of an interruption, nil if it was announced.
func (w *watching) why(err error) error {
	if errors.Is(err, ErrMoved) {
		return nil
	}
	return err
}

// eventOf is the event that a message carries.
func eventOf(p model.Part) Event {
	e := Event{Kind: Kind(p.Header[HeaderEvent]), Data: p.Data}
	e.Revision, _ = strconv.ParseUint(p.Header[HeaderRevision], 10, 64)
	e.Previous, _ = strconv.ParseUint(p.Header[HeaderPrevious], 10, 64)
	var k Known
	if k.UnmarshalText([]byte(p.Header[HeaderResume])) == nil && k.Revision == e.Revision {
		e.Print = k.Print
	}
	if e.Kind == Stale && json.Unmarshal(p.Data, &e.Stale) == nil {
		e.Data = nil
	}
	return e
}
