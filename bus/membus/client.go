package membus

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// client carries the requests of one client to a Server, and their answers back.
type client struct {
	id      string
	server  *Server
	stopped chan struct{} // closed by Close and Kill
	ended   chan struct{} // closed when run has returned

	mu     sync.Mutex // guards what follows, and travel
	hook   Hook
	queue  []*request // to be carried, in this order
	held   []held     // on their way until Release
	asked  uint64     // the number of requests so far
	closed bool
	down   bool
	wake   signal // raised when run may have something to do
	link   signal // raised when down changes

	travel
}

// request is something that a client wants of the server. Its callback is
// called once, by answer or by stopped.
type request struct {
	op Op
	// arrive is what happens when the request reaches the server, and returns
	// what happens when the answer reaches the client. It may be called more than
	// once, and from any goroutine.
	arrive func(try int) (answer func())
	// stopped is what happens when the client stops before there is an answer.
	stopped func()
	// released requests have had their fate.
	released bool
	// recall is arrive for a question, put to a replica that is behind by so many
	// messages.
	recall func(behind int) (answer func())
	// store is arrive for a request that changes something, and tells the network what.
	store func(Op) (answer func())
	// rewound is what happens to a request that follows from what was read in an epoch, when the store is in
	// another; nil for others.
	rewound func()
	epoch   uint64
}

// bound are the labels of requests that follow from what was read before.
var bound = map[string]bool{
	"append": true, "save": true, "save-position": true, "move-position": true, "fill-lane": true,
	"bury": true, "purge-lane": true, "purge-log": true, "purge-state": true,
}

// isOver reports whether a request follows from what was read in an earlier epoch.
func (cl *client) isOver(r *request) bool { return r.rewound != nil && r.epoch != cl.Epoch() }

// held is a request that the network keeps back.
type held struct {
	*request
	try  int
	late bool
}

// Epoch returns how often the store has gone back: see Server.GoBack.
func (cl *client) Epoch() uint64 { return cl.server.epoch.Load() }

// Hindsight is that of a cluster where the network is simulated, and 0 otherwise.
func (cl *client) Hindsight() time.Duration {
	if cl.net != nil {
		return 30 * time.Second
	}
	return 0
}

// Inject lets hook decide the fate of the client's requests from here on; nil
// delivers them all.
func (cl *client) Inject(hook Hook) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.hook = hook
}

// Release lets everything arrive that the hook delayed.
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

// Close stops the client: what is pending ends with model.ErrStopped, and all
// callbacks have been called when it returns. It must not be called from one.
func (cl *client) Close() {
	cl.stop()
	<-cl.ended
}

// Kill stops the client as the end of its process would: it waits for nothing.
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

// submit asks for r to be carried to the server. No callback is called before it
// returns, lest one waits for a lock that the caller holds.
func (cl *client) submit(r *request) {
	cl.mu.Lock()
	cl.asked++
	r.op.Client, r.op.N = cl.id, cl.asked
	cl.mu.Unlock()
	if !cl.enqueue(r) {
		go r.stopped() // ends when the callback returns
	}
}

// resubmit is submit for a request that was under way already.
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

// run carries the client's requests one by one.
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

// next takes a request off the queue, if there is one and the client is
// connected; otherwise more is closed when that may have changed.
func (cl *client) next() (r *request, more <-chan struct{}) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.closed || cl.down || len(cl.queue) == 0 {
		return nil, cl.wake.wait()
	}
	r, cl.queue = cl.queue[0], cl.queue[1:]
	return r, nil
}

// carry sends a request and sees to its answer. A request whose answer is lost
// goes to the end of the queue: by the time a client has lost patience, it has
// sent what came after.
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

// arrives lets a request arrive at the server. The store does not go back between the comparison of epochs and
// what the request does.
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

// abandon ends everything that has no answer yet. Requests that are late were
// asked again, so only the later try is still waiting; the former stays on its
// way, client or no client.
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

// answered is the end of a request: a value, or why there is none.
type answered[T any] struct {
	v   T
	err error
}

// ask submits a request and waits for the answer. When ctx ends first, the
// request is still under way and may yet take effect.
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

// recall is ask for a question that a replica may answer which is behind.
func recall[T any](ctx context.Context, c *client, op Op, look func(behind int) T) (T, error) {
	return await(ctx, c, op, func(end chan<- answered[T]) *request {
		answer := func(behind int) func() {
			v := look(behind)
			return func() { end <- answered[T]{v: v} }
		}
		return &request{op: op, arrive: func(int) func() { return answer(0) }, recall: answer}
	})
}

// await submits a request that tells of its end by a channel, and waits for that.
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

// newEnd has room for the one end that a request has.
func newEnd[T any]() chan answered[T] { return make(chan answered[T], 1) }

// Partitions returns the number of partitions of the deployment.
func (cl *client) Partitions() int { return cl.server.Partitions() }

// Horizon is for how long the deployment remembers events.
func (cl *client) Horizon() time.Duration { return cl.server.Horizon() }

// MaxPayload returns the largest message in bytes, headers included.
func (cl *client) MaxPayload() int { return cl.server.MaxPayload() }

func number(partition int) string { return strconv.Itoa(partition) }
