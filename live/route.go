package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// own is what a worker asks the owner of a space: for a document, or, if there is a Glance, how
// those stand.
type own struct {
	Get
	Glance []model.DocumentRef `json:"glance,omitempty"`
	// Patience is how long the owner may take. If Last, it answers with what is there by
	// then; otherwise it is asked again, or somebody else.
	Patience Duration `json:"patience"`
	Last     bool     `json:"last"`
}

const (
	// patience is how long one attempt to ask the owner takes at most: the question may
	// have got lost with it.
	patience = 3 * time.Second
	// margin is what a late answer needs to arrive in time.
	margin = 500 * time.Millisecond
)

// ownEndpoint is where a worker answers for its own spaces.
func ownEndpoint(id string) string {
	name := "own-" + id
	if len(name) <= model.MaxNameLen {
		return name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return name[:model.MaxNameLen-17] + "-" + fmt.Sprintf("%016x", h.Sum64())
}

// Get reads a document at the head of the log, by whoever owns its space. While nobody can
// say what it is, because the space is being handed over or taken over, it waits.
func (s *Server) Get(ctx context.Context, q Get) (Answer, error) {
	if err := q.check(); err != nil {
		return Answer{}, err
	}
	if !s.visit() {
		return Answer{}, errLeaving
	}
	defer s.visits.Done()
	if err := s.beginGet(); err != nil {
		return Answer{}, err
	}
	defer s.endGet()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.Timeout))
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for n := 0; ; n++ {
		a, err := s.ask(ctx, q)
		if err == nil || !waits(err) || errors.Is(err, errAlone) {
			return a, err
		}
		if pause.For(ctx, min(10*time.Millisecond<<min(n, 10), again)) != nil {
			return Answer{}, s.late(&q, err)
		}
	}
}

// notYet is said of a space that did not answer in time.
const notYet = "the space has not answered yet"

// late is what is said when the time is over, or the server.
func (s *Server) late(q *Get, last error) error {
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
		return busy("gets under way", s.getting)
	}
	s.getting++
	return nil
}

func (s *Server) endGet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.getting--
}

// waits reports whether a get may succeed a little later.
func waits(err error) bool {
	if e, ok := errors.AsType[*model.ServiceError](err); ok {
		return e.Code == model.CodeUnavailable || e.Code == model.CodeFailed
	}
	_, badName := errors.AsType[*model.NameError](err)
	return !badName && !errors.Is(err, model.ErrNoProgram) && !errors.Is(err, model.ErrStopped) && !errors.Is(err, model.ErrTooLarge)
}

// errAlone ends what nobody is left to answer.
var errAlone = &model.ServiceError{Code: model.CodeUnavailable, Text: "the last worker is leaving"}

// ask asks the owner once.
func (s *Server) ask(ctx context.Context, q Get) (Answer, error) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	left -= min(left/10, margin)
	o := own{Get: q, Patience: Duration(min(left, patience)), Last: left <= patience}
	switch owner := s.host.Owner(q.Space); owner {
	case "":
		return Answer{}, errAlone
	case s.host.ID():
		return s.answerOwn(ctx, &o)
	default:
		return s.askOwner(ctx, owner, &o)
	}
}

// askOwner asks another worker, for as long as it is the owner.
func (s *Server) askOwner(ctx context.Context, owner string, o *own) (Answer, error) {
	question, err := json.Marshal(o)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Patience)+margin/2)
	defer cancel()
	defer s.cancelWhen(s.ousted(ctx, owner, o.Space), cancel)()
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

// ousted is closed when somebody else is to be asked, before ctx ends.
func (s *Server) ousted(ctx context.Context, owner, space string) <-chan struct{} {
	c := make(chan struct{})
	s.tasks.Go(func() { // ends with ctx
		for pause.For(ctx, again/2) == nil {
			if s.host.Owner(space) != owner {
				close(c)
				return
			}
		}
	})
	return c
}

// answerOwn answers for a space of this worker's.
func (s *Server) answerOwn(ctx context.Context, o *own) (Answer, error) {
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

// openOwn answers another worker.
func (s *Server) openOwn(request []byte, to model.Outlet) {
	s.spawn(to, func() {
		var o own
		err := decode(request, &o)
		if err == nil && len(o.Glance) > 0 {
			reply(to, s.answerGlance(&o), nil)
			return
		}
		if err == nil {
			err = o.check()
		}
		var a Answer
		if err == nil {
			a, err = s.answerOwn(s.ctx, &o)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = &model.ServiceError{Code: model.CodeUnavailable, Text: notYet}
		}
		reply(to, a, err)
	})
}
