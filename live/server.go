package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// ServiceName is the name of the NATS service that every worker offers.
const ServiceName = "settle-worker"

// Headers of the messages of a watch.
const (
	HeaderEvent    = "Settle-Event"    // Kind
	HeaderRevision = "Settle-Revision" // Event.Revision
	HeaderPrevious = "Settle-Previous" // Event.Previous, if known
	HeaderResume   = "Settle-Resume"   // Event.Known of a value or deletion, from which the watch can be resumed
)

// Host is the worker that a Server belongs to.
type Host interface {
	ID() string
	// Owner returns the id of the worker that should serve a space now, "" if there is none.
	Owner(space string) string
	// Read returns the states of documents in spaces that this worker serves. A request that does not ask for
	// current states never fails.
	Read(ctx context.Context, q model.ReadRequest) ([]model.DocumentState, error)
}

// Config configures a Server. Its zero value is valid.
type Config struct {
	// MaxWatches is the largest number of concurrent watches; default 10,000.
	MaxWatches int `help:"The largest number of watches that the worker serves at a time."`
	// MaxGets is the largest number of concurrent gets; default 1,000.
	MaxGets int `help:"The largest number of gets that the worker serves at a time."`
	// MaxWatchesEach and MaxGetsEach are how many of them one principal may have, over NATS; default 1,000 and 100. Over HTTP, the file of
	// principals has limits.
	MaxWatchesEach int `help:"The largest number of watches that the worker serves for one principal of NATS."`
	MaxGetsEach    int `help:"The largest number of gets that the worker serves for one principal of NATS."`
	// Renewal is how long a watch of a user in another account than the streams' lasts, at most, until its client has to ask again, as Client does: nothing
	// reports to the account of the streams that such a client has gone. Default 1 min. Each watch lasts a random time of at least three quarters of that.
	Renewal time.Duration `kong:"-"`

	Logger *slog.Logger `kong:"-"`
	// Access has the rules about which principals may read; nil allows all of it.
	Access *access.Book `kong:"-"`
	// Tracer records spans, Meter makes the instruments of metrics; nil records none.
	Tracer trace.Tracer `kong:"-"`
	Meter  metric.Meter `kong:"-"`
}

// Fill replaces zero fields by their defaults. It returns an error for the first invalid field.
func (c *Config) Fill() error {
	c.MaxWatches = cmp.Or(c.MaxWatches, 10_000)
	c.MaxGets = cmp.Or(c.MaxGets, 1_000)
	c.MaxWatchesEach = cmp.Or(c.MaxWatchesEach, 1_000)
	c.MaxGetsEach = cmp.Or(c.MaxGetsEach, 100)
	c.Renewal = cmp.Or(c.Renewal, time.Minute)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.MaxWatches < 0:
		return fmt.Errorf("MaxWatches is %d; use a positive number, or 0 for the default", c.MaxWatches)
	case c.MaxGets < 0:
		return fmt.Errorf("MaxGets is %d; use a positive number, or 0 for the default", c.MaxGets)
	case c.MaxWatchesEach < 0 || c.MaxGetsEach < 0:
		return fmt.Errorf("MaxWatchesEach is %d and MaxGetsEach %d; use positive numbers, or 0 for the default", c.MaxWatchesEach, c.MaxGetsEach)
	case c.Renewal < Heartbeat:
		return fmt.Errorf("a watch is to be renewed after %v; use at least %v, or 0 for the default", c.Renewal, Heartbeat)
	}
	return nil
}

// Server answers reads and watches in the process of a worker. Create it with NewServer, and call Run beside
// the worker.
type Server struct {
	bus  port.Client
	host Host
	cfg  Config
	log  *slog.Logger

	observed observer

	// ctx ends with the server, regardless of calls in flight; closing leaving ends it in good order.
	ctx     context.Context
	cancel  context.CancelFunc
	leaving chan struct{}
	tasks   sync.WaitGroup
	// computing are the questions of Computed.
	computing turns

	mu       sync.Mutex
	closed   bool // no new calls are accepted
	ended    bool // no new goroutines are started
	feeds    map[place]*feed
	watching int
	refused  uint64 // watches that exceeded the limit
	getting  int
	shares   map[string]*share // by principal
	// inFlight counts the watches and gets in flight.
	inFlight sync.WaitGroup
}

type place struct{ space, doc string }

// ErrMoved ends a watch whose server is leaving; another worker can continue it.
var ErrMoved = errors.New("the worker is leaving; ask again")

var errLeaving = &model.ServiceError{Code: model.CodeUnavailable, Text: "this worker is leaving; ask again"}

func busy(what string, n int) error {
	return &model.ServiceError{Code: model.CodeUnavailable, Text: fmt.Sprintf("this worker has %d %s, its limit; ask again, another worker may answer", n, what)}
}

