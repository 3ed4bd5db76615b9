package questions

import (
	"context"
	"time"

	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/worker"
)

// lane answers what waits in a space.
func (s *Server) lane(ctx context.Context, q *Query) (*Lane, error) {
	if q.Stream != "" {
		return &Lane{About: About{Space: q.Space, Worker: s.host.ID(), At: time.Now().UTC()}, Internal: s.host.IsInternal(q.Space, q.Stream)}, nil
	}
	about, i, err := s.see(ctx, q, worker.InspectOptions{})
	if err == nil && about.State == Unserved {
		return about.unservedLane(q), nil
	}
	if err != nil || i == nil {
		return &Lane{About: about}, err
	}
	l := i.Lane()
	pending := l.Pending()
	out := &Lane{
		About: about, Head: headOf(i), Queued: len(l.Queue), Uncommitted: len(l.Undecided), Early: len(l.Early), FollowUps: len(l.FollowUps),
		Unread: l.Unread,
	}
	for k := range pending {
		if pending[k].Reason == inspect.ForItsTime {
			out.Timers++
		}
	}
	from := min(q.After, len(pending))
	to := min(from+q.Limit, len(pending))
	early := origins(l)
	for _, p := range pending[from:to] {
		e := Pending{Stream: p.Stream, Event: p.ID, Lane: p.Lane, Reason: p.Reason.String(), Ahead: p.Ahead, Timer: p.Timer, At: timeOf(p.At)}
		if p.Reason == inspect.BeforeItsTurn {
			e.Origin, e.Position = early[p.Lane].Origin, early[p.Lane].Position
		}
		out.Pending = append(out.Pending, e)
	}
	if to < len(pending) {
		out.Next = to
	}
	return out, nil
}

// origin is where an event has come from, and its number among those from there.
type origin struct {
	Origin   string
	Position uint64
}

// origins returns those of the early events, by their sequence in the lane.
func origins(l *inspect.Lane) map[uint64]origin {
	out := map[uint64]origin{}
	for _, e := range l.Early {
		out[e.Lane] = origin{e.Origin, e.Position}
	}
	return out
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// headOf describes the event at the head of the lane; nil if there is none.
func headOf(i *worker.Inspected) *Head {
	p, waits := i.Parked()
	if !waits {
		return nil
	}
	at := func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return i.Time(d).UTC()
	}
	h := &Head{
		Stream: p.Stream, Event: p.Event, Attempts: p.Attempts, Most: p.Most, Lost: p.Lost, MostLost: p.MostLost,
		Until: at(p.Until), Fails: at(p.Fails), Documents: bounded(p.Docs), Nodes: bounded(p.Needs),
		LastError: clip(p.Reason),
	}
	h.Cause, h.Reason = p.Cause(func(d time.Duration) string { return at(d).Format(time.RFC3339) })
	h.Reason = clip(h.Reason)
	return h
}
