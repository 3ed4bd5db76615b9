package membus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// outlet sends the parts of one answer. See model.Outlet.
type outlet struct {
	client *client // the answering client
	c      *channel
	gone   chan struct{}
	once   sync.Once

	mu sync.Mutex
	// last is the arrival time of the last part that was sent through a network: parts stay in order.
	last time.Time
}

// Send sends a part.
func (o *outlet) Send(p model.Part) error {
	if len(p.Data) > o.client.MaxPayload() {
		return fmt.Errorf("part of an answer: %w", model.ErrTooLarge)
	}
	p.Data, p.Header = bytes.Clone(p.Data), maps.Clone(p.Header)
	arrive := func() {
		if !o.client.server.publish(o.c, p) {
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

// post is client.post, but keeps parts in order.
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
		b.report(Step{Moment: Leaves, Op: op, Trip: trip})
		if trip.There == Lost {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.last = later(time.Now().Add(trip.There), o.last.Add(1))
		time.AfterFunc(time.Until(o.last), func() {
			arrive()
			b.report(Step{Moment: Arrives, Op: op, Trip: trip})
		})
	})
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Gone returns a channel that is closed when the last listener has left.
func (o *outlet) Gone() <-chan struct{} { return o.gone }

// SensesGone returns true.
func (o *outlet) SensesGone() bool { return true }

// Close ends the answer.
func (o *outlet) Close() {}

// single is an outlet that takes one part, the first.
type single struct {
	replies chan<- reply
	gone    chan struct{}
	once    sync.Once
	limit   int
}

// Send sends the first part.
func (s *single) Send(p model.Part) error {
	if len(p.Data) > s.limit {
		return fmt.Errorf("part of an answer: %w", model.ErrTooLarge)
	}
	if isClosed(s.gone) {
		return errors.New("the listener has left")
	}
	r := reply{data: bytes.Clone(p.Data)}
	if p.Err != nil {
		r = reply{err: p.Err}
	}
	keepFirst(s.replies, r)
	s.once.Do(func() { close(s.gone) })
	return nil
}

func (s *single) Gone() <-chan struct{} { return s.gone }
func (s *single) SensesGone() bool      { return true }
func (s *single) Close()                {}
