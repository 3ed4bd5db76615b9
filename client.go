package settle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// Client sends events, waits for receipts, reads and watches documents. It is safe for concurrent
// use.
type Client struct {
	bus      port.Bus
	id       string
	by       string // ClientConfig.Principal
	logger   *slog.Logger
	observed observer
	reads    *history.Together
	awaits   awaits
	// watches numbers the observations: each has a lease of its own.
	watches atomic.Uint64
}

// Outgoing is an event to be sent.
type Outgoing struct {
	Space, Stream string
	// ID identifies the event: events with the same id are one event, however often they are sent.
	// Derive it from what the event is about (an order number, a message id); do not choose it at
	// random. See ID.
	ID      EventID
	Payload any
	// NotBefore, if not zero, is the earliest time at which the event is handled, by the clock of
	// the worker that serves its space. The event is stored at once and waits in the space; see
	// Stream.SendAt.
	NotBefore time.Time
	// Expires, if not zero, is the deadline of the event, by the same clock: after it, the event is
	// not handled but ends with the receipt Expired.
	Expires time.Time

	// internal reports that only spaces may send on the stream.
	internal bool
}

// deployed returns an error if the servers have no deployment: a request would wait for streams that do not
// exist.
func (c *Client) deployed(ctx context.Context) error {
	if b, can := c.bus.(interface {
		Deployed(ctx context.Context) error
	}); can {
		return b.Deployed(ctx)
	}
	return nil
}

// message encodes the event, or returns an error if the lane would refuse it or does not exist.
func (c *Client) message(ctx context.Context, o Outgoing) (model.Message, error) {
	m, err := o.message()
	if err != nil {
		return m, err
	}
	return c.own(ctx, m)
}

// own makes an encoded event one of this client, or returns an error if the lane would refuse it or does not exist.
func (c *Client) own(ctx context.Context, m model.Message) (model.Message, error) {
	if err := c.deployed(ctx); err != nil {
		return m, err
	}
	m.ID = model.EventIDOf(c.by, m.ID)
	if err := model.CheckEventAge(m.ID, time.Now(), c.bus.Horizon()); err != nil {
		return m, fmt.Errorf("send to %s/%s: %w", m.Space, m.Stream, err)
	}
	return m, nil
}

func (o Outgoing) message() (model.Message, error) {
	if err := model.CheckName("space", o.Space); err != nil {
		return model.Message{}, err
	}
	if err := model.CheckSendStream(o.Stream); err != nil {
		return model.Message{}, err
	}
	if err := model.CheckEventID(o.ID.text); err != nil {
		return model.Message{}, err
	}
	if o.internal {
		return model.Message{}, &model.InternalStreamError{Space: o.Space, Stream: o.Stream}
	}
	v, err := model.Of(o.Payload)
	if err != nil {
		return model.Message{}, fmt.Errorf("payload of event %s to %s/%s: %w", o.ID, o.Space, o.Stream, err)
	}
	m := model.Message{Space: o.Space, Stream: o.Stream, ID: o.ID.text}
	if !o.NotBefore.IsZero() {
		if err := model.CheckNotBefore(o.NotBefore, time.Now()); err != nil {
			return model.Message{}, fmt.Errorf("event %s to %s/%s: %w", o.ID, o.Space, o.Stream, err)
		}
		m.NotBefore = model.NotBefore(o.NotBefore)
	}
	if !o.Expires.IsZero() {
		if o.Expires.Before(o.NotBefore) {
			return model.Message{}, fmt.Errorf("event %s to %s/%s: it expires before its time", o.ID, o.Space, o.Stream)
		}
		m.Expires = model.NotBefore(o.Expires)
	}
	if !v.IsAbsent() {
		m.Payload = v.AppendJSON(nil)
	}
	return m, nil
}

// ClientConfig configures a client. All fields are optional but ID.
type ClientConfig struct {
	// ID names the client among the observers of a document.
	ID string
	// Principal is the name in which the client sends events; "" for a program that needs none. It is part of the
	// ids of its events: those of two principals are two events, even if both have chosen the same id. The NATS
	// user needs the permission to publish to <prefix>.send.*.*.*.*.<principal>, which no other user should have.
	// An id that a method of the client takes is one that its principal has chosen; that of another principal's event
	// is written "<principal>=<id>", as receipts and trees show it.
	Principal string
	Logger    *slog.Logger
	Tracer    trace.Tracer
	// Meter makes the instruments of the client's metrics (docs/metrics.md); nil measures nothing.
	Meter metric.Meter
}

