package settle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/receipts"
)

// Client sends events, waits for receipts, reads and watches documents. It is safe for concurrent
// use.
type Client struct {
	bus    port.Bus
	id     string
	logger *slog.Logger
	tracer trace.Tracer
	awaits awaits
	// watches numbers the observations: each has a lease of its own.
	watches atomic.Uint64
}

// ErrForgotten reports that an event is older than the horizon, or than what is kept of the log
// (WorkerConfig.History): whether and how it was handled is no longer known. Sending it again under
// its id has no effect.
var ErrForgotten = history.ErrForgotten

// ErrRewound reports that the store has gone back to an earlier state (a power cut without fsync, a
// snapshot of its machine, an older copy of its files), so that the awaited receipt or change may
// never come: an acknowledged event may be lost. Sending it again is safe.
var ErrRewound = model.ErrRewound

// SendResult is the server's answer to a send.
type SendResult = model.SendResult

// ExpiredError reports that an event was refused because the time in its id is older than the
// horizon; see TimedEventID.
type ExpiredError = model.ExpiredError

// TimedEventID returns an event id that carries a time: the time at which the sender decided to
// send the event, which must be the same in every retry. name is as Outgoing.ID.
//
// A deployment remembers event ids for its horizon, 7 days unless it was created with another. A
// plain id that is sent again after that is a new event. A timed id older than the horizon is
// refused, so the event takes effect at most once, without a time limit.
func TimedEventID(at time.Time, name string) string { return model.TimedEventID(at, name) }

// NewEventID returns a unique timed id, for an event without a natural key. Keep it for retries.
func NewEventID() string { return TimedEventID(time.Now(), strings.ToLower(rand.Text()[:16])) }

// Outgoing is an event to be sent.
type Outgoing struct {
	Space, Stream string
	// ID identifies the event: events with the same id are one event, however often they are sent.
	// Derive it from what the event is about (an order number, a message id); do not choose it at
	// random. Letters, digits, '-' and '_'. See TimedEventID for retries after days.
	ID      string
	Payload any
	// NotBefore, if not zero, is the earliest time at which the event is handled, by the clock of
	// the worker that serves its space. The event is stored at once and waits in the space; see
	// Stream.SendAt.
	NotBefore time.Time
	// Expires, if not zero, is the deadline of the event, by the same clock: after it, the event is
	// not handled but ends with the receipt Expired.
	Expires time.Time
}

// message encodes the event, or returns an error if the lane would refuse it.
func (c *Client) message(o Outgoing) (model.Message, error) {
	m, err := o.message()
	if err != nil {
		return m, err
	}
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
	if err := model.CheckEventID(o.ID); err != nil {
		return model.Message{}, err
	}
	v, err := model.Of(o.Payload)
	if err != nil {
		return model.Message{}, fmt.Errorf("payload of event %s to %s/%s: %w", o.ID, o.Space, o.Stream, err)
	}
	m := model.Message{Space: o.Space, Stream: o.Stream, ID: o.ID}
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
	ID     string
	Logger *slog.Logger
	Tracer trace.Tracer
}

