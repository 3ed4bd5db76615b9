package membus

import (
	"context"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// Bus is one client of a Server.
type Bus struct {
	id      string
	server  *Server
	stopped chan struct{} // closed by Close and Kill
	ended   chan struct{} // closed when run has returned

	mu     sync.Mutex
	hook   Hook
	queue  []*request // to be carried, in this order
	held   []held     // on their way until Release
	asked  uint64     // the number of requests so far
	closed bool
	down   bool
	wake   signal // raised when run may have something to do
	link   signal // raised when down changes

	// What follows is used by clients that are connected through a network.
	net      Network
	journeys map[*request]*journey // under way
	counts   map[countKey]counted
	mute     bool // nothing leaves
	deaf     bool // nothing comes in
	asleep   bool // see Pause
	frozen   []frozen
	woken    signal
	opened   int        // answers that were listened to so far
	calling  sync.Mutex // held by whoever calls back
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
func (b *Bus) isOver(r *request) bool { return r.rewound != nil && r.epoch != b.Epoch() }

// held is a request that the network keeps back.
type held struct {
	*request
	try  int
	late bool
}

// Epoch is how often the store has gone back: see Server.GoBack.
func (b *Bus) Epoch() uint64 { return b.server.epoch.Load() }

// Hindsight is that of a cluster where the network is simulated, and 0 otherwise.
func (b *Bus) Hindsight() time.Duration {
	if b.net != nil {
		return 30 * time.Second
	}
	return 0
}

// Connect attaches a client. It must be ended by Close or Kill.
func (s *Server) Connect(id string) *Bus {
	b := newBus(s, id)
	go b.run() // ends when the client is closed or killed
	return b
}

func newBus(s *Server, id string) *Bus {
	b := &Bus{id: id, server: s, stopped: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	s.clients[b] = true
	s.mu.Unlock()
	return b
}

// Inject lets hook decide the fate of the client's requests from here on; nil
// delivers them all.
func (b *Bus) Inject(hook Hook) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hook = hook
}

// Release lets everything arrive that the hook delayed.
func (b *Bus) Release() {
	for _, h := range b.takeHeld() {
		if h.late {
			h.arrive(h.try)
			continue
		}
		h.released = true
		b.resubmit(h.request)
	}
}

// Close stops the client: what is pending ends with model.ErrStopped, and all
// callbacks have been called when it returns. It must not be called from one.
func (b *Bus) Close() {
	b.stop()
	<-b.ended
}

// Kill stops the client as the end of its process would: it waits for nothing.
func (b *Bus) Kill() { b.stop() }

func (b *Bus) stop() {
	b.server.mu.Lock()
	delete(b.server.clients, b)
	b.server.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.stopped)
	}
}

// submit asks for r to be carried to the server. No callback is called before it
// returns, lest one waits for a lock that the caller holds.
func (b *Bus) submit(r *request) {
	b.mu.Lock()
	b.asked++
	r.op.Client, r.op.N = b.id, b.asked
	b.mu.Unlock()
	if !b.enqueue(r) {
		go r.stopped() // ends when the callback returns
	}
}

// resubmit is submit for a request that was under way already.
func (b *Bus) resubmit(r *request) {
	if !b.enqueue(r) {
		r.stopped()
	}
}

func (b *Bus) enqueue(r *request) bool {
	b.mu.Lock()
	if b.net != nil {
		return b.launch(r)
	}
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.queue = append(b.queue, r)
	b.wake.raise()
	return true
}

// run carries the client's requests one by one.
func (b *Bus) run() {
	defer close(b.ended)
	for {
		r, more := b.next()
		if r != nil {
			b.carry(r)
			continue
		}
		select {
		case <-more:
		case <-b.stopped:
			b.abandon()
			return
		}
	}
}

// next takes a request off the queue, if there is one and the client is
// connected; otherwise more is closed when that may have changed.
func (b *Bus) next() (r *request, more <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.down || len(b.queue) == 0 {
		return nil, b.wake.wait()
	}
	r, b.queue = b.queue[0], b.queue[1:]
	return r, nil
}

// carry sends a request and sees to its answer. A request whose answer is lost
// goes to the end of the queue: by the time a client has lost patience, it has
// sent what came after.
func (b *Bus) carry(r *request) {
	if b.isOver(r) {
		r.rewound()
		return
	}
	r.op.Try++
	switch b.fate(r) {
	case DropRequest:
		b.resubmit(r)
	case DropAck:
		r.arrive(r.op.Try)
		b.resubmit(r)
	case Duplicate:
		answer := r.arrive(r.op.Try)
		r.arrive(r.op.Try)
		answer()
	case Delay:
		b.hold(held{request: r})
	case Late:
		b.hold(held{request: r, try: r.op.Try, late: true})
		b.resubmit(r)
	default:
		r.arrive(r.op.Try)()
	}
}

func (b *Bus) fate(r *request) Fate {
	b.mu.Lock()
	hook := b.hook
	b.mu.Unlock()
	if hook == nil || r.released {
		return Deliver
	}
	return hook(r.op)
}

func (b *Bus) hold(h held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = append(b.held, h)
}

func (b *Bus) takeHeld() []held {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.held
	b.held = nil
	return taken
}

// abandon ends everything that has no answer yet. Requests that are late were
// asked again, so only the later try is still waiting; the former stays on its
// way, client or no client.
func (b *Bus) abandon() {
	b.mu.Lock()
	waiting := b.queue
	b.queue = nil
	stillHeld := b.held[:0]
	for _, h := range b.held {
		if h.late {
			stillHeld = append(stillHeld, h)
		} else {
			waiting = append(waiting, h.request)
		}
	}
	b.held = stillHeld
	b.mu.Unlock()
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
func ask[T any](ctx context.Context, b *Bus, op Op, arrive func(try int) T) (T, error) {
	return await(ctx, b, op, func(end chan<- answered[T]) *request {
		return &request{op: op, arrive: func(try int) func() {
			v := arrive(try)
			return func() { end <- answered[T]{v: v} }
		}}
	})
}

// store is ask for a request that changes something.
func store[T any](ctx context.Context, b *Bus, op Op, arrive func(Op) T) (T, error) {
	return await(ctx, b, op, func(end chan<- answered[T]) *request {
		return storing(op, func(op Op) func() {
			v := arrive(op)
			return func() { end <- answered[T]{v: v} }
		}, nil)
	})
}

// storing is a request that changes something.
func storing(op Op, arrive func(Op) (answer func()), stopped func()) *request {
	return &request{
		op: op, store: arrive, stopped: stopped,
		arrive: func(try int) func() { return arrive(Op{Try: try}) },
	}
}

// recall is ask for a question that a replica may answer which is behind.
func recall[T any](ctx context.Context, b *Bus, op Op, look func(behind int) T) (T, error) {
	return await(ctx, b, op, func(end chan<- answered[T]) *request {
		answer := func(behind int) func() {
			v := look(behind)
			return func() { end <- answered[T]{v: v} }
		}
		return &request{op: op, arrive: func(int) func() { return answer(0) }, recall: answer}
	})
}

// await submits a request that tells of its end by a channel, and waits for that.
func await[T any](ctx context.Context, b *Bus, op Op, build func(chan<- answered[T]) *request) (T, error) {
	end := newEnd[T]()
	r := build(end)
	r.stopped = func() { end <- answered[T]{err: model.ErrStopped} }
	if bound[op.Label] {
		r.epoch, r.rewound = b.Epoch(), func() { end <- answered[T]{err: model.ErrRewound} }
	}
	b.submit(r)
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
