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

// Sender sends many events quickly and keeps their order: events to one space are
// stored in the order of the calls, one after the other, even if one of them has
// to be repeated. Events to different spaces are under way at the same time.
//
// It is safe for concurrent use; the order is then that of the calls.
type Sender struct {
	bus    port.Bus
	client *Client
	// perSpace is how many events of one space may be under way.
	perSpace int

	mu     sync.Mutex
	queues map[string]*queue
	// open counts the events that have no answer yet; limit bounds it.
	open, limit int
	changed     *sync.Cond
	err         error
}

// queue holds the events of one space behind those that are under way.
type queue struct {
	space   string
	waiting []outgoing
	busy    int
	// pumping: somebody is handing events to the bus, and sees to all of them. Two
	// at a time could overtake each other.
	pumping bool
}

type outgoing struct {
	m    model.Message
	done func(model.SendResult, error)
}

// senderWindow bounds the events of one Sender that wait for an answer.
const senderWindow = 4096

func newSender(c *Client, perSpace int) *Sender {
	s := &Sender{bus: c.bus, client: c, perSpace: perSpace, queues: map[string]*queue{}, limit: senderWindow}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// Send queues an event. It blocks while too many have no answer, but not beyond ctx; the
// event was then not sent. done, which may be nil, is called with the answer from some
// goroutine and must not block. An event that the lane has already is a success (see
// SendResult.Duplicate).
func (s *Sender) Send(ctx context.Context, e Outgoing, done func(SendResult, error)) error {
	m, err := s.client.message(e)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	trace, end := s.client.span(ctx, &m)
	m.Trace = trace
	o := outgoing{m: m, done: func(r model.SendResult, err error) {
		end(err)
		if done != nil {
			done(r, err)
		}
	}}
	s.mu.Lock()
	if err := s.waitUntil(ctx, func() bool { return s.open < s.limit }); err != nil {
		s.mu.Unlock()
		end(err)
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

// pump hands the bus as many events of a queue as may be under way. s.mu is held, but
// not while the bus is called.
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

// dispatch sends o, and when it is answered the next one of its queue.
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

// laneFullPause is how long a sender waits before it offers an event to a full
// lane again.
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

// Flush waits until every event has an answer, or ctx ends, and returns the first
// error that any of them met.
func (s *Sender) Flush(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.waitUntil(ctx, func() bool { return s.open == 0 }); err != nil {
		return fmt.Errorf("wait for %d events to be acknowledged: %w", s.open, err)
	}
	return s.err
}

// waitUntil waits for a condition, but not beyond ctx. s.mu is held.
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
