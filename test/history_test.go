package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// tally returns the program of the histories: every event is counted, and its receipt has its number. A
// "forward" sends an "add" to the space in its payload, which may be its own.
func tally() *settle.Program {
	count := func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) { return settle.ValueOf(increment(tx, "n")) }
	return settle.NewProgram("tally").
		Handle("add", count).
		Handle("forward", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			to, _ := ev.Payload.AsString()
			tx.Send(to, "add", nil)
			return count(tx, ev)
		})
}

// rush is a run of concurrent clients, which record the answers.
type rush struct {
	*testing.T
	d      *deployment
	h      *callHistory
	spaces []string
	seed   uint64
	// past is set if readers may get outdated answers, because leaders are deposed.
	past bool
	// every is the number of operations between two disturbances, and disturb makes one.
	every   int64
	disturb func(n int64)
	done    atomic.Int64
	// mortal are attached runtimes that may be killed.
	mortal []*worker.Attachment

	mu    sync.Mutex
	known []settle.Outgoing // events that a client has sent, or tried to
	acked map[string]bool   // those of them that are certainly stored
	calls map[string]time.Duration
}

func newRush(t *testing.T, d *deployment, seed uint64) *rush {
	return &rush{
		T: t, d: d, h: newHistory(), spaces: []string{"a", "b", "c"}, seed: seed,
		every: 40, disturb: func(int64) {},
		acked: map[string]bool{}, calls: map[string]time.Duration{},
	}
}

// run makes each client perform n operations, and then checks the history.
func (r *rush) run(clients, operations int) {
	r.Helper()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { // ends with its operations
			c := r.client(i)
			defer c.hangUp()
			for n := range operations {
				if n == operations/2 {
					c.crash()
				}
				c.operate()
				if n := r.done.Add(1); n%r.every == 0 {
					r.disturb(n / r.every)
				}
			}
		})
	}
	all.Wait()
	r.settle()
	r.h.wantAllowed(r.T)
	r.Logf("%d operations, %d events", len(r.h.ops), len(r.known))
}

// caller is one client.
type caller struct {
	r      *rush
	name   string
	rand   *rand.Rand
	minted int
	bus    *bus.Bus
	client *settle.Client
}

func (r *rush) client(number int) *caller {
	c := &caller{r: r, name: "c" + strconv.Itoa(number), rand: rand.New(rand.NewPCG(r.seed, uint64(number)))}
	c.dial()
	return c
}

// dial connects. It is also called by goroutines other than the test's.
func (c *caller) dial() {
	cfg := c.r.d.cfg.Bus
	cfg.Name = "client/" + c.name
	var err error
	if c.bus, err = bus.Connect(c.r.Context(), cfg); err != nil {
		c.r.Error(err)
		panic(err)
	}
	if c.client, err = settle.NewClient(c.bus, settle.ClientConfig{ID: c.name}); err != nil {
		panic(err)
	}
}

func (c *caller) hangUp() { c.client.Close(); c.bus.Close() }

// crash ends the client while it is sending, so that it never learns the outcome, and starts it again.
func (c *caller) crash() {
	var open sync.WaitGroup
	for range 3 {
		ev := c.pick()
		answer := c.sends(ev)
		open.Add(1)
		m := model.Message{Space: ev.Space, Stream: ev.Stream, ID: ev.ID.String(), Payload: payload(ev)}
		c.bus.Send(m, func(res model.SendResult, err error) { answer(res, err); open.Done() })
	}
	c.bus.Kill()
	open.Wait()
	c.client.Close()
	c.dial()
}

func payload(ev settle.Outgoing) []byte {
	if to, ok := ev.Payload.(string); ok {
		return []byte(strconv.Quote(to))
	}
	return nil
}

// operate makes one operation.
func (c *caller) operate() {
	ctx, cancel := context.WithTimeout(c.r.Context(), patience)
	defer cancel()
	switch c.rand.IntN(10) {
	case 0, 1, 2:
		ev := c.pick()
		answer := c.sends(ev)
		res, err := c.client.Send(ctx, ev)
		answer(res, err)
	case 3:
		c.giveUp(ctx)
	case 4, 5, 6:
		c.call(ctx)
	case 7:
		c.await(ctx)
	case 8:
		c.find(ctx)
	case 9:
		c.read(ctx, c.r.spaces[c.rand.IntN(len(c.r.spaces))], read)
	}
}

// pick returns an event to send: a new one, or one that a client has sent before.
func (c *caller) pick() settle.Outgoing {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if len(c.r.known) > 0 && c.rand.IntN(3) == 0 {
		recent := c.r.known[max(0, len(c.r.known)-8):]
		return recent[c.rand.IntN(len(recent))]
	}
	c.minted++
	spaces := c.r.spaces
	ev := settle.Outgoing{Space: spaces[c.rand.IntN(len(spaces))], Stream: "add", ID: settle.ID(fmt.Sprintf("%s-%d", c.name, c.minted))}
	if c.rand.IntN(4) == 0 {
		ev.Stream, ev.Payload = "forward", spaces[c.rand.IntN(len(spaces))]
	}
	c.r.known = append(c.r.known, ev)
	c.r.calls[ev.Space+" "+ev.ID.String()] = time.Since(c.r.h.start)
	return ev
}

// sends records that an event is being sent.
func (c *caller) sends(ev settle.Outgoing) func(model.SendResult, error) {
	answer := c.r.h.begin(c.name, asked{kind: sent, space: ev.Space, id: ev.ID.String()})
	return func(res model.SendResult, err error) {
		answer(answered{open: err != nil, duplicate: res.Duplicate})
		if err == nil {
			c.r.mu.Lock()
			c.r.acked[ev.Space+" "+ev.ID.String()] = true
			c.r.mu.Unlock()
		}
	}
}

