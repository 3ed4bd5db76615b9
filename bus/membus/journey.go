package membus

import (
	"context"
	"sync"
	"time"
)

// journey is a request of a client that is connected through a network: it is sent, try after try, until an
// answer arrives.
type journey struct {
	*request
	again *time.Timer
}

// launch sends a request for the first time. The caller holds b.mu; launch releases it. It returns false if
// the client has stopped.
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

// try sends the request, and again when its timeout has passed.
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
	cl.report(Step{Moment: Leaves, Op: op, Trip: trip})
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

// reach returns the effect of a try that arrives at the server, even if the client has ended since.
func (cl *client) reach(r *request, op Op, trip Trip) (answer func()) {
	switch {
	case r.store != nil:
		return r.store(op) // also reports the step
	case r.recall != nil:
		answer = r.recall(trip.Behind)
	default:
		answer = r.arrive(op.Try)
	}
	cl.report(Step{Moment: Arrives, Op: op, Trip: trip})
	return answer
}

// arrive executes a try at the server. A try is lost, as is its answer, if the store has gone back since:
// that broke every connection.
func (cl *client) arrive(j *journey, op Op, epoch uint64, trip Trip) {
	if cl.Epoch() != epoch {
		return
	}
	answer := cl.reach(j.request, op, trip)
	if trip.Back != Lost {
		time.AfterFunc(trip.Back, func() { cl.whenAwake(op, func() { cl.answer(j, op, epoch, answer) }) })
	}
}

// answer ends a journey, unless an earlier answer has, the client is cut off, or the answer is from an
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
	cl.report(Step{Moment: Answered, Op: op})
}

// post sends a message that has no answer, and is therefore sent once.
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
		cl.report(Step{Moment: Leaves, Op: op, Trip: trip})
		for _, d := range []time.Duration{trip.There, trip.Copy} {
			if d > 0 {
				time.AfterFunc(d, func() {
					arrive()
					cl.report(Step{Moment: Arrives, Op: op, Trip: trip})
				})
			}
		}
	})
}

// isMute reports whether no message can leave the client.
func (cl *client) isMute() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.closed || cl.down || cl.cutOut
}

// runJourneys waits for the end of the client, and then ends all unanswered requests.
func (cl *client) runJourneys() {
	defer close(cl.ended)
	<-cl.stopped
	cl.mu.Lock()
	waiting := cl.journeys
	cl.journeys, cl.held = map[*request]*journey{}, nil
	cl.mu.Unlock()
	cl.calling.Lock() // not while a callback is running
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
	journeys map[*request]*journey // in flight
	counts   map[countKey]counted
	cutOut   bool // outgoing messages are lost
	cutIn    bool // incoming messages are lost
	asleep   bool // see Pause
	frozen   []frozen
	woken    signal
	opened   int        // number of answers that were listened to
	calling  sync.Mutex // held during callbacks
}

// publish submits a message that is not acknowledged, and is sent at most once.
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
