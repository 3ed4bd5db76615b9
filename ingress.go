package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/space"
)

// ingress takes the events that a worker's gateway receives.
type ingress struct {
	bus      port.Bus
	id       string // of the worker
	programs func(space string) (*space.Program, error)
	logger   *slog.Logger
	tracer   trace.Tracer
	// answers asks the owner of a space that runs no program of this worker. It is set before requests arrive.
	answers *live.Server
	// denied remembers an event that its sender may not send. It is set before requests arrive.
	denied func(principal, space, stream, reason string)

	mu      sync.Mutex
	clients map[string]*Client // by principal
	closed  bool
}

// of returns the client that sends in the name of a principal.
func (in *ingress) of(principal string) (*Client, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil, model.ErrStopped
	}
	if c := in.clients[principal]; c != nil {
		return c, nil
	}
	c, err := NewClient(in.bus, ClientConfig{ID: in.id + "-http", Principal: principal, Logger: in.logger, Tracer: in.tracer})
	if err != nil {
		return nil, err
	}
	if in.clients == nil {
		in.clients = map[string]*Client{}
	}
	in.clients[principal] = c
	return c, nil
}

func (in *ingress) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	for _, c := range in.clients { // any order
		c.Close()
	}
}

// Send stores an event.
func (in *ingress) Send(ctx context.Context, e *gateway.Event) (id string, duplicate bool, err error) {
	if err := in.check(ctx, e); err != nil {
		return "", false, err
	}
	c, err := in.of(e.By)
	if err != nil {
		return "", false, err
	}
	out := Outgoing{Space: e.Space, Stream: e.Stream, ID: idOfKey(e.ID), NotBefore: e.NotBefore, Expires: e.Expires}
	if !e.Payload.IsAbsent() {
		out.Payload = e.Payload
	}
	m, err := out.message()
	if err != nil {
		return "", false, &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error()}
	}
	if m, err = c.own(ctx, m); err != nil {
		return "", false, expired(err)
	}
	r, err := c.sendSame(ctx, m)
	if _, is := errors.AsType[*model.ReusedIDError](err); is {
		err = &model.ServiceError{Code: http.StatusUnprocessableEntity, Text: err.Error()}
	}
	return out.ID.text, r.Duplicate, err
}

// Denied remembers an event that its sender may not send, for the figures of the worker.
func (in *ingress) Denied(principal, space, stream, reason string) {
	if in.denied != nil {
		in.denied(principal, space, stream, reason)
	}
}

// idOfKey returns the id of an event with an idempotency key: the key, or a name derived from it if it has characters that
// an id may not have; an id of its own without one.
func idOfKey(key string) EventID {
	switch {
	case key == "":
		return NewID()
	case model.CheckEventID(key) == nil:
		return ID(key)
	}
	return ID(NameOf(key))
}

// check refuses an event that the program of its space does not handle. The program of a space that other workers run is
// not known here.
func (in *ingress) check(ctx context.Context, e *gateway.Event) error {
	if err := model.CheckName("space", e.Space); err != nil {
		return &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error()}
	}
	p, err := in.programs(e.Space)
	if err != nil {
		return nil
	}
	if p == nil {
		return in.unserved(ctx, e.Space)
	}
	if p.IsInternal(e.Stream) {
		return &model.InternalStreamError{Space: e.Space, Stream: e.Stream}
	}
	if p.Handles(e.Stream) {
		return payloadError(p, e)
	}
	return &model.ServiceError{Code: model.CodeNotFound, Text: fmt.Sprintf("the program of space %s has no handler for stream %s; nothing was stored", e.Space, e.Stream)}
}

// ownerTime is how long the owner of a space may take to report that it has no program for it: it does so at once.
const ownerTime = time.Second

// unserved returns an error if the owner of a space has no program for it, either.
func (in *ingress) unserved(ctx context.Context, space string) error {
	_, err := in.answers.Get(ctx, live.Get{Space: space, Document: "any", Timeout: live.Duration(ownerTime)})
	said, is := errors.AsType[*model.ServiceError](err)
	if errors.Is(err, model.ErrNoProgram) || is && said.Code == model.CodeNotFound {
		return fmt.Errorf("space %s: %w, so that its events would wait; nothing was stored", space, model.ErrNoProgram)
	}
	return nil
}

// payloadError returns the error of a payload that the handler would refuse. A check that panics is the handler's to report.
func payloadError(p *space.Program, e *gateway.Event) (err error) {
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	if err := p.CheckPayload(e.Stream, e.Payload); err != nil {
		return &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error() + "; nothing was stored"}
	}
	return nil
}

// expired returns the error for an event whose id is older than the horizon with its status.
func expired(err error) error {
	if _, is := errors.AsType[*model.ExpiredError](err); is {
		return &model.ServiceError{Code: http.StatusGone, Text: err.Error()}
	}
	return err
}

// Await returns the receipt of an event.
func (in *ingress) Await(ctx context.Context, e *gateway.Event, id string) (*model.Receipt, error) {
	c, err := in.of(e.By)
	if err != nil {
		return nil, err
	}
	return c.Space(e.Space).Await(ctx, e.Stream, ID(id))
}
