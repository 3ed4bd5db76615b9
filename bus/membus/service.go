package membus

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
)

// services are those who answer, by the name of the endpoint, each list in the order
// in which they came.
type services map[string][]*served

// served is an endpoint that one client serves.
type served struct {
	*model.Endpoint
	by *client
}

// offer makes an endpoint one that can be asked, until canceled.
func (s *serviceStore) offer(e *served) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services[e.Name] = append(s.services[e.Name], e)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.services[e.Name] = slices.DeleteFunc(s.services[e.Name], func(o *served) bool { return o == e })
	}
}

// choose takes the first that can answer, and puts it behind the others.
func (s *serviceStore) choose(endpoint string) *served {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.services[endpoint]
	for i, e := range list {
		if e.by.online() {
			s.services[endpoint] = append(slices.Delete(list, i, i+1), e)
			return e
		}
	}
	return nil
}

// Serve answers requests until ctx ends or the client stops.
func (cl *serviceClient) Serve(ctx context.Context, s model.Service) error {
	for i := range s.Endpoints {
		if err := model.CheckName("endpoint", s.Endpoints[i].Name); err != nil {
			return fmt.Errorf("serve %s: %w", s.Name, err)
		}
	}
	if err := cl.awaitLink(ctx); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	for i := range s.Endpoints {
		cancel := cl.server.offer(&served{&s.Endpoints[i], cl.client})
		context.AfterFunc(ctx, cancel)
	}
	go func() { // ends with ctx or the client
		defer end()
		select {
		case <-ctx.Done():
		case <-cl.stopped:
		}
	}()
	return nil
}

// reply is what comes of a question.
type reply struct {
	data []byte
	err  error
}

// Ask asks one of those who serve the endpoint. Its answer is made on a goroutine of
// its own: who answers may ask the bus in turn.
func (cl *serviceClient) Ask(ctx context.Context, endpoint string, question []byte) ([]byte, error) {
	if err := model.CheckName("endpoint", endpoint); err != nil {
		return nil, err
	}
	if len(question) > cl.MaxPayload() {
		return nil, fmt.Errorf("question to %s: %w", endpoint, model.ErrTooLarge)
	}
	replies := make(chan reply, 1)
	cl.submit(&request{
		op:      Op{Label: "ask", Key: endpoint + " " + string(question)},
		arrive:  func(int) func() { return cl.ask(endpoint, bytes.Clone(question), replies) },
		stopped: func() { tell(replies, reply{err: model.ErrStopped}) },
	})
	select {
	case r := <-replies:
		if r.err != nil {
			return nil, fmt.Errorf("ask %s: %w", endpoint, r.err)
		}
		return r.data, nil
	case <-cl.stopped:
		return nil, model.ErrStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask has the question answered, and returns what is known at once.
func (cl *serviceClient) ask(endpoint string, request []byte, replies chan<- reply) func() {
	e := cl.server.choose(endpoint)
	if e == nil {
		return func() { tell(replies, reply{err: model.ErrNobody}) }
	}
	if e.Open != nil {
		go cl.openOnce(e, request, replies) // ends with the first part
		return func() {}
	}
	go func() { // ends with the answer
		data, err := e.Answer(request)
		if err == nil && len(data) > cl.MaxPayload() {
			err = &model.ServiceError{Code: model.CodeTooLarge, Text: fmt.Sprintf("the answer has %d bytes, the server takes %d; ask for less", len(data), cl.MaxPayload())}
		}
		if err != nil {
			err = model.AsServiceError(err)
		}
		tell(replies, reply{bytes.Clone(data), err})
	}()
	return func() {}
}

// tell keeps the first reply.
func tell(replies chan<- reply, r reply) {
	select {
	case replies <- r:
	default:
	}
}
