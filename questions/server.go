package questions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/worker"
)

// ServiceName is the name of the NATS service that every worker offers.
const ServiceName = "settle-questions"

// Host is the worker that a Server belongs to.
type Host interface {
	ID() string
	// Owner returns the id of the worker that should serve a space now, "" if there is none.
	Owner(space string) string
	// Inspect, Profile and Cost are those of worker.Worker.
	Inspect(ctx context.Context, space string, o worker.InspectOptions) (*worker.Inspected, error)
	Profile(limit int) worker.Profile
	Cost(space, node string, handler bool) (worker.Usage, bool)
	// IsInternal reports whether the program of a space, as far as this worker knows it, takes no events of clients on a stream.
	IsInternal(space, stream string) bool
}

const (
	// atOnce is how many questions a worker takes at a time, and how many that other workers have passed on to it; others are refused and may
	// be repeated.
	atOnce = 16
	// patience is how long a space may take to let itself be inspected, loadPatience the same for one that must be loaded first, and answerTime
	// how long an answer may take in all.
	patience     = 2 * time.Second
	loadPatience = 10 * time.Second
	answerTime   = 15 * time.Second
	retryPause   = 500 * time.Millisecond
)

// Server answers questions in the process of a worker. Create it with NewServer, and call Run beside the worker.
type Server struct {
	bus   port.Client
	host  Host
	rules *access.Book
	log   *slog.Logger

	ctx    context.Context // ends with the server
	cancel context.CancelFunc
	// taken are the questions of askers, passed those that other workers have passed on. They are counted separately: two workers whose
	// askers wait for each other's answers would refuse those.
	taken, passed slots
	tasks         sync.WaitGroup

	mu     sync.Mutex
	closed bool // no further answers are begun
}

// slots bound the number of answers under way.
type slots chan struct{}