// giveUp sends an event and does not wait for long.
func (c *caller) giveUp(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	ev := c.pick()
	answer := c.sends(ev)
	go cancel() // ends at once
	res, err := c.client.Send(ctx, ev)
	answer(res, err)
}

func (c *caller) call(ctx context.Context) {
	ev := c.pick()
	answer := c.sends(ev)
	receipt := c.r.h.begin(c.name+" waits", asked{kind: awaited, space: ev.Space, id: ev.ID.String()})
	rc, err := c.client.Call(ctx, ev)
	if err != nil {
		c.r.Errorf("call %s of %s: %v", ev.ID.String(), ev.Space, err)
		answer(model.SendResult{}, err)
		return
	}
	answer(model.SendResult{Duplicate: true}, nil) // the answer does not have it
	receipt(answered{n: number(rc)})
}

func number(rc *model.Receipt) int {
	if rc == nil {
		return 0
	}
	n, _ := rc.Result.AsInt()
	return int(n)
}

// stored returns an event that is certainly stored, if there is one.
func (c *caller) stored() (ev settle.Outgoing, ok bool) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	for range 10 {
		if len(c.r.known) == 0 {
			break
		}
		ev = c.r.known[c.rand.IntN(len(c.r.known))]
		if c.r.acked[ev.Space+" "+ev.ID.String()] {
			return ev, true
		}
	}
	return ev, false
}

func (c *caller) await(ctx context.Context) {
	if ev, ok := c.stored(); ok {
		c.awaits(ctx, ev.Space, ev.Stream, ev.ID.String())
	}
}

func (c *caller) awaits(ctx context.Context, space, stream, id string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer := c.r.h.begin(c.name, asked{kind: awaited, space: space, id: id})
	rc, err := c.client.Space(space).Await(ctx, stream, settle.ID(id))
	if err != nil {
		c.r.Errorf("await %s of %s: %v", id, space, err)
		return
	}
	answer(answered{n: number(rc)})
}

func (c *caller) find(ctx context.Context) {
	ev := c.pick()
	answer := c.r.h.begin(c.name, asked{kind: found, space: ev.Space, id: ev.ID.String(), past: c.r.past})
	rc, err := c.client.Space(ev.Space).FindReceipt(ctx, ev.Stream, ev.ID)
	if err != nil {
		c.r.Errorf("find %s of %s: %v", ev.ID.String(), ev.Space, err)
		return
	}
	answer(answered{n: number(rc)})
}

func (c *caller) read(ctx context.Context, space string, what kind) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer := c.r.h.begin(c.name, asked{kind: what, space: space, past: c.r.past})
	v, _, err := c.client.Space(space).Get(ctx, "n")
	if err != nil {
		c.r.Errorf("read %s: %v", space, err)
		return
	}
	n, _ := v.AsInt()
	answer(answered{n: int(n)})
}

// settle sends every event once more, so that none is in doubt, waits for all effects, and checks the final
// state.
func (r *rush) settle() {
	r.Helper()
	ctx := r.Context() // each operation has its own limit: there are many
	c := r.client(99)
	defer c.hangUp()
	for _, ev := range r.known {
		answer := c.sends(ev)
		bounded, cancel := context.WithTimeout(ctx, patience)
		res, err := c.client.Send(bounded, ev)
		cancel()
		answer(res, err)
		if err != nil {
			r.Fatal(err)
		}
	}
	for _, ev := range r.known {
		c.awaits(ctx, ev.Space, ev.Stream, ev.ID.String())
	}
	for _, space := range r.spaces {
		r.followUps(ctx, c, space)
	}
	for _, space := range r.spaces {
		c.read(ctx, space, rested)
		once(r.T, readLog(r.T, r.d.Bus(), space))
	}
}

// followUps adds the sends of a space's handlers as operations, which no client has requested, which begin with
// the event behind them, and which have an end.
func (r *rush) followUps(ctx context.Context, c *caller, space string) {
	r.Helper()
	for _, h := range readLog(r.T, r.d.Bus(), space) {
		for _, s := range h.tx.Sends {
			c.awaits(ctx, s.To, s.Stream, s.ID)
			in := asked{kind: sent, space: s.To, id: s.ID}
			r.h.add("sent by "+space, in, answered{duplicate: true}, r.calls[space+" "+h.key.ID], time.Since(r.h.start))
		}
	}
}

// killWorkers kills one worker after the other, as often as requested.
func (r *rush) killWorkers(int64) {
	ids := r.d.Workers()
	if len(ids) == 0 || !r.d.KillWorker(ids[0]) {
		return // another caller does it
	}
	if _, err := r.d.AddWorker(r.Context()); err != nil {
		r.Error(err)
	}
}

// attach makes another runtime handle the events of a space, over its own connection.
func (r *rush) attach(id, space string) *worker.Attachment {
	r.Helper()
	b := connect(r.T, r.d)
	r.Cleanup(b.Close)
	return attach(r.T, b, space, settle.AttachConfig{ID: id + "-" + space, Events: true, Program: tally()})
}

// deposeLeaders makes the leaders of two streams step down, and sometimes kills a worker.
func (r *rush) deposeLeaders(n int64) {
	prefix := r.d.cfg.Bus.Prefix
	if n%3 == 0 {
		r.killWorkers(n)
	}
	for _, stream := range []string{"LOG", "LANE"} {
		name := fmt.Sprintf("%s_%s_%d", strings.ToUpper(prefix), stream, n%int64(r.d.Bus().Partitions()))
		if err := natstest.StepDown(r.d.Bus().Conn(), name); err != nil && !errors.Is(err, context.Canceled) {
			r.Error(err)
		}
	}
}