// NewServer returns a server that does nothing before Run.
func NewServer(bus port.Client, host Host, cfg Config) *Server {
	_ = cfg.Fill() // an invalid limit, which is negative, admits nothing
	s := &Server{bus: bus, host: host, cfg: cfg, log: cfg.Logger, observed: newObserver(&cfg), leaving: make(chan struct{}), feeds: map[place]*feed{}, shares: map[string]*share{}, computing: make(turns, maxComputing)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// drainTime is how long the server still accepts requests that were in transit when the service was
// withdrawn.
const drainTime = 100 * time.Millisecond

// Run answers until leaving is closed; then it notifies watchers, completes pending gets and returns. When
// ctx ends, it returns at once.
func (s *Server) Run(ctx context.Context, leaving <-chan struct{}) {
	defer s.end()
	defer context.AfterFunc(ctx, s.cancel)()
	serving, stop := context.WithCancel(s.ctx)
	defer stop()
	s.serve(serving)
	s.tasks.Go(func() { s.pollFreshness(serving) }) // ends with serving
	select {
	case <-leaving:
	case <-ctx.Done():
		s.cancel() // first, so that watchers are not sent a Moved
	}
	stop()
	close(s.leaving)
	_ = pause.For(s.ctx, drainTime)
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.inFlight.Wait() // ends with ctx, and soon otherwise
}

func (s *Server) end() {
	s.cancel()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.tasks.Wait()
}

// spawn runs f in a goroutine and closes the outlet after it. A request that arrives after the server's end
// gets no answer.
func (s *Server) spawn(to model.Outlet, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		to.Close()
		return
	}
	s.tasks.Go(func() { // ends with the answer, or with the server
		defer to.Close()
		f()
	})
}

// serve registers the service, and retries until that succeeds.
func (s *Server) serve(ctx context.Context) {
	service := model.Service{
		Name:        ServiceName,
		Description: "Reads and watches of documents.",
		Endpoints: []model.Endpoint{
			{Name: AskGet, Description: `A document at the head of the log: {"space", "document", "path", "timeout"}, the last two optional.`, Open: func(q []byte, to model.Outlet) { s.openGet("", q, to) }, OpenBy: s.openGet},
			{Name: AskWatch, Description: `A document, then its newest value whenever it has changed, as messages to the reply subject until its subscriber is gone: {"space", "document", "from"}, the last optional.`, Open: func(q []byte, to model.Outlet) { s.openWatch("", q, to) }, OpenBy: s.openWatch},
			{Name: ownEndpoint(s.host.ID()), Description: "For other workers: a document of a space that this one serves.", Open: s.openOwn},
		},
	}
	s.tasks.Go(func() { // ends when the service is registered, or with ctx
		for ctx.Err() == nil {
			err := s.bus.Serve(ctx, service)
			if err == nil || errors.Is(err, model.ErrStopped) {
				return
			}
			s.log.Warn("offer the service of live queries", "error", err)
			_ = pause.For(ctx, retryDelay)
		}
	})
}

// startCall counts a call as in flight. It returns false if the server is leaving.
func (s *Server) startCall() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.inFlight.Add(1)
	return true
}

// Watch delivers the document, then its newest value whenever it has changed, its status (Stale, Current), and
// heartbeats in between, until ctx ends or deliver fails. It calls deliver from one goroutine; while that is
// busy, newer values replace older ones. The error is ErrMoved if the server is leaving.
func (s *Server) Watch(ctx context.Context, q Watch, deliver func(Event) error) error {
	return s.watch(ctx, q, 0, nil, deliver)
}

// overlap is how long a watch goes on after its client was requested to ask again, so that there is demand all the time.
const overlap = 2 * Heartbeat

// watch is Watch, which ends after lasts if that is not 0. Its client is requested to ask again before that; from then on, the watch counts
// no more, and uncount is called.
func (s *Server) watch(ctx context.Context, q Watch, lasts time.Duration, uncount func(), deliver func(Event) error) error {
	if err := checkNames(q.Space, q.Document); err != nil {
		return err
	}
	if !s.startCall() {
		return errLeaving
	}
	defer s.inFlight.Done()
	sub, err := s.subscribe(&q)
	if err != nil {
		return err
	}
	defer s.unsubscribe(sub)
	beat := time.NewTicker(Heartbeat)
	defer beat.Stop()
	var renew, end <-chan time.Time
	if lasts > 0 {
		renew, end = time.After(lasts), time.After(lasts+overlap)
	}
	began := time.Now()
	begun, tell := s.observed.watch(ctx, &q), deliver
	deliver = func(e Event) error {
		defer begun(nil)
		return tell(e)
	}
	defer func() { begun(ctx.Err()) }()
	last := Event{Kind: Beating, Revision: q.From.Revision}
	if !q.From.IsZero() { // confirm the watch: the next value may be far off
		err = deliver(last)
	}
	for err == nil {
		select {
		case <-sub.news:
			err = deliverAll(sub.take(), &last, deliver)
			beat.Reset(Heartbeat)
		case <-beat.C:
			s.recheck(ctx, sub, began)
			err = deliver(last)
		case <-renew:
			s.mu.Lock()
			s.uncount(sub)
			s.mu.Unlock()
			uncount()
			err = deliver(Event{Kind: Again, Revision: last.Revision})
		case <-end:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.ctx.Done():
			err = s.ctx.Err()
		case <-s.leaving:
			if err = s.ctx.Err(); err == nil {
				last.Kind = Moved
				_ = deliver(last) // best effort: the client would notice the silence
				err = ErrMoved
			}
		}
	}
	return err
}

