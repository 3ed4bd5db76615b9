package membus

import (
	"time"

	"github.com/settlehq/settle/model"
)

// Network decides how long everything takes that travels between a client and its
// server, and what is lost. A client that is connected through one (Server.Dial) has
// many requests under way at a time, of which any may overtake any other; what it
// follows arrives late, but in order.
//
// Its methods are called from many goroutines. Request and Step may end the client
// (Bus.Kill): what was about to happen at the client then does not.
type Network interface {
	// Request is asked about every try of every request when it leaves.
	Request(Op) Trip
	// Delivery returns how long something that a client follows takes to reach it, counted
	// from when it could leave, or Lost. What a stream keeps comes all the same, after what
	// was before it: the client follows again from where it was. It notices the loss by the next
	// delivery, or else by what its consumer says of itself when it is quiet.
	Delivery(Delivery) time.Duration
	// Waking returns how long after Bus.Wake something happens that was held back.
	Waking(Op) time.Duration
	// Step is called with what has just happened.
	Step(Step)
}

// A Doubler is a Network that has deliveries come twice. What no stream keeps is delivered again; of
// what a stream keeps the client sees by its number that it is not the next, and follows again.
type Doubler interface{ Doubled(Delivery) bool }

// quiet is how long the consumer of a client takes to say up to where it has delivered.
const quiet = 2 * time.Second

// Lost is the duration of a journey that has no end.
const Lost time.Duration = -1

// Trip is what becomes of one try of a request.
type Trip struct {
	// There is how long the request takes, Back its answer.
	There, Back time.Duration
	// Copy is how long a second copy of the request takes, 0 if there is none. Its
	// answer is dropped.
	Copy time.Duration
	// Patience is how long the client waits before it sends the request again. Tries
	// that are still under way stay so, and the first answer counts.
	Patience time.Duration
	// Behind makes a question be answered by a replica that has not got the last so
	// many messages of its stream.
	Behind int
}

// Delivery is one thing on its way to a follower.
type Delivery struct {
	// Op names the follower and what it follows. Its label is follow-space, follow-log, follow-lane,
	// follow-members, follow-leases, follow-rolls, follow-records or follow-answer, and its
	// Try counts how often the client has begun again because of a delivery that was lost or
	// came twice.
	Op
	// Seq is what it has in its stream; without one, they are counted from 1.
	Seq uint64
}

// Moment is a kind of Step.
type Moment int

const (
	// Leaves: a try of a request leaves the client.
	Leaves Moment = iota
	// Arrives: it has reached the server, which has executed it.
	Arrives
	// Answered: the client has its answer, and has acted on it.
	Answered
	// Delivered: a follower has received something.
	Delivered
)

// Step is something that has happened between a client and its server.
type Step struct {
	Moment Moment
	Op
	// Trip is what becomes of what leaves.
	Trip Trip
	// Append, Event and Doc are what has arrived, if it was to be stored.
	Append *model.Append
	Event  *model.Message
	Doc    *model.StateDoc
	// Seq and Err are what the server has said to that; of a delivery, Seq is its own.
	Seq uint64
	Err error
}

// countKey is what requests are counted by, see Op.Nth.
type countKey struct{ label, space, key string }

type counted struct {
	n    uint64
	last time.Time // that a question was
}

// count numbers a request among those that are alike. b.mu is held.
func (cl *client) count(op *Op) {
	k := countKey{op.Label, op.Space, op.Key}
	c := cl.counts[k]
	c.n++
	cl.counts[k] = c
	op.Nth = c.n
}

// countQuestion is count for what changes nothing. If several ask the same in one instant,
// their order is not defined, and it is one question. b.mu is held.
func (cl *client) countQuestion(op *Op) {
	k := countKey{op.Label, op.Space, op.Key}
	c := cl.counts[k]
	if now := time.Now(); c.n == 0 || !c.last.Equal(now) {
		c = counted{c.n + 1, now}
		cl.counts[k] = c
	}
	op.Nth = c.n
}

// tell reports a step, if a network is attached.
func (cl *client) tell(s Step) {
	if cl.net != nil {
		cl.net.Step(s)
	}
}