// NewServer returns a server that does nothing before Run. rules has the rules about which principals may read; nil allows all.
func NewServer(bus port.Client, host Host, rules *access.Book, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{bus: bus, host: host, rules: rules, log: log, taken: make(slots, atOnce), passed: make(slots, atOnce)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Run answers until leaving is closed or ctx ends. Answers that are under way are then given up.
func (s *Server) Run(ctx context.Context, leaving <-chan struct{}) {
	s.offer()
	select {
	case <-leaving:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
}

// offer registers the service, and retries until that succeeds.
func (s *Server) offer() {
	about := func(name string, what string, of func(context.Context, *Query) (any, error)) model.Endpoint {
		open := func(principal string, request []byte, to model.Outlet) {
			s.open(s.taken, to, func(ctx context.Context) ([]byte, error) { return s.route(ctx, name, principal, request, of) })
		}
		return model.Endpoint{Name: name, Description: what, Open: func(q []byte, to model.Outlet) { open("", q, to) }, OpenBy: open}
	}
	answers := map[string]func(context.Context, *Query) (any, error){
		AskWhy:   func(ctx context.Context, q *Query) (any, error) { return s.why(ctx, q) },
		AskLane:  func(ctx context.Context, q *Query) (any, error) { return s.lane(ctx, q) },
		AskGraph: func(ctx context.Context, q *Query) (any, error) { return s.graph(ctx, q) },
	}
	service := model.Service{
		Name: ServiceName, Description: "Why nodes ran or did not, what events wait for, and the graph of a space.",
		Endpoints: []model.Endpoint{
			about(AskWhy, `Why a node, a document or an event is as it is: {"space", "of", "as", "stream", "load", "limit"}, the first two required.`, answers[AskWhy]),
			about(AskLane, `What waits in a space, and why: {"space", "load", "limit", "after"}, only space required; with "stream", whether it is internal.`, answers[AskLane]),
			about(AskGraph, `The nodes of a space, and their edges: {"space", "of", "depth", "load", "limit", "after"}, only space required.`, answers[AskGraph]),
			{Name: ownEndpoint(s.host.ID()), Description: "For other workers: a question about a space that this one serves.", Open: func(request []byte, to model.Outlet) {
				s.open(s.passed, to, func(ctx context.Context) ([]byte, error) { return s.own(ctx, request, answers) })
			}},
			{Name: TopEndpoint(s.host.ID()), Description: `Which spaces and nodes of this worker take most time: {"limit"}, optional.`, Open: func(request []byte, to model.Outlet) {
				s.open(s.passed, to, func(context.Context) ([]byte, error) { return s.top(request) })
			}},
		},
	}
	s.tasks.Go(func() { // ends when the service is registered, or with the server
		for s.ctx.Err() == nil {
			err := s.bus.Serve(s.ctx, service)
			if err == nil || errors.Is(err, model.ErrStopped) || s.ctx.Err() != nil {
				return
			}
			s.log.Warn("offer the service of questions", "error", err)
			_ = pause.For(s.ctx, retryPause)
		}
	})
}

func ownEndpoint(id string) string { return model.OwnEndpoint("asked", id) }

// TopEndpoint returns the endpoint at which a worker answers which of its spaces and nodes take most time.
func TopEndpoint(id string) string { return model.OwnEndpoint("top", id) }

// open answers a request, unless there are too many.
func (s *Server) open(of slots, to model.Outlet, answer func(context.Context) ([]byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		to.Close()
		return
	}
	select {
	case of <- struct{}{}:
	default:
		_ = to.Send(model.Part{Err: &model.ServiceError{Code: model.CodeUnavailable, Text: fmt.Sprintf("this worker is answering %d questions, its limit; ask again", atOnce)}}) // best effort
		to.Close()
		return
	}
	s.tasks.Go(func() { // ends with the answer, or with the server
		defer func() { <-of }()
		defer to.Close()
		ctx, cancel := context.WithTimeout(s.ctx, answerTime)
		defer cancel()
		data, err := answer(ctx)
		if err == nil {
			err = to.Send(model.Part{Data: data})
		}
		if errors.Is(err, model.ErrTooLarge) {
			err = &model.ServiceError{Code: model.CodeTooLarge, Text: "the answer is larger than the server allows: ask with a smaller limit"}
		}
		if err != nil {
			_ = to.Send(model.Part{Err: coded(err)}) // best effort: the requester has a timeout
		}
	})
}

// route checks a question, and passes it to the owner of the space.
func (s *Server) route(ctx context.Context, endpoint, principal string, request []byte, of func(context.Context, *Query) (any, error)) ([]byte, error) {
	q, err := decode[Query](request)
	if err == nil {
		err = q.check(endpoint)
	}
	if err != nil {
		return nil, err
	}
	if err := s.rules.MayReadAll(principal, q.Space); err != nil {
		return nil, &model.ServiceError{Code: model.CodeForbidden, Text: err.Error()}
	}
	for {
		data, err := s.askOwner(ctx, endpoint, q, of)
		moved := errors.Is(err, model.ErrElsewhere) || errors.Is(err, model.ErrNoResponder) || isCode(err, model.CodeUnavailable)
		if !moved || pause.For(ctx, retryPause) != nil {
			return data, err
		}
	}
}

// ownQuery is a question as workers pass it to each other.
type ownQuery struct {
	Endpoint string `json:"endpoint"`
	Query    *Query `json:"query"`
}

func (s *Server) askOwner(ctx context.Context, endpoint string, q *Query, of func(context.Context, *Query) (any, error)) ([]byte, error) {
	switch owner := s.host.Owner(q.Space); owner {
	case "":
		return nil, &model.ServiceError{Code: model.CodeUnavailable, Text: "the last worker is leaving"}
	case s.host.ID():
		return encoded(of(ctx, q))
	default:
		data, err := json.Marshal(ownQuery{endpoint, q})
		if err != nil {
			return nil, err
		}
		return s.bus.Ask(ctx, ownEndpoint(owner), data)
	}
}

// own answers a question that another worker has passed on.
func (s *Server) own(ctx context.Context, request []byte, answers map[string]func(context.Context, *Query) (any, error)) ([]byte, error) {
	o, err := decode[ownQuery](request)
	if err != nil {
		return nil, err
	}
	of := answers[o.Endpoint]
	if of == nil || o.Query == nil {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: fmt.Sprintf("no such question: %q", o.Endpoint)}
	}
	if err := o.Query.check(o.Endpoint); err != nil {
		return nil, err
	}
	return encoded(of(ctx, o.Query))
}

// topQuery is the request at TopEndpoint.
type topQuery struct {
	Limit int `json:"limit,omitzero"`
}

// MaxTop is how many spaces and how many nodes an answer about costs has.
const MaxTop = 512

func (s *Server) top(request []byte) ([]byte, error) {
	q := &topQuery{}
	if len(request) > 0 {
		var err error
		if q, err = decode[topQuery](request); err != nil {
			return nil, err
		}
	}
	if q.Limit < 0 || q.Limit > MaxTop {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: fmt.Sprintf("a limit of %d: use 1 to %d", q.Limit, MaxTop)}
	}
	if q.Limit == 0 {
		q.Limit = MaxTop
	}
	return encoded(Top{s.host.ID(), s.host.Profile(q.Limit)}, nil)
}

// decode reads a request strictly.
func decode[Q any](request []byte) (*Q, error) {
	q := new(Q)
	d := json.NewDecoder(bytes.NewReader(request))
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: `the request does not have the expected JSON, such as {"space":"alice","of":"total"}: ` + err.Error()}
	}
	return q, nil
}

