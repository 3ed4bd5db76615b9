package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// ServiceName is what every worker offers its answers under.
const ServiceName = "settle-worker"

// Headers of the messages of a watch.
const (
	HeaderEvent    = "Settle-Event"    // Kind
	HeaderRevision = "Settle-Revision" // Event.Revision
	HeaderPrevious = "Settle-Previous" // Event.Previous, if known
	HeaderResume   = "Settle-Resume"   // Event.Known of a value or deletion: to be asked from
)

// Host is the worker that a Server answers for.
type Host interface {
	ID() string
	// Owner is the worker that should serve a space now, "" if there is none.
	Owner(space string) string
	// Read returns the states of documents in spaces that this worker serves. If the request is not
	// for current ones, there is no error.
	Read(ctx context.Context, q model.ReadRequest) ([]model.DocumentState, error)
}

// Config configures a Server. All of it is optional.
type Config struct {
	// MaxWatches is the largest number of watches that are served at a time; default 10,000.
	MaxWatches int `help:"The largest number of watches that the worker serves at a time."`
	// MaxGets is the largest number of gets that are served at a time; default 1,000.
	MaxGets int          `help:"The largest number of gets that the worker serves at a time."`
	Logger  *slog.Logger `kong:"-"`
}

// Fill replaces zero fields by their defaults. It returns an error for the first invalid field.
func (c *Config) Fill() error {
	c.MaxWatches = cmp.Or(c.MaxWatches, 10_000)
	c.MaxGets = cmp.Or(c.MaxGets, 1_000)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.MaxWatches < 0:
		return fmt.Errorf("MaxWatches is %d; use a positive number, or 0 for the default", c.MaxWatches)
	case c.MaxGets < 0:
		return fmt.Errorf("MaxGets is %d; use a positive number, or 0 for the default", c.MaxGets)
	}
	return nil
}

// Server answers in the process of a worker. Use NewServer, and Run beside the worker.
type Server struct {
	bus  port.Client
	host Host
	cfg  Config
	log  *slog.Logger

	// ctx ends when the server does, whatever is under way; leaving is closed when it is
	// to end in good order.
	ctx     context.Context
	cancel  context.CancelFunc
	leaving chan struct{}
	tasks   sync.WaitGroup

	mu       sync.Mutex
	closed   bool // nothing new is taken
	ended    bool // nothing new is begun
	feeds    map[place]*feed
	watching int
	refused  uint64 // watches, for want of room
	getting  int
	// visits are the watches and gets that are under way.
	visits sync.WaitGroup
}

type place struct{ space, doc string }

// ErrMoved ends a watch whose server goes away: another one is to be asked.
var ErrMoved = errors.New("the worker leaves; ask again")

var errLeaving = &model.ServiceError{Code: model.CodeUnavailable, Text: "this worker is leaving; ask again"}

func busy(what string, n int) error {
	return &model.ServiceError{Code: model.CodeUnavailable, Text: fmt.Sprintf("this worker has %d %s, and takes no more; ask again, another may answer", n, what)}
}

