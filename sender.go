package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// Sender sends many events quickly and keeps their order: events to one space are stored in the
// order of the calls, one after the other, even if one of them has to be repeated. Events to
// different spaces are in flight concurrently.
//
// It is safe for concurrent use.
type Sender struct {
	bus    port.Bus
	client *Client
	// perSpace is the maximum number of events of one space in flight.
	perSpace int

	mu     sync.Mutex
	queues map[string]*queue
	// open counts the unanswered events; limit bounds them.
	open, limit int
	changed     *sync.Cond
	err         error
}

// queue holds the events of one space behind those in flight.
type queue struct {
	space   string
	waiting []outgoing
	busy    int
	// pumping is set while one goroutine hands the events of this queue to the bus. Two goroutines
	// could reorder them.
	pumping bool
}

type outgoing struct {
	m    model.Message
	done func(model.SendResult, error)
}

// senderWindow bounds the unanswered events of one Sender.
const senderWindow = 4096

func newSender(c *Client, perSpace int) *Sender {
	s := &Sender{bus: c.bus, client: c, perSpace: perSpace, queues: map[string]*queue{}, limit: senderWindow}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// Send queues an event. It blocks while too many are unanswered; if ctx ends first, the event was
// not sent. done, which may be nil, is called with the answer from an arbitrary goroutine and must
// not block. An event that the lane already has is a success (see SendResult.Duplicate).
func (s *Sender) Send(ctx context.Context, e Outgoing, done func(model.SendResult, error)) error {
	m, err := s.client.message(ctx, e)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	trace, end := s.client.observed.send(ctx, &m)
	m.Trace = trace
	o := outgoing{m: m, done: func(r model.SendResult, err error) {
		end(r, err)
		if done != nil {
			done(r, err)
		}
	}}
	s.mu.Lock()
	if err := s.waitUntil(ctx, func() bool { return s.open < s.limit }); err != nil {
		s.mu.Unlock()
		end(model.SendResult{}, err)
		return fmt.Errorf("send event %s to %s/%s: %w; it was not sent", m.ID, m.Space, m.Stream, err)
	}
	s.open++
	q := s.queues[m.Space]
	if q == nil {
		q = &queue{space: m.Space}
		s.queues[m.Space] = q
	}
	q.waiting = append(q.waiting, o)
	s.pump(q)
	s.mu.Unlock()
	return nil
}

// pump hands the events of a queue to the bus, up to the number allowed in flight. s.mu is held,
// but released while the bus is called.
func (s *Sender) pump(q *queue) {
	if q.pumping {
		return
	}
	q.pumping = true
	for q.busy < s.perSpace && len(q.waiting) > 0 {
		var next outgoing
		next, q.waiting = q.waiting[0], q.waiting[1:]
		q.busy++
		s.mu.Unlock()
		s.dispatch(q, next)
		s.mu.Lock()
	}
	q.pumping = false
	if q.busy == 0 {
		delete(s.queues, q.space)
	}
}

// dispatch sends o, and when it is answered the next event of its queue.
func (s *Sender) dispatch(q *queue, o outgoing) {
	s.bus.Send(o.m, func(r model.SendResult, err error) {
		if errors.Is(err, model.ErrLaneFull) {
			time.AfterFunc(laneFullPause, func() { s.dispatch(q, o) })
			return
		}
		o.done(r, err)
		s.answered(q, err)
	})
}

// laneFullPause is how long a sender waits before it repeats an event that a full lane rejected.
const laneFullPause = 50 * time.Millisecond

func (s *Sender) answered(q *queue, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	q.busy--
	if err != nil && s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
	s.pump(q)
}

// Flush blocks until every event is answered or ctx ends, and returns the first error of any of
// them.
func (s *Sender) Flush(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.waitUntil(ctx, func() bool { return s.open == 0 }); err != nil {
		return fmt.Errorf("wait for %d events to be acknowledged: %w", s.open, err)
	}
	return s.err
}

// waitUntil blocks until the condition holds or ctx ends. s.mu is held.
func (s *Sender) waitUntil(ctx context.Context, ok func() bool) error {
	if ok() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		s.changed.Broadcast()
		s.mu.Unlock()
	})
	defer stop()
	for !ok() {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.changed.Wait()
	}
	return nil
}
