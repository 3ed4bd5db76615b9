package membus

import (
	"context"
	"sync"
	"time"
)

// journey is a request of a client that is connected through a network: one try of it
// after the other is sent, until an answer comes through.
type journey struct {
	*request
	again *time.Timer
}

// launch sends a request for the first time. b.mu is held, and is not on return. It
// reports false if the client has stopped.
func (cl *client) launch(r *request) bool {
	if cl.closed {
		cl.mu.Unlock()
		return false
	}
	j := &journey{request: r}
	if r.recall != nil {
		cl.countQuestion(&r.op)
	} else {
		cl.count(&r.op)
	}
	cl.journeys[r] = j
	cl.mu.Unlock()
	cl.whenAwake(r.op, func() { cl.try(j) })
	return true
}

// try sends the request once, and again when patience is at its end.
func (cl *client) try(j *journey) {
	cl.mu.Lock()
	if cl.journeys[j.request] != j {
		cl.mu.Unlock()
		return
	}
	if cl.isOver(j.request) {
		cl.mu.Unlock()
		cl.answer(j, j.op, cl.Epoch(), j.rewound)
		return
	}
	j.op.Try++
	op, silent, epoch := j.op, cl.down || cl.cutOut, cl.Epoch()
	cl.mu.Unlock()
	trip := cl.net.Request(op)
	if silent {
		trip.There, trip.Copy = Lost, 0
	}
	cl.tell(Step{Moment: Leaves, Op: op, Trip: trip})
	cl.mu.Lock()
	if cl.journeys[j.request] == j {
		next := op
		next.Try++
		j.again = time.AfterFunc(trip.Patience, func() { cl.whenAwake(next, func() { cl.try(j) }) })
	}
	cl.mu.Unlock()
	if trip.There != Lost {
		time.AfterFunc(trip.There, func() { cl.arrive(j, op, epoch, trip) })
	}
	if trip.Copy > 0 {
		time.AfterFunc(trip.Copy, func() {
			if cl.Epoch() == epoch {
				cl.reach(j.request, op, trip)
			}
		})
	}
}

// reach returns what a try does when it comes to the server, whatever has become of the
// client meanwhile.
func (cl *client) reach(r *request, op Op, trip Trip) (answer func()) {
	switch {
	case r.store != nil:
		return r.store(op) // and tells
	case r.recall != nil:
		answer = r.recall(trip.Behind)
	default:
		answer = r.arrive(op.Try)
	}
	cl.tell(Step{Moment: Arrives, Op: op, Trip: trip})
	return answer
}

// arrive is lost, as is its answer, if the store has gone back: every connection has broken then.
func (cl *client) arrive(j *journey, op Op, epoch uint64, trip Trip) {
	if cl.Epoch() != epoch {
		return
	}
	answer := cl.reach(j.request, op, trip)
	if trip.Back != Lost {
		time.AfterFunc(trip.Back, func() { cl.whenAwake(op, func() { cl.answer(j, op, epoch, answer) }) })
	}
}

// answer ends a journey, unless an earlier answer has, the client is cut off, or the answer is of an
// earlier epoch.
func (cl *client) answer(j *journey, op Op, epoch uint64, answer func()) {
	cl.mu.Lock()
	if cl.Epoch() != epoch || cl.down || cl.cutIn || cl.journeys[j.request] != j {
		cl.mu.Unlock()
		return
	}
	delete(cl.journeys, j.request)
	if j.again != nil {
		j.again.Stop()
	}
	cl.mu.Unlock()
	cl.calling.Lock()
	answer()
	cl.calling.Unlock()
	cl.tell(Step{Moment: Answered, Op: op})
}

// post sends a message that is not answered, and therefore sent once.
func (cl *client) post(op Op, arrive func()) {
	cl.mu.Lock()
	cl.count(&op)
	op.Client, op.Try = cl.id, 1
	cl.mu.Unlock()
	cl.whenAwake(op, func() {
		trip := cl.net.Request(op)
		if cl.isMute() {
			trip.There, trip.Copy = Lost, 0
		}
		cl.tell(Step{Moment: Leaves, Op: op, Trip: trip})
		for _, d := range []time.Duration{trip.There, trip.Copy} {
			if d > 0 {
				time.AfterFunc(d, func() {
					arrive()
					cl.tell(Step{Moment: Arrives, Op: op, Trip: trip})
				})
			}
		}
	})
}

// isMute reports whether nothing can leave the client.
func (cl *client) isMute() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.closed || cl.down || cl.cutOut
}

// runJourneys waits for the end of the client, and ends what has no answer by then.
func (cl *client) runJourneys() {
	defer close(cl.ended)
	<-cl.stopped
	cl.mu.Lock()
	waiting := cl.journeys
	cl.journeys, cl.held = map[*request]*journey{}, nil
	cl.mu.Unlock()
	cl.calling.Lock() // not while an answer is being acted on
	defer cl.calling.Unlock()
	for r, j := range waiting { // any order: all of them
		if j.again != nil {
			j.again.Stop()
		}
		r.stopped()
	}
}

// travel is the state of a client that is connected through a network.
type travel struct {
	net      Network
	journeys map[*request]*journey // under way
	counts   map[countKey]counted
	cutOut   bool // nothing leaves
	cutIn    bool // nothing comes in
	asleep   bool // see Pause
	frozen   []frozen
	woken    signal
	opened   int        // answers that were listened to so far
	calling  sync.Mutex // held during callbacks
}

// publish submits a message that is not acknowledged: it is sent at most once,
// and its answer is that there is none.
func (cl *client) publish(op Op, arrive func()) error {
	if err := cl.err(context.Background()); err != nil {
		return err
	}
	if cl.net != nil {
		cl.post(op, arrive)
		return nil
	}
	cl.submit(&request{
		op: op,
		arrive: func(try int) func() {
			if try == 1 {
				arrive()
			}
			return func() {}
		},
		stopped: func() {},
	})
	return nil
}
