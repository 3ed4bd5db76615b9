package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/settlehq/settle/model"
)

// release is one event to be put into a lane.
type release struct {
	t   *tail
	m   model.Message
	p   *progress
	seq uint64 // of the commit that contains it
	// from is the space of that commit.
	from string
	// count processes the result when the event is in its lane.
	count func(model.SendResult)
	end   func(error) // of its span
	waits bool        // for room in its lane
}

// send releases one event. It blocks until the window has room, not until the answer.
func (t *tail) send(ctx context.Context, p *progress, e model.LogEntry, s *model.Send) {
	if !t.enter(ctx) {
		return
	}
	trace, end := t.span(&e, s)
	m := model.Message{
		Space: s.To, Stream: s.Stream, ID: s.ID, Position: s.Position, Term: s.Term, PrevTerm: s.PrevTerm, ReplayKey: s.ReplayKey,
		Depth: s.Depth, NotBefore: s.NotBefore, Expires: s.Expires, Trace: trace,
	}
	if !s.Payload.IsAbsent() {
		m.Payload = s.Payload.AppendJSON(nil)
	}
	r := &release{t: t, m: m, p: p, seq: e.Seq, from: e.Space, count: t.c.countRelease, end: end}
	r.begin()
}

// enter waits for a place in the window. It returns false if the tail is shutting down.
func (t *tail) enter(ctx context.Context) bool {
	select {
	case t.window <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Coordinator) countRelease(r model.SendResult) {
	if r.Duplicate {
		c.repeated.Add(1) // before released, so that a reader of the counts never sees more released than counted here
	}
	c.released.Add(1)
}

func (r *release) begin() {
	r.p.begin(r.seq)
	r.attempt()
}

// attempt sends the event until its lane has it.
func (r *release) attempt() {
	if err := r.t.c.ctx.Err(); err != nil {
		r.end(err)
		return
	}
	r.p.bus.Send(r.m, r.answered)
}

// fullPause is the pause before an event is sent again to a full lane.
const fullPause = 100 * time.Millisecond

// answered processes the answer to an attempt. A full lane is not a refusal: the event waits for room, as
// with any sender, and the log waits for the window. The event is committed and cannot be undone.
func (r *release) answered(res model.SendResult, err error) {
	switch {
	case r.t.c.ctx.Err() != nil || errors.Is(err, model.ErrStopped) || errors.Is(err, model.ErrRewound):
		r.end(err)
		r.t.c.full.leave(r)
		<-r.t.window // unknown, or gone with its commit: the position stays before it
	case errors.Is(err, model.ErrLaneFull):
		r.t.c.full.refuse(r, err)
		time.AfterFunc(fullPause, r.attempt)
	case errors.Is(err, model.ErrForbidden):
		r.t.c.faults.Error("release an event: the user of a coordinator needs that role", "", "error", err)
		time.AfterFunc(maxPause, r.attempt)
	case err != nil:
		r.t.c.full.leave(r)
		r.refused(err)
	default:
		r.count(res)
		r.t.put(&r.m)
		r.leave(nil)
	}
}

// leave ends the release.
func (r *release) leave(err error) {
	r.end(err)
	r.t.c.full.leave(r)
	<-r.t.window
	r.p.end(r.seq)
}

// refused replaces an event that no lane will ever accept by a tombstone, so that its position leaves no gap,
// for which its target would wait forever. The target refuses the tombstone, and the origin is notified as of
// any refusal.
func (r *release) refused(err error) {
	log := r.t.c.cfg.Logger
	what := []any{"from", r.from, "sequence", r.seq, "to", r.m.Space, "stream", r.m.Stream, "event", r.m.ID, "error", err}
	switch {
	case r.m.Position == 0:
		log.Error("a failure notice cannot be delivered", what...)
		r.leave(err)
	case model.CheckName("space", r.m.Space) != nil:
		log.Error("release refused: the space name is invalid", what...)
		n := &model.Notice{Event: r.m.ID, To: r.m.Space, Stream: r.m.Stream, Outcome: model.Refused, Reason: err.Error(), Depth: r.m.Depth}
		if len(r.m.Payload) <= model.MaxReturned {
			n.Payload, _ = model.ParseValue(r.m.Payload) // a payload that is not JSON is not returned
		}
		r.m = n.Message(r.from, r.m.Trace)
		r.count = r.t.c.countNotice
		r.attempt()
	case r.m.Invalid != "":
		r.t.c.faults.Error("not even a tombstone can be released; its target waits for it", r.m.ID, what...)
		time.AfterFunc(maxPause, r.attempt)
	default:
		log.Warn("release refused; a tombstone takes its place", what...)
		r.m = r.m.Tombstone("it could not be released: " + err.Error())
		r.attempt()
	}
}
