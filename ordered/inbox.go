package ordered

import (
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// takeIn passes what has come to the lane, as far as that has room.
func (h *host) takeIn() {
	lane := h.core.Lane()
	h.mu.Lock()
	n := min(len(h.inbox), lane.Room())
	events, left := h.inbox[:n], uint64(0)
	if h.inbox = h.inbox[n:]; len(h.inbox) == 0 {
		h.inbox, left, h.left, h.bytes = nil, h.left, 0, 0
	}
	h.mu.Unlock()
	for i := range events {
		lane.Offer(h.event(&events[i]))
		h.offered, h.busy = max(h.offered, events[i].Seq), time.Now()
	}
	if left > 0 {
		lane.LeftInStream(left)
		h.offered = max(h.offered, left)
	}
}

// refill reads again what was left in the stream, once there is room. A reader that sees
// nothing is behind, or the store has failed; it asks ever more rarely.
func (h *host) refill() {
	after, ok := h.core.Lane().Refill()
	if !ok || h.p.draining() || time.Now().Before(h.refillAt) {
		return
	}
	events, err := h.p.bus.ReadLane(h.p.ctx, h.key, after, readPage)
	if err != nil && h.p.ctx.Err() == nil {
		h.p.s.cfg.faults.Warn("read the lane of a key", h.key, "key", h.key, "server", h.p.s.cfg.id, "error", err)
	}
	if h.dry++; len(events) > 0 {
		h.dry = 0
	}
	h.refillAt = time.Now().Add(pause.Backoff(h.dry))
	for i := range events {
		h.offered = max(h.offered, events[i].Seq)
		if !h.core.Lane().Offer(h.event(&events[i])) {
			break
		}
	}
}

// event is the event that a lane message carries, by the same rules as a worker's.
func (h *host) event(m *model.Message) model.Event {
	ev := model.Event{Space: m.Space, Stream: m.Stream, ID: m.ID, Lane: m.Seq, Position: m.Position, Term: m.Term, PrevTerm: m.PrevTerm, ReplayKey: m.ReplayKey, Depth: m.Depth, NotBefore: m.NotBefore, Expires: m.Expires, Trace: m.Trace}
	if _, minted := model.OriginOf(m.ID); minted != (m.Position > 0) {
		ev.Invalid = "the event id and the position header do not belong together"
		ev.Position, ev.Term, ev.PrevTerm, ev.ReplayKey = 0, 0, 0, 0 // or it would wait for a predecessor that nobody sends
		return ev
	}
	if ev.Invalid = m.Invalid; ev.Invalid != "" {
		return ev // a tombstone: it is there for its position
	}
	if m.NotBefore < 0 {
		ev.Invalid = "what it says of the time before which it is not to be handled is no time; use milliseconds since 1970"
		return ev
	}
	if m.Expires < 0 {
		ev.Invalid = "what it says of the time after which it is not to be handled is no time; use milliseconds since 1970"
		return ev
	}
	if err := model.CheckEventAge(m.ID, m.Stored, h.p.bus.Horizon()); err != nil {
		ev.Invalid = err.Error()
		return ev
	}
	if len(m.Payload) == 0 {
		return ev
	}
	var err error
	if ev.Payload, err = model.ParseValue(m.Payload); err != nil {
		ev.Invalid = "the payload is not JSON: " + err.Error()
	}
	return ev
}