// NewServer makes a server. It does nothing before Run.
func NewServer(bus port.Client, host Host, cfg Config) *Server {
	_ = cfg.Fill() // a negative number takes nothing
	s := &Server{bus: bus, host: host, cfg: cfg, log: cfg.Logger, leaving: make(chan struct{}), feeds: map[place]*feed{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// lastCall is how long questions are still taken that were on their way when the service
// was taken back.
const lastCall = 100 * time.Millisecond

// Run answers until leaving is closed; then it tells those who watch, finishes what was
// asked and returns. It ends at once with ctx.
func (s *Server) Run(ctx context.Context, leaving <-chan struct{}) {
	defer s.end()
	defer context.AfterFunc(ctx, s.cancel)()
	serving, stop := context.WithCancel(s.ctx)
	defer stop()
	s.serve(serving)
	s.tasks.Go(func() { s.lookAfter(serving) }) // ends with serving
	select {
	case <-leaving:
	case <-ctx.Done():
		s.cancel() // first: the dead do not say that they leave
	}
	stop()
	close(s.leaving)
	_ = pause.For(s.ctx, lastCall)
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.visits.Wait() // ends with ctx, and soon otherwise
}

func (s *Server) end() {
	s.cancel()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.tasks.Wait()
}

// spawn runs f beside, and closes the outlet after it. A question that comes after the end
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

// serve offers the service, and tries again if it cannot.
func (s *Server) serve(ctx context.Context) {
	service := model.Service{
		Name:        ServiceName,
		Description: "Documents: what they are, and what they become.",
		Endpoints: []model.Endpoint{
			{Name: AskGet, Description: `A document at the head of the log: {"space", "document", "path", "timeout"}, of which the last two are not needed.`, Open: s.openGet},
			{Name: AskWatch, Description: `A document, then its newest value whenever it has changed, as messages to the reply subject until nobody listens there: {"space", "document", "from"}, of which the last is not needed.`, Open: s.openWatch},
			{Name: ownEndpoint(s.host.ID()), Description: "For other workers: a document of a space that this one serves.", Open: s.openOwn},
		},
	}
	s.tasks.Go(func() { // ends when the service is offered, or with ctx
		for ctx.Err() == nil {
			err := s.bus.Serve(ctx, service)
			if err == nil || errors.Is(err, model.ErrStopped) {
				return
			}
			s.log.Warn("offer the service of live queries", "error", err)
			_ = pause.For(ctx, again)
		}
	})
}

// visit notes that something is under way for somebody. It reports false if the server is
// leaving.
func (s *Server) visit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.visits.Add(1)
	return true
}

// Watch delivers the document and then its newest value whenever it has changed, how it stands (Stale, Current), and
// heartbeats between, until ctx ends or deliver fails. It calls deliver from one goroutine; while
// that is busy, newer values take the place of older ones. The error is ErrMoved if the server is
// leaving.
func (s *Server) Watch(ctx context.Context, q Watch, deliver func(Event) error) error {
	if err := checkNames(q.Space, q.Document); err != nil {
		return err
	}
	if !s.visit() {
		return errLeaving
	}
	defer s.visits.Done()
	sub, err := s.join(&q)
	if err != nil {
		return err
	}
	defer s.leave(sub)
	beat := time.NewTicker(Heartbeat)
	defer beat.Stop()
	began := time.Now()
	last := Event{Kind: Beating, Revision: q.From.Revision}
	if !q.From.IsZero() { // say that somebody is there: there may be nothing new for long
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
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.ctx.Done():
			err = s.ctx.Err()
		case <-s.leaving:
			if err = s.ctx.Err(); err == nil {
				last.Kind = Moved
				_ = deliver(last) // as well as can be: it would notice by itself
				err = ErrMoved
			}
		}
	}
	return err
}

// deliverAll delivers news, and keeps in last how far that has come.
func deliverAll(news []Event, last *Event, deliver func(Event) error) error {
	for _, e := range news {
		last.Revision = e.Revision
		if err := deliver(e); err != nil {
			return err
		}
	}
	return nil
}

// openWatch answers a question of a NATS client.
func (s *Server) openWatch(request []byte, to model.Outlet) {
	s.spawn(to, func() {
		var q Watch
		err := decode(request, &q)
		if err == nil {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			defer s.cancelWhen(to.Gone(), cancel)()
			err = s.Watch(ctx, q, func(e Event) error { return say(to, e) })
		}
		if err != nil && !errors.Is(err, ErrMoved) && !errors.Is(err, context.Canceled) {
			_ = to.Say(model.Part{Err: coded(err)}) // as well as can be
		}
	})
}

// cancelWhen cancels when the channel is closed, until the function is called that it
// returns.
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

// say sends an event to a NATS client. One that cannot be sent, because the connection is
// down, is missed: the next heartbeat tells.
func say(to model.Outlet, e Event) error {
	h := map[string]string{HeaderEvent: string(e.Kind), HeaderRevision: strconv.FormatUint(e.Revision, 10)}
	if e.Previous > 0 {
		h[HeaderPrevious] = strconv.FormatUint(e.Previous, 10)
	}
	if e.Print != "" {
		h[HeaderResume] = e.Known().String()
	}
	if e.Kind == Stale {
		e.Data, _ = json.Marshal(e.Stale) // a string
	}
	err := to.Say(model.Part{Header: h, Data: e.Data})
	if errors.Is(err, model.ErrTooLarge) || errors.Is(err, model.ErrStopped) {
		return err
	}
	return nil
}

// openGet answers a question of a NATS client.
func (s *Server) openGet(request []byte, to model.Outlet) {
	s.spawn(to, func() {
		var q Get
		err := decode(request, &q)
		var a Answer
		if err == nil {
			a, err = s.Get(s.ctx, q)
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
		err = to.Say(model.Part{Data: data})
	}
	if err != nil {
		_ = to.Say(model.Part{Err: coded(err)}) // who asks has a timeout
	}
}
