package membus

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// client carries the requests of one client to a Server, and the answers back.
type client struct {
	id      string
	server  *Server
	stopped chan struct{} // closed by Close and Kill
	ended   chan struct{} // closed when run has returned

	mu     sync.Mutex // guards the fields below, and travel
	hook   Hook
	queue  []*request // to be sent, in this order
	held   []held     // delayed until Release
	asked  uint64     // the number of requests so far
	closed bool
	down   bool
	wake   signal // raised when run may have something to do
	link   signal // raised when down changes

	travel
}

// request is one call of a client to the server. Its callback is called once, by answer or by stopped.
type request struct {
	op Op
	// arrive executes the request at the server, and returns a function that passes the answer to the client.
	// It may be called more than once, and from any goroutine.
	arrive func(try int) (answer func())
	// stopped is called when the client stops before it has an answer.
	stopped func()
	// released is set once the fate of the request was decided.
	released bool
	// recall is arrive for a query, executed by a replica that lacks the last behind messages.
	recall func(behind int) (answer func())
	// store is arrive for a request that changes something; it records the change in the Op for the network.
	store func(Op) (answer func())
	// rewound ends a request that depends on what was read in an epoch, when the store is in another one; nil
	// for other requests.
	rewound func()
	epoch   uint64
}

// bound are the labels of requests that depend on what was read before.
var bound = map[string]bool{
	"append": true, "save": true, "save-position": true, "move-position": true, "fill-lane": true,
	"bury": true, "purge-lane": true, "purge-log": true, "purge-state": true,
}

// isOver reports whether a request depends on what was read in an earlier epoch.
func (cl *client) isOver(r *request) bool { return r.rewound != nil && r.epoch != cl.Epoch() }

// held is a request that the network holds back.
type held struct {
	*request
	try  int
	late bool
}

// Epoch returns how often the store has gone back: see Server.GoBack.
func (cl *client) Epoch() uint64 { return cl.server.epoch.Load() }

// StaleWindow returns the hindsight of a cluster where the network is simulated, and 0 otherwise.
func (cl *client) StaleWindow() time.Duration {
	if cl.net != nil {
		return 30 * time.Second
	}
	return 0
}

// Inject makes hook decide the fate of the client's requests from now on; nil delivers them all.
func (cl *client) Inject(hook Hook) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.hook = hook
}

// Release delivers everything that the hook has delayed.
func (cl *client) Release() {
	for _, h := range cl.takeHeld() {
		if h.late {
			h.arrive(h.try)
			continue
		}
		h.released = true
		cl.resubmit(h.request)
	}
}

// Close stops the client. Pending requests end with model.ErrStopped, and all callbacks have returned when
// Close returns; it must not be called from a callback.
func (cl *client) Close() {
	cl.stop()
	<-cl.ended
}

// Kill stops the client like the end of its process: it waits for nothing.
func (cl *client) Kill() { cl.stop() }

func (cl *client) stop() {
	cl.server.mu.Lock()
	delete(cl.server.clients, cl)
	cl.server.mu.Unlock()
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !cl.closed {
		cl.closed = true
		close(cl.stopped)
	}
}

// submit queues r for the server. It calls no callback before it returns, because a callback may need a lock
// that the caller holds.
func (cl *client) submit(r *request) {
	cl.mu.Lock()
	cl.asked++
	r.op.Client, r.op.N = cl.id, cl.asked
	cl.mu.Unlock()
	if !cl.enqueue(r) {
		go r.stopped() // ends when the callback returns
	}
}

// resubmit is submit for a request that was sent before.
func (cl *client) resubmit(r *request) {
	if !cl.enqueue(r) {
		r.stopped()
	}
}

func (cl *client) enqueue(r *request) bool {
	cl.mu.Lock()
	if cl.net != nil {
		return cl.launch(r)
	}
	defer cl.mu.Unlock()
	if cl.closed {
		return false
	}
	cl.queue = append(cl.queue, r)
	cl.wake.raise()
	return true
}

// run sends the client's requests one by one.
func (cl *client) run() {
	defer close(cl.ended)
	for {
		r, more := cl.next()
		if r != nil {
			cl.carry(r)
			continue
		}
		select {
		case <-more:
		case <-cl.stopped:
			cl.abandon()
			return
		}
	}
}

// next takes a request off the queue if there is one and the client is connected; otherwise more is closed
// when that may have changed.
func (cl *client) next() (r *request, more <-chan struct{}) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.closed || cl.down || len(cl.queue) == 0 {
		return nil, cl.wake.wait()
	}
	r, cl.queue = cl.queue[0], cl.queue[1:]
	return r, nil
}

