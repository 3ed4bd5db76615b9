//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/test/chaos/history"
)

// load holds all clients of a run.
type load struct {
	d    *deployment
	work history.Workload
	rec  *records
	// rate is the number of events per second of all senders together.
	rate float64

	acked, repeated, crashes atomic.Int64
	mu                       sync.Mutex
	faults                   []string
}

// fail records an answer that a client must not get.
func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// item is one event of a client.
type item struct {
	space int
	n     uint32
}

// client sends events to all spaces; those of each space in the order of their numbers.
type client struct {
	l      *load
	number int
	rand   *rand.Rand
	next   []uint32

	bus    *bus.Bus
	client *settle.Client
	sender *settle.Sender
	lives  int

	open   sync.WaitGroup
	room   chan struct{}
	repeat chan item // to be sent again, or requested

	mu     sync.Mutex
	failed []item
}

func (l *load) client(number int) *client {
	return &client{
		l: l, number: number, rand: rand.New(rand.NewPCG(l.work.Seed, uint64(number)<<8)),
		next: make([]uint32, l.work.Spaces), room: make(chan struct{}, 128), repeat: make(chan item, 64),
	}
}

// run runs senders and callers until stop ends, and returns when every event is
// acknowledged. ctx bounds that.
func (l *load) run(ctx context.Context, stop context.Context) error {
	var all sync.WaitGroup
	callers := max(1, l.work.Clients/4)
	errs := make([]error, l.work.Clients)
	for i := range l.work.Clients {
		all.Go(func() {
			c := l.client(i)
			if i < callers {
				errs[i] = c.call(ctx, stop)
			} else {
				errs[i] = c.send(ctx, stop, l.rate/float64(l.work.Clients-callers))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// dial connects, and retries until it succeeds.
func (c *client) dial(ctx context.Context) error {
	c.lives++
	for {
		b, err := bus.Connect(ctx, c.l.d.busConfig(fmt.Sprintf("client/k%03d-%d", c.number, c.lives)))
		if err == nil {
			c.bus = b
			c.client, err = settle.NewClient(b, settle.ClientConfig{ID: fmt.Sprintf("k%03d", c.number)})
			if err == nil {
				c.sender = c.client.Sender()
			}
			return err
		}
		if pause.For(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("client %d cannot connect: %w", c.number, err)
		}
	}
}

func (c *client) hangUp() {
	c.client.Close()
	c.bus.Kill()
}

func (c *client) outgoing(i item) settle.Outgoing {
	return settle.Outgoing{
		Space: c.l.work.Space(i.space), Stream: c.l.work.Stream(c.number, i.space, i.n),
		ID: settle.ID(history.EventID(c.number, i.n)), Payload: depth(0),
	}
}

// mint returns a new event for a random space.
func (c *client) mint() item {
	space := c.rand.IntN(c.l.work.Spaces)
	c.next[space]++
	return item{space, c.next[space]}
}

// lifetime is the average time until a client crashes.
const lifetime = 40 * time.Second

// send sends at a rate until stop ends. Sometimes it crashes, with events in flight, and
// sends again what was not acknowledged.
func (c *client) send(ctx, stop context.Context, rate float64) error {
	if err := c.dial(ctx); err != nil {
		return err
	}
	defer func() { c.hangUp() }()
	var again sync.WaitGroup
	again.Go(func() { c.sendAgain(ctx) })
	defer again.Wait()
	defer close(c.repeat)
	begun, sent := time.Now(), 0.0
	dies := begun.Add(c.life())
	for pause.For(stop, 20*time.Millisecond) == nil {
		now := time.Now()
		if now.After(dies) {
			if err := c.crash(ctx); err != nil {
				return err
			}
			dies = time.Now().Add(c.life())
		}
		// Events that were delayed by an outage are sent later, but not all at once.
		due := min(rate*now.Sub(begun).Seconds()-sent, rate/4)
		for ; due >= 1; due-- {
			if c.hand(ctx, c.mint()) != nil {
				return ctx.Err()
			}
			sent++
		}
	}
	return c.flush(ctx)
}

func (c *client) life() time.Duration {
	return time.Duration((0.3 + 1.4*c.rand.Float64()) * float64(lifetime))
}

// hand passes an event to the sender once it has room.
func (c *client) hand(ctx context.Context, i item) error {
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.open.Add(1)
	dup := c.rand.IntN(50) == 0
	err := c.sender.Send(ctx, c.outgoing(i), func(r model.SendResult, err error) {
		c.answered(i, r, err, dup)
	})
	if err != nil {
		c.answered(i, model.SendResult{}, model.ErrStopped, false)
	}
	return nil
}

func (c *client) answered(i item, r model.SendResult, err error, dup bool) {
	defer c.open.Done()
	<-c.room
	if err != nil {
		if !errors.Is(err, model.ErrStopped) {
			c.l.fail("client %d, event %d to %s: %v", c.number, i.n, c.l.work.Space(i.space), err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = append(c.failed, i)
		return
	}
	c.l.ack(c.number, i, r)
	if dup {
		select {
		case c.repeat <- i:
		default:
		}
	}
}

func (l *load) ack(client int, i item, r model.SendResult) {
	l.rec.acks.add(ackRecord{Client: uint16(client), Space: uint16(i.space), N: i.n, Lane: r.Seq, At: stamp()})
	l.acked.Add(1)
}

// crash ends the connection with events in flight, and opens another.
func (c *client) crash(ctx context.Context) error {
	c.l.crashes.Add(1)
	c.hangUp()
	c.open.Wait()
	if err := c.dial(ctx); err != nil {
		return err
	}
	return c.resend(ctx)
}

// resend sends unacknowledged events again, in order.
func (c *client) resend(ctx context.Context) error {
	c.mu.Lock()
	failed := c.failed
	c.failed = nil
	c.mu.Unlock()
	slices.SortFunc(failed, func(a, b item) int { return cmp.Or(a.space-b.space, int(a.n)-int(b.n)) })
	for _, i := range failed {
		if err := c.hand(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// flush returns when every event is acknowledged.
func (c *client) flush(ctx context.Context) error {
	for {
		c.open.Wait()
		c.mu.Lock()
		open := len(c.failed)
		c.mu.Unlock()
		if open == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("client %d: %d events are not acknowledged", c.number, open)
		}
		if err := c.resend(ctx); err != nil {
			return err
		}
	}
}

// sendAgain sends some acknowledged events again, over a connection of its own,
// and waits for the receipts of some.
func (c *client) sendAgain(ctx context.Context) {
	other := c.l.client(c.number)
	if other.dial(ctx) != nil {
		return
	}
	defer other.hangUp()
	for i := range c.repeat {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		ev := other.outgoing(i)
		switch res, err := other.client.Send(ctx, ev); {
		case err != nil: // it may have been too late
		case !res.Duplicate && c.l.d.o.lossy(): // the checker knows whether it may have been lost
			c.l.ack(c.number, i, res)
		case !res.Duplicate:
			c.l.fail("%s %s was stored at %d, after it had been acknowledged", ev.Space, ev.ID.String(), res.Seq)
		default:
			c.l.repeated.Add(1)
			if rc, err := other.client.Space(ev.Space).Await(ctx, ev.Stream, ev.ID); err == nil {
				c.l.told(c.number, i, rc)
			}
		}
		cancel()
	}
}

func (l *load) told(client int, i item, rc *model.Receipt) {
	l.rec.receipts.add(receiptRecord{
		Client: uint16(client), Space: uint16(i.space), N: i.n,
		Outcome: history.Hash(string(rc.Outcome)), Result: history.Hash(rc.Result.String()), At: stamp(),
	})
}

// call makes calls until stop ends, each until it has its receipt.
func (c *client) call(ctx, stop context.Context) error {
	if err := c.dial(ctx); err != nil {
		return err
	}
	defer func() { c.hangUp() }()
	for pause.For(stop, 100*time.Millisecond) == nil {
		i := c.mint()
		for {
			once, cancel := context.WithTimeout(ctx, 5*time.Second)
			rc, err := c.client.Call(once, c.outgoing(i))
			cancel()
			if err == nil {
				c.l.ack(c.number, i, model.SendResult{})
				c.l.told(c.number, i, rc)
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("client %d: call of event %d to %s has no answer: %w", c.number, i.n, c.l.work.Space(i.space), err)
			}
		}
	}
	return nil
}
