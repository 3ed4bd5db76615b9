package wire

import (
	"context"
	"time"
)

// A NATS server that cannot write to its disk does not answer store requests, and logs why. Its
// streams answer all other requests. That combination is detected: a stream that confirms its existence, and for a
// while has answered none of several attempts to store a message in it, does not store.

// silence returns how long all attempts of a request may stay unanswered until its stream is queried, and the interval of
// the queries: one timeout for the first attempt, and one for the following.
func (p *publisher) silence() time.Duration { return 2 * p.timeout }

// judgeSilence queries the streams that do not answer store requests.
func (p *publisher) judgeSilence(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	for _, r := range p.pending { // any order: each stream is asked for once
		stream := r.Stream
		if stream == "" {
			stream = r.Holder
		}
		if stream == "" || !p.isSilent(r, now) || now.Sub(p.asked[stream]) < p.silence() {
			continue
		}
		p.asked[stream] = now
		p.running.Go(func() { p.judgeStream(r, stream) }) // ends with the query, or with p.ctx
	}
}

// isSilent reports whether several attempts of a request have not been answered. p.mu is held.
func (p *publisher) isSilent(r *Request, now time.Time) bool {
	return p.pending[r.token] == r && r.state == onTheWire && r.tries > 1 && !r.silent.IsZero() && now.Sub(r.silent) >= p.silence()
}

// judgeStream checks whether a stream exists, and if so records that it does not store if a request is still
// unanswered then.
func (p *publisher) judgeStream(r *Request, stream string) {
	ctx, cancel := context.WithTimeout(p.Ctx, p.silence())
	defer cancel()
	if p.answers(ctx, stream) != nil {
		return // the server, or the stream, cannot be reached
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.isSilent(r, now) {
		p.refused = unstored{now, r.Msg.Subject + ": stream " + stream + " is there and does not store, and does not say why: see the server's log for a disk that is full or has failed"}
	}
}
