package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Client reads and watches documents over NATS. Any worker of the deployment may answer.
type Client struct {
	// Bus sends the requests.
	Bus port.Client
	// Grace is how long a client keeps trying while no worker answers; the default of 3 s covers a quick
	// restart.
	Grace time.Duration
	// Principal is in whose name requests are made; "" for a program that needs none.
	Principal string
}

func (c *Client) grace() time.Duration {
	if c.Grace == 0 {
		return 3 * time.Second
	}
	return c.Grace
}

// Get reads a document at the head of the log. It retries until q.Timeout, so a crashed worker, a takeover or
// a handover delays the answer but does not fail the request. The error is a *model.ServiceError, or
// model.ErrNoResponder if there is no worker.
func (c *Client) Get(ctx context.Context, q Get) (Answer, error) {
	if err := q.check(); err != nil {
		return Answer{}, err
	}
	deadline := time.Now().Add(time.Duration(q.Timeout))
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(margin))
	defer cancel()
	nobody := time.Now().Add(c.grace())
	q.Trace = telemetry.Of(ctx).Parent
	for {
		a, err := c.getOnce(ctx, q, deadline)
		switch {
		case isBadRequest(err) && q.Trace != "":
			q.Trace = "" // the worker runs an earlier version
		case err == nil || !retryable(err):
			return a, err
		case errors.Is(err, model.ErrNoResponder) && time.Now().After(nobody):
			return a, err
		case time.Now().After(deadline) || pause.For(ctx, retryDelay/2) != nil:
			return a, err
		}
	}
}

// getOnce asks one worker, and gives up once the worker is late enough to be presumed dead.
func (c *Client) getOnce(ctx context.Context, q Get, deadline time.Time) (a Answer, err error) {
	left := max(time.Until(deadline), time.Millisecond)
	q.Timeout = Duration(left)
	ctx, cancel := context.WithTimeout(ctx, min(left, 2*patience)+margin)
	defer cancel()
	question, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	reply, err := c.Bus.Ask(ctx, model.EndpointBy(AskGet, c.Principal), question)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(reply, &a); err != nil {
		return a, fmt.Errorf("the answer to a get of document %s of space %s: %w", q.Document, q.Space, err)
	}
	return a, nil
}

// Watch delivers the document, and then its newest value whenever it has changed, until ctx ends. When the
// answering worker fails, the watch continues at another one from the last delivered value; delivered
// revisions only grow, unless the store was rewound. deliver also receives heartbeats, Stale and Current,
// Connected, and Broken; a planned move to another worker is a Broken without an error. A reported status
// holds until the next one; after a Broken the status is unknown.
//
// The error is that of ctx, or a *model.ServiceError that a retry would not cure, or model.ErrNoResponder if there
// was no worker from the start.
func (c *Client) Watch(ctx context.Context, q Watch, deliver func(Event)) error {
	if err := checkNames(q.Space, q.Document); err != nil {
		return err
	}
	w := watching{q: q, deliver: deliver, begun: !q.From.IsZero()}
	began := time.Now()
	for n := 0; ; n++ {
		heard := w.received
		err := w.once(ctx, c.Bus, model.EndpointBy(AskWatch, c.Principal))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errAgain):
			continue
		case isBadRequest(err) && w.q.From.Print != "":
			w.q.From.Print = "" // the worker runs an earlier version, which knows only revisions
			continue
		case !retryable(err) && !errors.Is(err, context.Canceled):
			return err
		case w.received == 0 && errors.Is(err, model.ErrNoResponder) && time.Since(began) > c.grace():
			return err
		}
		if w.received > heard {
			n = 0
		}
		if w.received > heard || !w.down && time.Since(began) >= c.grace() {
			w.down = true
			w.deliver(Event{Kind: Broken, Revision: w.q.From.Revision, Err: w.cause(err)})
		}
		if pause.For(ctx, min(10*time.Millisecond<<min(n, 10), time.Second)) != nil {
			return ctx.Err()
		}
	}
}

// watching is the state of a watch across the workers that serve it in turn.
type watching struct {
	q        Watch
	deliver  func(Event)
	begun    bool // a value is known
	received int  // messages received so far
	down     bool // Broken was delivered, and Connected was not delivered since
	renews   bool // the watch is asked for again
}

var (
	errSilent = fmt.Errorf("no message arrived for %s", 3*Heartbeat)
	errMissed = errors.New("a value was lost in transit")
	errAgain  = errors.New("the watch is to be asked for again")
)

// once watches until the answering worker stops doing so.
func (w *watching) once(ctx context.Context, bus port.Client, endpoint string) error {
	question, err := json.Marshal(w.q)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(3*Heartbeat, func() { cancel(errSilent) })
	defer silence.Stop()
	first := true
	err = bus.Listen(ctx, endpoint, question, func(p model.Part) {
		if ctx.Err() != nil {
			return
		}
		silence.Reset(3 * Heartbeat)
		w.received++
		if first {
			if !w.renews || w.down {
				w.deliver(Event{Kind: Connected, Revision: w.q.From.Revision})
			}
			first, w.down, w.renews = false, false, false
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

// take delivers events that are new to the client.
func (w *watching) take(e Event) error {
	switch e.Kind {
	case Moved:
		return ErrMoved
	case Beating, Stale, Current, Again:
		if e.Revision > w.q.From.Revision {
			return errMissed
		}
		if w.renews = e.Kind == Again; w.renews {
			return errAgain
		}
		w.deliver(e)
	case Rewound:
		w.begun, w.q.From = false, Known{}
		w.deliver(e)
	case Value, Deleted:
		if w.begun && e.Revision <= w.q.From.Revision {
			return nil
		}
		w.begun, w.q.From = true, e.Known()
		w.deliver(e)
	}
	return nil
}

// cause returns the error for a Broken, or nil if the worker announced its departure.
func (w *watching) cause(err error) error {
	if errors.Is(err, ErrMoved) {
		return nil
	}
	return err
}

// eventOf decodes the event in a message.
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