// NewClient returns a client that uses bus. It does not close the bus.
func NewClient(bus port.Bus, cfg ClientConfig) (*Client, error) {
	if cfg.ID == "" {
		return nil, errors.New(`settle: ClientConfig.ID is empty; name the client, such as "sign-1"`)
	}
	if err := model.CheckName("client", cfg.ID); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{bus: bus, id: cfg.ID, logger: cfg.Logger, tracer: cfg.Tracer}
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
// exactly once, however often it is sent. If ctx ends first, the event may or may not be stored.
func (c *Client) Send(ctx context.Context, e Outgoing) (SendResult, error) {
	m, err := c.message(e)
	if err != nil {
		return SendResult{}, err
	}
	return c.send(ctx, m)
}

func (c *Client) send(ctx context.Context, m model.Message) (SendResult, error) {
	type answer struct {
		r   SendResult
		err error
	}
	trace, end := c.span(ctx, &m)
	m.Trace = trace
	done := make(chan answer, 1)
	c.bus.Send(m, func(r model.SendResult, err error) { done <- answer{r, err} })
	select {
	case a := <-done:
		end(a.err)
		return a.r, a.err
	case <-ctx.Done():
		err := ended(ctx)
		end(err)
		return SendResult{}, fmt.Errorf("send event %s to %s/%s: %w; it may or may not have been stored, sending it again is safe", m.ID, m.Space, m.Stream, err)
	}
}

// Call sends an event and waits for its receipt: request and reply over a handler that takes effect
// exactly once. Calling again with the same id returns the same receipt. If the store goes back
// meanwhile and loses the event, Call sends it again. The error is about the call; how the event
// ended is in the receipt. Call blocks until ctx ends.
func (c *Client) Call(ctx context.Context, e Outgoing) (*Receipt, error) {
	m, err := c.message(e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.awaits.bind(ctx)
	defer cancel()
	ev := awaited{space: e.Space, key: receipts.Key{Stream: e.Stream, ID: e.ID}}
	w, err := c.awaits.begin(ctx, ev)
	if err != nil {
		return nil, ev.failed(ctx, err)
	}
	r, err := c.send(ctx, m)
	if err != nil {
		w.end()
		return nil, err
	}
	again := func() error { // the store has gone back: the event may be lost, and is sent again
		_, err := c.send(ctx, m)
		return err
	}
	rc, err := c.await(ctx, ev, w, r.Duplicate, again)
	if err != nil && !errors.Is(err, ErrForgotten) {
		err = fmt.Errorf("%w; the event is stored, and will be handled when a worker runs its space", err)
	}
	return rc, err
}

// FindReceipt returns the receipt of an event, nil if there is none yet. It does not wait. It reads
// a number of commits logarithmic in the length of the log. The error is ErrForgotten if the event
// was handled so long ago that neither lane nor log has its receipt.
func (c *Client) FindReceipt(ctx context.Context, space, stream, id string) (*Receipt, error) {
	h, err := history.FindReceipt(ctx, c.bus, space, stream, id)
	if h == nil || err != nil {
		return nil, err
	}
	return h.Tx.Receipt, nil
}

// Handling is how an event ended: the receipt, the events that the handler sent, and the commit
// that contains it.
type Handling = history.Handling

// ReceiptFilter selects receipts of a space.
type ReceiptFilter = history.ReceiptFilter

// Receipts iterates over the receipts of a space in the order of the log, oldest first:
//
//	for h, err := range c.Receipts(ctx, "alice", settle.ReceiptFilter{Outcome: settle.Failed}) {
//
// The iteration ends after the first error.
func (c *Client) Receipts(ctx context.Context, space string, f ReceiptFilter) iter.Seq2[*Handling, error] {
	return history.Receipts(ctx, c.bus, space, f)
}

// Get returns a document as it is in the log, and its revision: the log sequence of the commit that
// last changed it, 0 if none did. It needs no worker and creates no demand, so a derived document
// may be out of date: GetCurrent brings it up to date once, Watch keeps it up to date.
func (c *Client) Get(ctx context.Context, space, doc string) (Value, uint64, error) {
	if err := checkDoc(space, doc); err != nil {
		return Value{}, 0, err
	}
	d, err := history.Read(ctx, c.bus, space, doc)
	if err != nil {
		return Value{}, 0, err
	}
	return d.Value, d.Seq, nil
}

// Current is a document as it is at the head of the log.
type Current struct {
	Value    Value  // absent if there is no such document
	Revision uint64 // as of Client.Get
	// Stale, if not "", is why the value is out of date: a computation that it depends on fails, or
	// did not finish in time.
	Stale string
}

// GetCurrent returns a document as it is at the head of the log, as answered by the worker that
// owns its space. A derived document that is not observed is computed first, for this read only.
// During a takeover or a handover of the space it blocks, until the deadline of ctx, or for 15
// seconds without one. The error is model.ErrNobody if there is no worker.
func (c *Client) GetCurrent(ctx context.Context, space, doc string) (Current, error) {
	q := live.Get{Space: space, Document: doc}
	if deadline, has := ctx.Deadline(); has {
		q.Timeout = live.Duration(min(max(time.Until(deadline), 1), live.MaxTimeout))
	}
	a, err := (&live.Client{Bus: c.bus}).Get(ctx, q)
	if err != nil {
		return Current{}, fmt.Errorf("get document %s of space %s: %w", doc, space, err)
	}
	out := Current{Revision: a.Revision, Stale: a.Stale}
	if a.Found {
		out.Value, err = model.ParseValue(a.Value)
	}
	return out, err
}

// WatchFrom is Watch for a caller that has the document as of a revision: it delivers only newer
// values. Changes made in between are delivered as one value.
func (c *Client) WatchFrom(ctx context.Context, space, doc string, from uint64, deliver func(v Value, revision uint64), opts ...WatchOption) error {
	return c.watch(ctx, space, doc, &from, deliver, opts)
}

// Watch observes a document: it calls deliver with the confirmed value, then with each change and
// its revision, and blocks until ctx ends. While it runs, everything that the document is computed
// from is kept up to date, in all spaces. While no server is reachable nothing is delivered, and
// while no worker runs nothing is computed; both resume by themselves. WatchStatus reports that
// state. Revisions increase, unless the store goes back to an earlier state, as after a power cut without fsync:
// then deliver gets the document as it is now, at a revision that may be the same or lower, and changes between may be left out.
func (c *Client) Watch(ctx context.Context, space, doc string, deliver func(v Value, revision uint64), opts ...WatchOption) error {
	return c.watch(ctx, space, doc, nil, deliver, opts)
}

// watch is Watch, or WatchFrom if from is not nil.
func (c *Client) watch(ctx context.Context, space, doc string, from *uint64, deliver func(v Value, revision uint64), opts []WatchOption) error {
	if err := checkDoc(space, doc); err != nil {
		return err
	}
	watcher := c.id + "-" + strconv.FormatUint(c.watches.Add(1), 10) + "-" + rand.Text()[:8]
	w := &history.Watch{Bus: c.bus, Space: space, Doc: doc, Watcher: watcher, Logger: c.logger}
	if from != nil {
		w.From(*from)
	}
	var o watchOptions
	for _, opt := range opts {
		opt(&o)
	}
	if o.report == nil {
		return w.Changes(ctx, func(c history.Change) { deliver(c.Value, c.Revision) })
	}
	s := newWatchStatus(o.report, deliver)
	if from != nil {
		s.begun, s.revision, s.read = true, *from, *from
	}
	return s.run(ctx, w)
}

func checkDoc(space, doc string) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	return model.CheckName("document", doc)
}

// span starts the span of a send and returns the trace context that travels with the event.
func (c *Client) span(ctx context.Context, m *model.Message) (model.Trace, func(error)) {
	if c.tracer == nil {
		return telemetry.Of(ctx), func(error) {}
	}
	ctx, span := c.tracer.Start(ctx, "send "+m.Stream, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(
			telemetry.System.String("nats"), telemetry.Operation.String("send"), telemetry.Type.String("send"),
			telemetry.Template.String("settle.lane.{partition}.{space}.{stream}.{event}"),
			telemetry.Space.String(m.Space), telemetry.Stream.String(m.Stream), telemetry.MessageID.String(m.ID)))
	return telemetry.Of(ctx), func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
