package trail

import (
	"context"
	"time"

	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/replica"
)

// passed reports whether an event that is not in its lane has been there: lanes forget
// what was handled longer ago than the horizon. The checkpoint of its space says up to
// which position it has handled what the sender's space sent; it is asked only when
// the commit that sent the event is old enough for that, as it is large. A notice has no
// position, and counts as told after that time.
func passed(ctx context.Context, bus port.Client, r Ref, origin string, position uint64, sent time.Time) (bool, error) {
	if sent.IsZero() || time.Since(sent) <= bus.Horizon() {
		return false, nil
	}
	if position == 0 {
		return true, nil
	}
	st, err := bus.LoadState(ctx, r.Space)
	if err != nil || st.Mark.Data == nil {
		return false, err
	}
	handled, err := replica.Handled(st, origin)
	return handled >= position, err
}