func encoded(a any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func isCode(err error, code int) bool {
	e, is := errors.AsType[*model.ServiceError](err)
	return is && e.Code == code
}

// coded gives an error its code.
func coded(err error) *model.ServiceError {
	code := model.CodeFailed
	switch {
	case errors.Is(err, model.ErrNoProgram):
		code = model.CodeNotFound
	case errors.Is(err, model.ErrElsewhere), errors.Is(err, model.ErrNoResponder), errors.Is(err, model.ErrStopped):
		code = model.CodeUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		code = model.CodeTimeout
	}
	if e, is := errors.AsType[*model.ServiceError](err); is {
		return e
	}
	return &model.ServiceError{Code: code, Text: err.Error()}
}

// see inspects a space. The result is nil if the space is not in memory, or did not answer, and About has the reason.
func (s *Server) see(ctx context.Context, q *Query, o worker.InspectOptions) (About, *worker.Inspected, error) {
	a := About{Space: q.Space, Worker: s.host.ID(), At: time.Now().UTC()}
	head, err := s.bus.Head(ctx, q.Space)
	if err != nil {
		return a, nil, err
	}
	wait := patience
	if o.Load = q.Load && head > 0; o.Load {
		wait = loadPatience
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	i, err := s.host.Inspect(within, q.Space, o)
	running, isRunning := errors.AsType[*worker.RunningError](err)
	switch {
	case err == nil:
		state := i.State()
		a.State, a.Program, a.Version, a.Revision, a.Halt = Awake, state.Program, state.Version, state.Seq, state.Halt
		return a, i, nil
	case errors.Is(err, model.ErrNoProgram):
		return a, nil, s.unserved(ctx, &a, head)
	case errors.Is(err, worker.ErrAsleep) && head == 0:
		return a, nil, &model.ServiceError{Code: model.CodeNotFound, Text: "there is no space " + q.Space + ": nothing was ever handled there"}
	case errors.Is(err, worker.ErrAsleep):
		a.State, a.Note = Asleep, "not in memory: nothing in it runs until an event, an observer or a timer wakes it"
	case errors.Is(err, worker.ErrLoading):
		a.State, a.Note = Loading, "being loaded, or waiting for that"
	case isRunning:
		a.State, a.Note = Running, running.Error()
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		a.State, a.Note = Running, "the space did not answer in time: it is at work"
	default:
		return a, nil, err
	}
	a.Revision = head
	return a, nil, nil
}
