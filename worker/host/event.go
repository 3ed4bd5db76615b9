package host

import (
	"time"

	"github.com/settlehq/settle/model"
)

// performer is a core whose space has work done outside. Workers report its end as an event with an id that they mint.
type performer interface {
	// Performs reports whether a stream is one on which the end of such work is reported.
	Performs(stream string) bool
}

// eventOf returns the event in a lane message, or a refused one if its principal may not send it. The rules of the moment decide,
// and the log has what was decided.
func (h *host) eventOf(m *model.Message) model.Event {
	ev := eventOf(m, h.env.horizon)
	if !model.IsChosen(ev.ID) {
		return ev
	}
	if ev.Invalid != "" {
		h.env.counters.byContent.Add(1)
		return ev
	}
	may := h.env.cfg.Access.MaySend
	if p, is := h.core.(performer); is && p.Performs(ev.Stream) {
		may = h.env.cfg.Access.MayReport
	}
	if err := may(ev.By(), ev.Space, ev.Stream); err != nil {
		ev.Invalid = err.Error()
		h.env.counters.byRule.Add(1)
		h.env.counters.denied.note(m, ev.Invalid, h.env.cfg.Now())
	}
	return ev
}

// refusal returns why no rule allows an event, nil if one does.
func (c *Config) refusal(m *model.Message) error {
	if !model.IsChosen(m.ID) {
		return nil
	}
	return c.Access.MaySend(m.By(), m.Space, m.Stream)
}

// refuses reports whether no rule allows an event.
func (c *Config) refuses(m *model.Message) bool { return c.refusal(m) != nil }

// eventOf returns the event in a lane message. It depends only on the message and the deployment's horizon,
// so every owner gets the same result.
func eventOf(m *model.Message, horizon time.Duration) model.Event {
	ev := model.Event{
		Space: m.Space, Stream: m.Stream, ID: m.ID,
		Lane: m.Seq, Position: m.Position, Term: m.Term, PrevTerm: m.PrevTerm, ReplayKey: m.ReplayKey, Depth: m.Depth, NotBefore: m.NotBefore, Expires: m.Expires, Trace: m.Trace,
	}
	if _, minted := model.OriginOf(m.ID); minted != (m.Position > 0) {
		ev.Invalid = "the event id and the position header do not belong together"
		ev.Position, ev.Term, ev.PrevTerm, ev.ReplayKey = 0, 0, 0, 0 // otherwise it would wait for a predecessor that will not arrive
		return ev
	}
	if m.Invalid != "" {
		ev.Invalid = m.Invalid // a tombstone, which only occupies its position
		return ev
	}
	if m.NotBefore < 0 {
		ev.Invalid = "the time before which it must not be handled is invalid; use milliseconds since 1970"
		return ev
	}
	if m.Expires < 0 {
		ev.Invalid = "the time after which it must not be handled is invalid; use milliseconds since 1970"
		return ev
	}
	if err := model.CheckEventAge(m.ID, m.Stored, horizon); err != nil {
		ev.Invalid = err.Error()
		return ev
	}
	ev.ReadPayload(m.Payload)
	return ev
}
