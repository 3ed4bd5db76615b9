package membus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// channel is what the parts of one answer go through. What is said while nobody listens is
// gone, and whoever says it learns of that.
type channel struct {
	// key is what fates are decided by.
	key  string
	subs topic[model.Part]
}

func (s *topicStore) subscribeChannel(c *channel) *Subscription[model.Part] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return subscribe(s.data, c.subs)
}

// say reports whether anybody listens.
func (s *topicStore) say(c *channel, p model.Part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.subs.publish(p)
	return len(c.subs) > 0
}

// Listen asks one of those who serve the endpoint, and delivers the parts of its answer.
func (cl *serviceClient) Listen(ctx context.Context, endpoint string, question []byte, deliver func(model.Part)) error {
	if err := model.CheckName("endpoint", endpoint); err != nil {
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
	first := cl.server.subscribeChannel(c) // before the question: nothing of the answer is to be missed
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
			if try > 1 || cl.open(endpoint, bytes.Clone(question), c) { // it asks once
				return func() {}
			}
			return func() { end(fmt.Errorf("ask %s: %w", endpoint, model.ErrNobody)) }
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

// open hands a question to somebody who serves the endpoint, and reports whether there is
// anybody.
func (cl *serviceClient) open(endpoint string, question []byte, c *channel) bool {
	e := cl.server.choose(endpoint)
	switch {
	case e == nil:
		return false
	case e.Open != nil:
		e.Open(question, &outlet{client: e.by, c: c, gone: make(chan struct{})})
		return true
	}
	go func() { // ends with the answer
		o := &outlet{client: e.by, c: c, gone: make(chan struct{})}
		data, err := e.Answer(question)
		if err != nil {
			_ = o.Say(model.Part{Err: model.AsServiceError(err)}) // who asks has a timeout
			return
		}
		_ = o.Say(model.Part{Data: data}) // as above
	}()
	return true
}

// outlet is where the parts of one answer go. See model.Outlet.
type outlet struct {
	client *client // of the process that answers
	c      *channel
	gone   chan struct{}
	once   sync.Once

	mu sync.Mutex
	// last is when the last part arrives that was sent through a network: parts stay in
	// their order.
	last time.Time
}

// Say sends a part.
func (o *outlet) Say(p model.Part) error {
	if len(p.Data) > o.client.MaxPayload() {
		return fmt.Errorf("part of an answer: %w", model.ErrTooLarge)
	}
	p.Data, p.Header = bytes.Clone(p.Data), maps.Clone(p.Header)
	arrive := func() {
		if !o.client.server.say(o.c, p) {
			o.once.Do(func() { close(o.gone) })
		}
	}
	op := Op{Label: "say", Key: o.c.key}
	if o.client.net == nil {
		return o.client.publish(op, arrive)
	}
	if err := o.client.err(context.Background()); err != nil {
		return err
	}
	o.post(op, arrive)
	return nil
}

// post is Bus.post, in order.
func (o *outlet) post(op Op, arrive func()) {
	b := o.client
	b.mu.Lock()
	b.count(&op)
	op.Client, op.Try = b.id, 1
	b.mu.Unlock()
	b.whenAwake(op, func() {
		trip := b.net.Request(op)
		if trip.Copy = 0; b.isMute() {
			trip.There = Lost
		}
		b.tell(Step{Moment: Leaves, Op: op, Trip: trip})
		if trip.There == Lost {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.last = later(time.Now().Add(trip.There), o.last.Add(1))
		time.AfterFunc(time.Until(o.last), func() {
			arrive()
			b.tell(Step{Moment: Arrives, Op: op, Trip: trip})
		})
	})
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Gone is closed when nobody listens any more.
func (o *outlet) Gone() <-chan struct{} { return o.gone }

// Close ends the answer.
func (o *outlet) Close() {}

// single is an outlet of which the first part counts.
type single struct {
	replies chan<- reply
	gone    chan struct{}
	once    sync.Once
	limit   int
}

// openOnce has a question answered that is given to an endpoint of many parts, by one who
// takes the first only.
func (cl *serviceClient) openOnce(e *served, request []byte, replies chan<- reply) {
	e.Open(request, &single{replies: replies, gone: make(chan struct{}), limit: cl.MaxPayload()})
}

// Say sends the only part that is heard.
func (s *single) Say(p model.Part) error {
	if len(p.Data) > s.limit {
		return fmt.Errorf("part of an answer: %w", model.ErrTooLarge)
	}
	if isClosed(s.gone) {
		return errors.New("nobody listens")
	}
	r := reply{data: bytes.Clone(p.Data)}
	if p.Err != nil {
		r = reply{err: p.Err}
	}
	tell(s.replies, r)
	s.once.Do(func() { close(s.gone) })
	return nil
}

func (s *single) Gone() <-chan struct{} { return s.gone }
func (s *single) Close()                {}
