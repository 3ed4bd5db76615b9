package console

import (
	"context"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
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

// unhandled fills in the events without a receipt in the log.
func (s *spaceReader) unhandled(ctx context.Context, d *laneData) error {
	done := s.contents.Cursor
	after := done.Floor
	if len(done.Held) > 0 {
		after = done.Held[0] - 1
	}
	var lane []questions.Pending
	for len(lane) <= listedWaiting {
		page, err := s.c.cfg.Bus.ReadLane(ctx, s.space, after, lanePage)
		if err != nil {
			return err
		}
		for i := range page {
			m := &page[i]
			after = m.Seq
			if m.NotBefore == 0 && (m.Seq > done.Floor || slices.Contains(done.Held, m.Seq)) {
				lane = append(lane, questions.Pending{Stream: m.Stream, Event: m.ID, Lane: m.Seq})
			}
		}
		if len(page) < lanePage {
			break
		}
	}
	d.queue(lane, s.contents.Own)
	return nil
}

// queue fills in events in the order of their turns: those of the lane, and those that the space has sent to itself. The head is the one that the
// worker says it is at, or else the first.
func (d *laneData) queue(lane []questions.Pending, own []model.Event) {
	all := lane
	for i := range own {
		at := slices.IndexFunc(all, func(p questions.Pending) bool { return p.Lane > own[i].Behind })
		if at < 0 {
			at = len(all)
		}
		all = slices.Insert(all, at, questions.Pending{Stream: own[i].Stream, Event: own[i].ID})
	}
	if len(all) == 0 {
		return
	}
	at := max(0, slices.IndexFunc(all, func(p questions.Pending) bool {
		return strings.Contains(d.Lane.Note, "event "+p.Event+" of stream "+p.Stream+" ")
	}))
	d.Head = &questions.Head{Stream: all[at].Stream, Event: all[at].Event, Cause: "queued", Reason: plainReason(d.Lane.Note)}
	if d.Lane.State == questions.Running {
		d.Head.Cause = "running"
	}
	for i := range all {
		all[i].Reason = "it waits for its turn"
	}
	all[at].Reason = "it is next"
	d.More, d.Waiting = len(all) > listedWaiting, all[:min(len(all), listedWaiting)]
}