// deliverAll delivers events, and keeps the latest revision in last.
func deliverAll(news []Event, last *Event, deliver func(Event) error) error {
	for _, e := range news {
		last.Revision = e.Revision
		if err := deliver(e); err != nil {
			return err
		}
	}
	return nil
}

// openWatch answers a NATS client's request to watch.
func (s *Server) openWatch(principal string, request []byte, to model.Outlet) {
	s.spawn(to, func() {
		var q Watch
		err := decode(request, &q)
		if err == nil {
			err = s.permit(principal, q.Space, q.Document)
		}
		var end func()
		if err == nil {
			end, err = s.begin(principal, true)
		}
		if err == nil {
			end = sync.OnceFunc(end)
			defer end()
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			defer s.cancelWhen(to.Gone(), cancel)()
			lasts := s.cfg.Renewal - rand.N(s.cfg.Renewal/4) // watches that began together do not end together
			if to.SensesGone() {
				lasts = 0
			}
			err = s.watch(ctx, q, lasts, end, func(e Event) error {
				if err := s.permit(principal, q.Space, q.Document); err != nil { // a rule may have changed since
					return err
				}
				return send(to, e)
			})
		}
		if err != nil && !errors.Is(err, ErrMoved) && !errors.Is(err, context.Canceled) {
			_ = to.Send(model.Part{Err: serviceError(err)}) // best effort
		}
	})
}

// permit returns an error unless a principal may read a document.
func (s *Server) permit(principal, space, document string) error {
	if err := s.cfg.Access.MayRead(principal, space, document); err != nil {
		return &model.ServiceError{Code: model.CodeForbidden, Text: err.Error()}
	}
	return nil
}

// cancelWhen calls cancel when the channel is closed, unless stop is called first.
func (s *Server) cancelWhen(closed <-chan struct{}, cancel func()) (stop func()) {
	done := make(chan struct{})
	s.tasks.Go(func() { // ends with done
		select {
		case <-closed:
			cancel()
		case <-done:
		}
	})
	return func() { close(done) }
}

// send sends an event to a NATS client. An event that cannot be sent because the connection is down is
// dropped: the next heartbeat reveals the gap.
func send(to model.Outlet, e Event) error {
	h := map[string]string{HeaderEvent: string(e.Kind), HeaderRevision: strconv.FormatUint(e.Revision, 10)}
	if e.Previous > 0 {
		h[HeaderPrevious] = strconv.FormatUint(e.Previous, 10)
	}
	if e.Print != "" {
		h[HeaderResume] = e.Known().String()
	}
	if e.Kind == Stale {
		e.Data, _ = json.Marshal(e.Stale) // a string always encodes
	}
	err := to.Send(model.Part{Header: h, Data: e.Data})
	if errors.Is(err, model.ErrTooLarge) || errors.Is(err, model.ErrStopped) {
		return err
	}
	return nil
}

// openGet answers a NATS client's request to read.
func (s *Server) openGet(principal string, request []byte, to model.Outlet) {
	s.spawn(to, func() {
		var q Get
		err := decode(request, &q)
		if err == nil {
			err = s.permit(principal, q.Space, q.Document)
		}
		var end func()
		if err == nil {
			end, err = s.begin(principal, false)
		}
		var a Answer
		if err == nil {
			defer end()
			a, err = s.Get(s.ctx, q)
		}
		if err == nil {
			err = s.permit(principal, q.Space, q.Document) // a rule may have changed while it waited
		}
		reply(to, a, err)
	})
}

func reply(to model.Outlet, a any, err error) {
	var data []byte
	if err == nil {
		data, err = json.Marshal(a)
	}
	if err == nil {
		err = to.Send(model.Part{Data: data})
	}
	if err != nil {
		_ = to.Send(model.Part{Err: serviceError(err)}) // best effort: the client has a timeout
	}
}