// carry sends a request and handles its answer. A request whose answer is lost goes to the end of the queue:
// by the time a client times out, it has sent its later requests.
func (cl *client) carry(r *request) {
	if cl.isOver(r) {
		r.rewound()
		return
	}
	r.op.Try++
	switch cl.fate(r) {
	case DropRequest:
		cl.resubmit(r)
	case DropAck:
		cl.arrives(r)
		cl.resubmit(r)
	case Duplicate:
		answer := cl.arrives(r)
		cl.arrives(r)
		answer()
	case Delay:
		cl.hold(held{request: r})
	case Late:
		cl.hold(held{request: r, try: r.op.Try, late: true})
		cl.resubmit(r)
	default:
		cl.arrives(r)()
	}
}

// arrives executes a request at the server. The store does not go back between the comparison of epochs and
// the execution.
func (cl *client) arrives(r *request) (answer func()) {
	cl.server.turning.RLock()
	defer cl.server.turning.RUnlock()
	if cl.isOver(r) {
		return r.rewound
	}
	return r.arrive(r.op.Try)
}

func (cl *client) fate(r *request) Fate {
	cl.mu.Lock()
	hook := cl.hook
	cl.mu.Unlock()
	if hook == nil || r.released {
		return Deliver
	}
	return hook(r.op)
}

func (cl *client) hold(h held) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.held = append(cl.held, h)
}

func (cl *client) takeHeld() []held {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	taken := cl.held
	cl.held = nil
	return taken
}

// abandon ends all unanswered requests. A late request was sent again, so only the later try is still
// waiting; the earlier one may land even after the client has ended.
func (cl *client) abandon() {
	cl.mu.Lock()
	waiting := cl.queue
	cl.queue = nil
	stillHeld := cl.held[:0]
	for _, h := range cl.held {
		if h.late {
			stillHeld = append(stillHeld, h)
		} else {
			waiting = append(waiting, h.request)
		}
	}
	cl.held = stillHeld
	cl.mu.Unlock()
	for _, r := range waiting {
		r.stopped()
	}
}

// answered is the outcome of a request: a value or an error.
type answered[T any] struct {
	v   T
	err error
}

// ask submits a request and waits for the answer. When ctx ends first, the request stays in flight and may
// still take effect.
func ask[T any](ctx context.Context, c *client, op Op, arrive func(try int) T) (T, error) {
	return await(ctx, c, op, func(end chan<- answered[T]) *request {
		return &request{op: op, arrive: func(try int) func() {
			v := arrive(try)
			return func() { end <- answered[T]{v: v} }
		}}
	})
}

// store is ask for a request that changes something.
func store[T any](ctx context.Context, c *client, op Op, arrive func(Op) T) (T, error) {
	return await(ctx, c, op, func(end chan<- answered[T]) *request {
		return storing(op, func(op Op) func() {
			v := arrive(op)
			return func() { end <- answered[T]{v: v} }
		}, nil)
	})
}

// storing returns a request that changes something.
func storing(op Op, arrive func(Op) (answer func()), stopped func()) *request {
	return &request{
		op: op, store: arrive, stopped: stopped,
		arrive: func(try int) func() { return arrive(Op{Try: try}) },
	}
}

// recall is ask for a query that a lagging replica may answer.
func recall[T any](ctx context.Context, c *client, op Op, look func(behind int) T) (T, error) {
	return await(ctx, c, op, func(end chan<- answered[T]) *request {
		answer := func(behind int) func() {
			v := look(behind)
			return func() { end <- answered[T]{v: v} }
		}
		return &request{op: op, arrive: func(int) func() { return answer(0) }, recall: answer}
	})
}

// await submits a request that sends its outcome to a channel, and waits for it.
func await[T any](ctx context.Context, c *client, op Op, build func(chan<- answered[T]) *request) (T, error) {
	end := newEnd[T]()
	r := build(end)
	r.stopped = func() { end <- answered[T]{err: model.ErrStopped} }
	if bound[op.Label] {
		r.epoch, r.rewound = port.EpochOf(ctx, c.Epoch()), func() { end <- answered[T]{err: model.ErrRewound} }
	}
	c.submit(r)
	select {
	case a := <-end:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// newEnd returns a channel with room for the one outcome of a request.
func newEnd[T any]() chan answered[T] { return make(chan answered[T], 1) }

// Prefix returns the name of the deployment: that of one over JetStream that was given none.
func (cl *client) Prefix() string { return "settle" }

// Partitions returns the number of partitions of the deployment.
func (cl *client) Partitions() int { return cl.server.Partitions() }

// Horizon returns how long the deployment remembers events.
func (cl *client) Horizon() time.Duration { return cl.server.Horizon() }

// MaxPayload returns the largest message in bytes, headers included.
func (cl *client) MaxPayload() int { return cl.server.MaxPayload() }

func number(partition int) string { return strconv.Itoa(partition) }
