package membus

import "time"

// journey is a request of a client that is connected through a network: one try of it
// after the other is sent, until an answer comes through.
type journey struct {
	*request
	again *time.Timer
}

// launch sends a request for the first time. b.mu is held, and is not on return. It
// reports false if the client has stopped.
func (b *Bus) launch(r *request) bool {
	if b.closed {
		b.mu.Unlock()
		return false
	}
	j := &journey{request: r}
	if r.recall != nil {
		b.countQuestion(&r.op)
	} else {
		b.count(&r.op)
	}
	b.journeys[r] = j
	b.mu.Unlock()
	b.whenAwake(r.op, func() { b.try(j) })
	return true
}

// try sends the request once, and again when patience is at its end.
func (b *Bus) try(j *journey) {
	b.mu.Lock()
	if b.journeys[j.request] != j {
		b.mu.Unlock()
		return
	}
	if b.isOver(j.request) {
		b.mu.Unlock()
		b.answer(j, j.op, b.Epoch(), j.rewound)
		return
	}
	j.op.Try++
	op, silent, epoch := j.op, b.down || b.mute, b.Epoch()
	b.mu.Unlock()
	trip := b.net.Request(op)
	if silent {
		trip.There, trip.Copy = Lost, 0
	}
	b.tell(Step{Moment: Leaves, Op: op, Trip: trip})
	b.mu.Lock()
	if b.journeys[j.request] == j {
		next := op
		next.Try++
		j.again = time.AfterFunc(trip.Patience, func() { b.whenAwake(next, func() { b.try(j) }) })
	}
	b.mu.Unlock()
	if trip.There != Lost {
		time.AfterFunc(trip.There, func() { b.arrive(j, op, epoch, trip) })
	}
	if trip.Copy > 0 {
		time.AfterFunc(trip.Copy, func() {
			if b.Epoch() == epoch {
				b.reach(j.request, op, trip)
			}
		})
	}
}

// reach is what a try does when it comes to the server, whatever has become of the
// client meanwhile.
func (b *Bus) reach(r *request, op Op, trip Trip) (answer func()) {
	switch {
	case r.store != nil:
		return r.store(op) // and tells
	case r.recall != nil:
		answer = r.recall(trip.Behind)
	default:
		answer = r.arrive(op.Try)
	}
	b.tell(Step{Moment: Arrives, Op: op, Trip: trip})
	return answer
}

// arrive is lost, as is its answer, if the store has gone back: every connection has broken then.
func (b *Bus) arrive(j *journey, op Op, epoch uint64, trip Trip) {
	if b.Epoch() != epoch {
		return
	}
	answer := b.reach(j.request, op, trip)
	if trip.Back != Lost {
		time.AfterFunc(trip.Back, func() { b.whenAwake(op, func() { b.answer(j, op, epoch, answer) }) })
	}
}

// answer ends a journey, unless an earlier answer has, the client is cut off, or the answer is of an
// earlier epoch.
func (b *Bus) answer(j *journey, op Op, epoch uint64, answer func()) {
	b.mu.Lock()
	if b.Epoch() != epoch || b.down || b.deaf || b.journeys[j.request] != j {
		b.mu.Unlock()
		return
	}
	delete(b.journeys, j.request)
	if j.again != nil {
		j.again.Stop()
	}
	b.mu.Unlock()
	b.calling.Lock()
	answer()
	b.calling.Unlock()
	b.tell(Step{Moment: Answered, Op: op})
}

// post sends what nobody answers, and what therefore is sent once.
func (b *Bus) post(op Op, arrive func()) {
	b.mu.Lock()
	b.count(&op)
	op.Client, op.Try = b.id, 1
	b.mu.Unlock()
	b.whenAwake(op, func() {
		trip := b.net.Request(op)
		if b.isMute() {
			trip.There, trip.Copy = Lost, 0
		}
		b.tell(Step{Moment: Leaves, Op: op, Trip: trip})
		for _, d := range []time.Duration{trip.There, trip.Copy} {
			if d > 0 {
				time.AfterFunc(d, func() {
					arrive()
					b.tell(Step{Moment: Arrives, Op: op, Trip: trip})
				})
			}
		}
	})
}

// isMute reports whether nothing can leave the client.
func (b *Bus) isMute() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed || b.down || b.mute
}

// runJourneys waits for the end of the client, and ends what has no answer by then.
func (b *Bus) runJourneys() {
	defer close(b.ended)
	<-b.stopped
	b.mu.Lock()
	waiting := b.journeys
	b.journeys, b.held = map[*request]*journey{}, nil
	b.mu.Unlock()
	b.calling.Lock() // not while an answer is being acted on
	defer b.calling.Unlock()
	for r, j := range waiting { // any order: all of them
		if j.again != nil {
			j.again.Stop()
		}
		r.stopped()
	}
}
