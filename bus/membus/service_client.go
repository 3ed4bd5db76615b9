package membus

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/settlehq/settle/model"
)

// serviceClient sends requests and serves endpoints.
type serviceClient struct{ *client }

// Listen sends a request to one of the processes that serve the endpoint, and delivers the parts of its
// answer.
func (cl *serviceClient) Listen(ctx context.Context, endpoint string, question []byte, deliver func(model.Part)) error {
	if _, _, err := model.CutEndpoint(endpoint); err != nil {
		return err
	}
	if len(question) > cl.MaxPayload() {
		return fmt.Errorf("question to %s: %w", endpoint, model.ErrTooLarge)
	}
	if err := cl.err(ctx); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	cl.mu.Lock()
	cl.opened++
	c := &channel{key: cl.id + "/" + endpoint + "/" + strconv.Itoa(cl.opened), subs: topic[model.Part]{}}
	cl.mu.Unlock()
	first := cl.server.subscribeChannel(c) // before the request, so that no part of the answer is missed
	open := func() *Subscription[model.Part] {
		sub := first
		if first = nil; sub == nil {
			sub = cl.server.subscribeChannel(c)
		}
		return sub
	}
	cl.submit(&request{
		op: Op{Label: "listen", Key: endpoint},
		arrive: func(try int) func() {
			if try > 1 || cl.open(endpoint, bytes.Clone(question), c) { // the request is sent once
				return func() {}
			}
			return func() { end(fmt.Errorf("ask %s: %w", endpoint, model.ErrNoResponder)) }
		},
		stopped: func() { end(model.ErrStopped) },
	})
	err := listen(ctx, cl.client, Op{Label: "follow-answer", Key: endpoint}, open, func(p model.Part) {
		switch {
		case ctx.Err() != nil:
		case p.Err != nil:
			end(fmt.Errorf("ask %s: %w", endpoint, p.Err))
		default:
			deliver(p)
		}
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// open passes a request to a process that serves the endpoint, and reports whether there is one.
func (cl *serviceClient) open(endpoint string, question []byte, c *channel) bool {
	e, open := cl.choose(endpoint)
	switch {
	case e == nil:
		return false
	case open != nil:
		open(question, e.outlet(c))
		return true
	}
	go func() { // ends with the answer
		o := e.outlet(c)
		data, err := e.Answer(question)
		if err != nil {
			_ = o.Send(model.Part{Err: model.AsServiceError(err)}) // the requesting client has a timeout
			return
		}
		_ = o.Send(model.Part{Data: data}) // likewise
	}()
	return true
}

// choose returns a process that serves the endpoint, and what it opens for a request there, nil if it answers at once. A request in the
// name of a principal is for a process that takes such.
func (cl *serviceClient) choose(endpoint string) (e *served, open func([]byte, model.Outlet)) {
	name, principal, _ := model.CutEndpoint(endpoint) // it was checked
	e = cl.server.choose(name)
	switch {
	case e == nil || principal == "":
	case e.OpenBy == nil:
		return nil, nil
	default:
		return e, func(question []byte, to model.Outlet) { e.OpenBy(principal, question, to) }
	}
	if e == nil {
		return nil, nil
	}
	return e, e.Open
}

// openOnce sends a request to an endpoint of many parts and takes only the first part.
func (cl *serviceClient) openOnce(open func([]byte, model.Outlet), request []byte, replies chan<- reply) {
	open(request, &single{replies: replies, gone: make(chan struct{}), limit: cl.MaxPayload()})
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
		cancel := cl.server.offer(&served{&s.Endpoints[i], cl.online, func(c *channel) model.Outlet { return &outlet{client: cl.client, c: c, gone: make(chan struct{})} }})
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

// Ask sends a request to one of the processes that serve the endpoint. The answer is computed on a goroutine
// of its own: a service may use the bus in turn.
func (cl *serviceClient) Ask(ctx context.Context, endpoint string, question []byte) ([]byte, error) {
	if _, _, err := model.CutEndpoint(endpoint); err != nil {
		return nil, err
	}
	if len(question) > cl.MaxPayload() {
		return nil, fmt.Errorf("question to %s: %w", endpoint, model.ErrTooLarge)
	}
	replies := make(chan reply, 1)
	cl.submit(&request{
		op:      Op{Label: "ask", Key: endpoint + " " + string(question)},
		arrive:  func(int) func() { return cl.ask(endpoint, bytes.Clone(question), replies) },
		stopped: func() { keepFirst(replies, reply{err: model.ErrStopped}) },
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

// ask starts the answer, and returns at once what is already known.
func (cl *serviceClient) ask(endpoint string, request []byte, replies chan<- reply) func() {
	e, open := cl.choose(endpoint)
	if e == nil {
		return func() { keepFirst(replies, reply{err: model.ErrNoResponder}) }
	}
	if open != nil {
		go cl.openOnce(open, request, replies) // ends with the first part
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
		keepFirst(replies, reply{bytes.Clone(data), err})
	}()
	return func() {}
}

// reply is the outcome of a request.
type reply struct {
	data []byte
	err  error
}
