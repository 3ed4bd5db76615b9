package history

import (
	"context"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// passed reports whether an event that is not in its lane was there before: lanes forget events that were
// handled longer ago than the horizon. The checkpoint of the target has the position up to which it has
// handled the sends of the sender's space, in its mark or a piece of it; it is read only if the commit that sent the
// event is old enough. A notice has no position, and counts as delivered after that time.
func passed(ctx context.Context, bus port.Client, r EventRef, origin string, position uint64, sent time.Time) (bool, error) {
	if sent.IsZero() || time.Since(sent) <= bus.Horizon() {
		return false, nil
	}
	if position == 0 {
		return true, nil
	}
	st, err := bus.LoadPart(ctx, r.Space, model.StateKeyOfPiece(model.PieceOf(origin)))
	if err != nil || st.Mark.Data == nil {
		return false, err
	}
	handled, err := replica.Handled(st, origin)
	return handled >= position, err
}
