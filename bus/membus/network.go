package membus

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Network decides how long each message between a client and its server takes, and which messages are lost. A
// client that is connected through one (Server.Dial) has many requests in flight, and any may overtake any
// other; its subscriptions arrive late, but in order.
//
// Its methods are called from many goroutines. Request and Step may end the client (Bus.Kill), which cancels
// what was about to happen at the client.
type Network interface {
	// Request is called for every try of every request when it leaves, and returns its fate.
	Request(Op) Trip
	// Delivery returns how long a delivery to a follower takes, counted from when it could leave, or Lost. A
	// lost message that a stream stores still arrives, and before its successors: the client notices the loss
	// by the next delivery, or when the idle consumer reports its position, and follows again from its last
	// sequence.
	Delivery(Delivery) time.Duration
	// Waking returns how long after Bus.Wake a held-back operation happens.
	Waking(Op) time.Duration
	// Step is called after each step.
	Step(Step)
}

// A Doubler is a Network that duplicates deliveries. The client receives a duplicate of a message that no
// stream stores. It recognizes a duplicate of a stored message by its sequence, and follows again.
type Doubler interface{ Doubled(Delivery) bool }

// quiet is the interval at which an idle consumer reports its position.
const quiet = 2 * time.Second

// Lost is the duration of a message that never arrives.
const Lost time.Duration = -1

// Trip is the fate of one try of a request.
type Trip struct {
	// There is how long the request takes, Back how long its answer takes.
	There, Back time.Duration
	// Copy is how long a second copy of the request takes, 0 for no copy. The answer to the copy is dropped.
	Copy time.Duration
	// Patience is how long the client waits before it retries. Earlier tries stay in flight, and the first
	// answer counts.
	Patience time.Duration
	// Behind makes a lagging replica answer a query: one that lacks the last Behind messages of its stream.
	Behind int
}

// Delivery is a message in transit to a follower.
type Delivery struct {
	// Op names the follower and what it follows. Its label is follow-space, follow-log, follow-lane,
	// follow-members, follow-leases, follow-rolls, follow-records or follow-answer, and its Try counts how
	// often the client has followed again because of a lost or duplicated delivery.
	Op
	// Seq is the sequence of the message in its stream; messages that no stream stores are counted from 1.
	Seq uint64
}

// Moment is a kind of Step.
type Moment int

const (
	// Leaves: a try of a request leaves the client.
	Leaves Moment = iota
	// Arrives: the try has reached the server, which has executed it.
	Arrives
	// Answered: the client has received its answer and acted on it.
	Answered
	// Delivered: a follower has received a message.
	Delivered
)

// Step is one event between a client and its server.
type Step struct {
	Moment Moment
	Op
	// Trip is the fate of a try that leaves.
	Trip Trip
	// Append, Event and Doc are what an arriving request stores, if it does.
	Append *model.Append
	Event  *model.Message
	Doc    *model.StateDoc
	// Seq and Err are the server's answer; for a delivery, Seq is its own.
	Seq uint64
	Err error
}

// countKey is what requests are numbered by, see Op.Nth.
type countKey struct{ label, space, key string }

type counted struct {
	n    uint64
	last time.Time // time of the last query
}

// count numbers a request among those with its countKey. b.mu is held.
func (cl *client) count(op *Op) {
	k := countKey{op.Label, op.Space, op.Key}
	c := cl.counts[k]
	c.n++
	cl.counts[k] = c
	op.Nth = c.n
}

// countQuestion is count for a query. If several clients send the same query in one instant, their order is
// undefined, so they count as one. b.mu is held.
func (cl *client) countQuestion(op *Op) {
	k := countKey{op.Label, op.Space, op.Key}
	c := cl.counts[k]
	if now := time.Now(); c.n == 0 || !c.last.Equal(now) {
		c = counted{c.n + 1, now}
		cl.counts[k] = c
	}
	op.Nth = c.n
}

// report reports a step, if a network is attached.
func (cl *client) report(s Step) {
	if cl.net != nil {
		cl.net.Step(s)
	}
}