// NewClient returns a client that uses bus. It does not close the bus.
func NewClient(bus port.Bus, cfg ClientConfig) (*Client, error) {
	if cfg.ID == "" {
		return nil, errors.New(`settle: ClientConfig.ID is empty; name the client, such as "sign-1"`)
	}
	if err := model.CheckName("client", cfg.ID); err != nil {
		return nil, err
	}
	if cfg.Principal != "" {
		if err := model.CheckName("principal", cfg.Principal); err != nil {
			return nil, err
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	observed, err := newObserver(&cfg)
	if err != nil {
		return nil, fmt.Errorf("client %s: make the instruments of its metrics: %w", cfg.ID, err)
	}
	c := &Client{bus: bus, id: cfg.ID, by: cfg.Principal, logger: cfg.Logger, observed: observed, reads: history.NewTogether(bus)}
	c.awaits.init(c)
	return c, nil
}

// Close ends the client's subscriptions and the calls that wait for receipts. The bus stays open.
func (c *Client) Close() { c.awaits.close() }

// Sender returns a new Sender that has one event of each space in flight at a time.
func (c *Client) Sender() *Sender { return newSender(c, 1) }

// Pipeline returns a Sender that has up to n events of each space in flight, which is faster with
// few spaces. The order within a space is that of the calls unless a request has to be repeated,
// because the server did not answer or the lane was full: events sent after it may then overtake
// it.
func (c *Client) Pipeline(n int) *Sender { return newSender(c, max(n, 1)) }

// Send stores an event in its space's lane and returns when it is durable. It will be handled
// exactly once, however often it is sent. SendResult.Duplicate reports that an event of its id was sent before: that one
// counts, whatever its payload. If ctx ends first, the event may or may not be stored.
func (c *Client) Send(ctx context.Context, e Outgoing) (model.SendResult, error) {
	m, err := c.message(ctx, e)
	if err != nil {
		return model.SendResult{}, err
	}
	return c.send(ctx, m)
}

func (c *Client) send(ctx context.Context, m model.Message) (model.SendResult, error) {
	type answer struct {
		r   model.SendResult
		err error
	}
	trace, end := c.observed.send(ctx, &m)
	m.Trace = trace
	done := make(chan answer, 1)
	c.bus.Send(m, func(r model.SendResult, err error) { done <- answer{r, err} })
	select {
	case a := <-done:
		end(a.r, a.err)
		return a.r, a.err
	case <-ctx.Done():
		err := ended(ctx)
		end(model.SendResult{}, err)
		return model.SendResult{}, fmt.Errorf("send event %s to %s/%s: %w; it may or may not have been stored, sending it again is safe", m.ID, m.Space, m.Stream, err)
	}
}

// sendSame is send, and compares the payload with that of the event that was sent under the id before.
func (c *Client) sendSame(ctx context.Context, m model.Message) (model.SendResult, error) {
	r, err := c.send(ctx, m)
	if err == nil && r.Duplicate {
		err = history.CheckReuse(ctx, c.bus, &m)
	}
	return r, err
}

// Call sends an event and waits for its receipt: request and reply over a handler that takes effect
// exactly once. Calling again with the same id returns the same receipt; with the same id and another
// payload, the error is a *model.ReusedIDError. If the store goes back
// meanwhile and loses the event, Call sends it again. The error is about the call; how the event
// ended is in the receipt. Call blocks until ctx ends.
func (c *Client) Call(ctx context.Context, e Outgoing) (rc *model.Receipt, err error) {
	ctx, end := c.observed.call(ctx, &e)
	defer func() { end(rc, err) }()
	m, err := c.message(ctx, e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.awaits.bind(ctx)
	defer cancel()
	ev := awaited{space: e.Space, key: receipts.Key{Stream: e.Stream, ID: m.ID}}
	w, err := c.awaits.begin(ctx, ev)
	if err != nil {
		return nil, ev.failed(ctx, err)
	}
	r, err := c.sendSame(ctx, m)
	if err != nil {
		w.end()
		return nil, err
	}
	again := func() error { // the store has gone back: the event may be lost, and is sent again
		_, err := c.send(ctx, m)
		return err
	}
	rc, err = c.await(ctx, ev, w, r.Duplicate, again)
	if err != nil && !errors.Is(err, history.ErrForgotten) {
		err = fmt.Errorf("%w; the event is stored, and will be handled when a worker runs its space", err)
	}
	return rc, err
}

// event returns the id of the event that the client means by an id: that of its own principal, unless the id names another
// one or was minted by the system.
func (c *Client) event(id EventID) string {
	if model.CheckEventID(id.text) != nil {
		return id.text
	}
	return model.EventIDOf(c.by, id.text)
}

// watcher returns a name for the lease of one watch.
func (c *Client) watcher() string {
	return c.id + "-" + strconv.FormatUint(c.watches.Add(1), 10) + "-" + rand.Text()[:8]
}
