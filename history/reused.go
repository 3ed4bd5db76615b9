package history

import (
	"context"
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// CheckReuse compares an event that the lane has refused as a duplicate with the one that is there, which was stored under
// its id before. The error is a *model.ReusedIDError if that has another payload. An event that has left the lane since is
// not compared (docs/adr/0075).
func CheckReuse(ctx context.Context, bus port.LaneReader, m *model.Message) error {
	was, there, err := bus.FindEvent(ctx, m.Space, m.Stream, m.ID)
	switch {
	case err != nil:
		return fmt.Errorf("an event of this id was sent before; compare its payload: %w", err)
	case there && !model.SamePayload(&was, m):
		return &model.ReusedIDError{Space: m.Space, Stream: m.Stream, ID: m.ID}
	}
	return nil
}
