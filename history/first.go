package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// FirstOpen returns the event that a space handles next according to its log and lane; nil if no event is
// queued. Events that wait for a time do not count.
func FirstOpen(ctx context.Context, bus port.Client, space string) (*model.Event, error) {
	c, err := ReadContents(ctx, bus, space)
	if err != nil {
		return nil, err
	}
	after := c.Cursor.Floor
	if len(c.Cursor.Held) > 0 {
		after = c.Cursor.Held[0] - 1
	}
	for {
		page, err := bus.ReadLane(ctx, space, after, readPage)
		if err != nil {
			return nil, fmt.Errorf("read the lane of space %s: %w", space, err)
		}
		for i := range page {
			m := &page[i]
			after = m.Seq
			if m.Seq <= c.Cursor.Floor && !slices.Contains(c.Cursor.Held, m.Seq) {
				continue
			}
			ev := model.Event{Space: space, Stream: m.Stream, ID: m.ID, Lane: m.Seq, Position: m.Position}
			if origin := ev.Origin(); origin != "" {
				in := c.Inbound[origin]
				if v := in.Judge(m.Position, m.Term, m.PrevTerm); v == model.Early || v == model.Repetition {
					continue // a repetition, or it waits for its predecessor
				}
			}
			if len(c.Own) > 0 && c.Own[0].Behind < m.Seq {
				return &c.Own[0], nil
			}
			return &ev, nil
		}
		if len(page) < readPage {
			break
		}
	}
	if len(c.Own) > 0 {
		return &c.Own[0], nil
	}
	return nil, nil
}
