package questions

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

// maxUnserved is how many events are counted that wait in a space without a program.
const maxUnserved = 100

// unserved fills in what waits in a space that runs no program.
func (s *Server) unserved(ctx context.Context, a *About, head uint64) error {
	var done model.Cursor
	if head > 0 {
		c, err := history.ReadContents(ctx, s.bus, a.Space)
		if err != nil {
			return err
		}
		done = c.Cursor
	}
	after := done.Floor
	if len(done.Held) > 0 {
		after = done.Held[0] - 1
	}
	page, err := s.bus.ReadLane(ctx, a.Space, after, maxUnserved)
	if err != nil {
		return err
	}
	a.more = len(page) == maxUnserved
	a.waits = slices.DeleteFunc(page, func(m model.Message) bool { return m.Seq <= done.Floor && !slices.Contains(done.Held, m.Seq) })
	if head == 0 && len(a.waits) == 0 {
		return &model.ServiceError{Code: model.CodeNotFound, Text: "there is no space " + a.Space + ": nothing was ever handled there, and no program serves a space of this name"}
	}
	a.State, a.Note, a.Revision = Unserved, "no program serves it, and nothing waits", head
	if n := len(a.waits); n > 0 {
		count := display.Count(n, "event")
		if a.more {
			count += " or more"
		}
		first := &a.waits[0]
		a.Note = fmt.Sprintf("no program serves it: %s waiting since %s, the first is %s of stream %s. They are handled once the Programs of the workers (settle.Config, settle.WorkerConfig) return a program for it, or a rule assigns one (`settle deploy --space`). Until then they have no effect: if the name is wrong, send them to the right space",
			count, first.Stored.UTC().Format("2006-01-02T15:04:05Z"), first.ID, first.Stream)
	}
	return nil
}

// unservedLane lists what waits in a space that runs no program.
func (a *About) unservedLane(q *Query) *Lane {
	out := &Lane{About: *a, Queued: len(a.waits), Unread: a.more}
	from := min(q.After, len(a.waits))
	to := min(from+q.Limit, len(a.waits))
	for i := range a.waits[from:to] {
		m := &a.waits[from+i]
		out.Pending = append(out.Pending, Pending{Stream: m.Stream, Event: m.ID, Lane: m.Seq, Reason: "for a program of the space", Ahead: from + i})
	}
	if to < len(a.waits) {
		out.Next = to
	}
	return out
}
