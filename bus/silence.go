package bus

import (
	"context"
	"time"
)

// A NATS server that cannot write to its disk does not answer what it was to store, and logs why. Its
// streams answer all other questions. So that is looked at: a stream that says that it is there, and for a
// while has answered none of several attempts to store a message in it, does not store.

// silence is how long no attempt of a request may be answered until its stream is asked for, and how often
// that is done: the first attempt has its time, and those that follow have as much.
func (p *publisher) silence() time.Duration { return 2 * p.timeout }

// judgeSilence asks for the streams that do not answer what is to be stored in them.
func (p *publisher) judgeSilence(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	for _, r := range p.pending { // any order: each stream is asked for once
		stream := r.stream
		if stream == "" {
			stream = r.holder
		}
		if stream == "" || !p.isSilent(r, now) || now.Sub(p.asked[stream]) < p.silence() {
			continue
		}
		p.asked[stream] = now
		p.running.Go(func() { p.judgeStream(r, stream) }) // ends with the question, or with p.ctx
	}
}

// isSilent reports whether several attempts of a request have not been answered. p.mu is held.
func (p *publisher) isSilent(r *request, now time.Time) bool {
	return p.pending[r.token] == r && r.state == onTheWire && r.tries > 1 && !r.silent.IsZero() && now.Sub(r.silent) >= p.silence()
}

// judgeStream finds out whether a stream is there, and notes that it does not store if a request is still
// without an answer then.
func (p *publisher) judgeStream(r *request, stream string) {
	ctx, cancel := context.WithTimeout(p.ctx, p.silence())
	defer cancel()
	if p.answers(ctx, stream) != nil {
		return // the server, or the stream, is out of reach
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.isSilent(r, now) {
		p.refused = unstored{now, r.msg.Subject + ": stream " + stream + " is there and does not store, and does not say why: see the server's log for a disk that is full or has failed"}
	}
}

// answersFor asks once for a stream.
func (b *Bus) answersFor(ctx context.Context, stream string) error {
	_, err := b.js.Stream(ctx, stream)
	return err
}
