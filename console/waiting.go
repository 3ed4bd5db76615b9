package console

import (
	"context"
	"slices"
	"strings"

	"github.com/settlehq/settle/questions"
)

// listedWaiting is how many events a page lists that wait in the lane of a space, and lanePage how many are read at a time.
const listedWaiting, lanePage = 20, 100

// laneData is what the template of the lane gets. Waiting are the events that do not wait for a time: those are timers.
type laneData struct {
	Space   string
	Lane    *questions.Lane
	Head    *questions.Head
	Waiting []questions.Pending
	More    bool
	Error   string
}

// lane returns what waits in the space: what its worker says or, if the space is busy or not in memory, what its log and its lane have.
func (s *spaceView) lane(ctx context.Context, a *asked) (laneData, error) {
	d := laneData{Space: s.space, Lane: a.Lane, Error: a.LaneError}
	switch {
	case a.Lane == nil:
		return d, nil
	case a.Lane.State != questions.Awake:
		return d, s.unhandled(ctx, &d)
	}
	d.Head, d.More = a.Lane.Head, a.Lane.Next > 0
	for _, p := range a.Lane.Pending {
		if p.At.IsZero() && p.Event != "" {
			d.Waiting = append(d.Waiting, p)
		}
	}
	return d, nil
}

// unhandled fills in the events without a receipt in the log. The head is the one whose handler runs, or else the first.
func (s *spaceReader) unhandled(ctx context.Context, d *laneData) error {
	for i := range s.contents.Own {
		d.add(s.contents.Own[i].Stream, s.contents.Own[i].ID, 0)
	}
	done := s.contents.Cursor
	after := done.Floor
	if len(done.Held) > 0 {
		after = done.Held[0] - 1
	}
	for !d.More {
		page, err := s.c.cfg.Bus.ReadLane(ctx, s.space, after, lanePage)
		if err != nil {
			return err
		}
		for i := range page {
			m := &page[i]
			after = m.Seq
			if m.NotBefore == 0 && (m.Seq > done.Floor || slices.Contains(done.Held, m.Seq)) {
				d.add(m.Stream, m.ID, m.Seq)
			}
		}
		if len(page) < lanePage {
			break
		}
	}
	if len(d.Waiting) == 0 {
		return nil
	}
	at := max(0, slices.IndexFunc(d.Waiting, func(p questions.Pending) bool {
		return strings.Contains(d.Lane.Note, "event "+p.Event+" of stream "+p.Stream+" ")
	}))
	d.Head = &questions.Head{Stream: d.Waiting[at].Stream, Event: d.Waiting[at].Event, Cause: "queued", Reason: plainReason(d.Lane.Note)}
	if d.Lane.State == questions.Running {
		d.Head.Cause = "running"
	}
	d.Waiting[at].Reason = "it is next"
	return nil
}

// add adds an event, if there is room for it in the list.
func (d *laneData) add(stream, event string, seq uint64) {
	if len(d.Waiting) == listedWaiting {
		d.More = true
		return
	}
	d.Waiting = append(d.Waiting, questions.Pending{Stream: stream, Event: event, Lane: seq, Reason: "it waits for its turn", Ahead: len(d.Waiting)})
}
