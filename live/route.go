package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/model"
)

// ownerRequest is a request to the owner of a space: for a document or, with Status, for the status of several.
type ownerRequest struct {
	Get
	Status []model.DocumentRef `json:"glance,omitempty"`
	// Patience is how long the owner may take. With Last it then answers with the present value, stale or not;
	// otherwise the request is repeated, possibly to another owner.
	Patience Duration `json:"patience"`
	Last     bool     `json:"last"`
}

const (
	// patience bounds one request to the owner, since the request may have got lost.
	patience = 3 * time.Second
	// margin is the additional time for a late answer to arrive.
	margin = 500 * time.Millisecond
)

// ownEndpoint returns the name of the endpoint at which a worker answers for its own spaces.
func ownEndpoint(id string) string { return model.OwnEndpoint("own", id) }

// Get reads a document at the head of the log from the owner of its space. It waits for the end of a handover
// or takeover.
func (s *Server) Get(ctx context.Context, q Get) (a Answer, err error) {
	ctx, end := s.observed.get(ctx, &q)
	defer func() { end(&a, err) }()
	if err := q.check(); err != nil {
		return Answer{}, err
	}
	if !s.startCall() {
		return Answer{}, errLeaving
	}
	defer s.inFlight.Done()
	if err := s.beginGet(); err != nil {
		return Answer{}, err
	}
	defer s.endGet()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.Timeout))
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	q.Trace = telemetry.Of(ctx).Parent
	for n := 0; ; n++ {
		a, err := s.ask(ctx, q)
		if isBadRequest(err) && q.Trace != "" { // an owner of an earlier version does not know it
			q.Trace = ""
			continue
		}
		if err == nil || !retryable(err) || errors.Is(err, errNoOwner) {
			return a, err
		}
		if pause.For(ctx, min(10*time.Millisecond<<min(n, 10), retryDelay)) != nil {
			return Answer{}, s.timeoutError(&q, err)
		}
	}
}

// notYet is the reason given when a space did not answer in time.
const notYet = "the space has not answered yet"

// timeoutError returns the error of a get that ran out of time, or whose server has ended.
func (s *Server) timeoutError(q *Get, last error) error {
	if s.ctx.Err() != nil {
		return model.ErrStopped
	}
	why := last.Error()
	if errors.Is(last, context.DeadlineExceeded) {
		why = notYet
	}
	return &model.ServiceError{Code: model.CodeTimeout, Text: fmt.Sprintf("document %s of space %s could not be read in time: %s", q.Document, q.Space, why)}
}

func (s *Server) beginGet() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.getting >= s.cfg.MaxGets {
		return busy("gets in flight", s.getting)
	}
	s.getting++
	return nil
}

func (s *Server) endGet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.getting--
}

// retryable reports whether a get that failed with err may succeed a little later.
func retryable(err error) bool {
	if e, ok := errors.AsType[*model.ServiceError](err); ok {
		return e.Code == model.CodeUnavailable || e.Code == model.CodeFailed
	}
	_, badName := errors.AsType[*model.NameError](err)
	return !badName && !errors.Is(err, model.ErrNoProgram) && !errors.Is(err, model.ErrStopped) && !errors.Is(err, model.ErrTooLarge)
}

// errNoOwner reports that no worker is left to own the space.
var errNoOwner = &model.ServiceError{Code: model.CodeUnavailable, Text: "the last worker is leaving"}

// ask sends one request to the owner.
func (s *Server) ask(ctx context.Context, q Get) (Answer, error) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	left -= min(left/10, margin)
	return s.askFor(ctx, &ownerRequest{Get: q, Patience: Duration(min(left, patience)), Last: left <= patience})
}

func (s *Server) askFor(ctx context.Context, o *ownerRequest) (Answer, error) {
	switch owner := s.host.Owner(o.Space); owner {
	case "":
		return Answer{}, errNoOwner
	case s.host.ID():
		return s.answerOwn(ctx, o)
	default:
		return s.askOwner(ctx, owner, o)
	}
}

// askOwner asks another worker, and gives up when that worker no longer owns the space.
func (s *Server) askOwner(ctx context.Context, owner string, o *ownerRequest) (Answer, error) {
	question, err := json.Marshal(o)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Patience)+margin/2)
	defer cancel()
	defer s.cancelWhen(s.ownerChanged(ctx, owner, o.Space), cancel)()
	reply, err := s.bus.Ask(ctx, ownEndpoint(owner), question)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	if err := json.Unmarshal(reply, &a); err != nil {
		return Answer{}, fmt.Errorf("the answer of worker %s: %w", owner, err)
	}
	return a, nil
}

// ownerChanged returns a channel that is closed when the owner of the space changes, unless ctx ends first.
func (s *Server) ownerChanged(ctx context.Context, owner, space string) <-chan struct{} {
	c := make(chan struct{})
	s.tasks.Go(func() { // ends with ctx
		for pause.For(ctx, retryDelay/2) == nil {
			if s.host.Owner(space) != owner {
				close(c)
				return
			}
		}
	})
	return c
}

// answerOwn reads a document of a space that this worker owns.
func (s *Server) answerOwn(ctx context.Context, o *ownerRequest) (Answer, error) {
	o.Patience = min(o.Patience, Duration(patience))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Patience)+margin/2)
	defer cancel()
	wait := time.Duration(o.Patience)
	if !o.Last {
		wait = MaxTimeout
	}
	states, err := s.host.Read(ctx, model.ReadRequest{
		Documents: []model.DocumentRef{{Space: o.Space, Document: o.Document}}, Current: true, Wait: wait,
	})
	if err != nil {
		return Answer{}, err
	}
	return o.answer(states[0]), nil
}

// openOwn answers a request of another worker.
func (s *Server) openOwn(request []byte, to model.Outlet) {
	s.spawn(to, func() {
		var o ownerRequest
		err := decode(request, &o)
		if err == nil && len(o.Status) > 0 {
			reply(to, s.answerStatus(&o), nil)
			return
		}
		if err == nil {
			err = o.check()
		}
		var a Answer
		if err == nil {
			a, err = s.answerOwn(telemetry.Context(s.ctx, model.Trace{Parent: o.Trace}), &o)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = &model.ServiceError{Code: model.CodeUnavailable, Text: notYet}
		}
		reply(to, a, err)
	})
}
