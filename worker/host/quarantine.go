package host

import (
	"errors"
	"time"

	"github.com/settlehq/settle/model"
)

// recordUnreadable saves a record of the commit that an error is about, for operators: see model.Quarantined. A record that is
// there already stays: it may hold a decision.
func (h *host) recordUnreadable(err error) {
	e, is := errors.AsType[*model.UnreadableError](err)
	if !is || e.Item != "" {
		return
	}
	q := &model.Quarantined{
		Version: model.QuarantineVersion, Seq: e.Seq, Sum: e.Sum, Reason: e.Error(), By: "worker/" + h.env.cfg.ID, Since: time.Now().UTC(),
	}
	data, err := q.Encode()
	if err != nil {
		h.env.cfg.faults.Warn("record a commit in quarantine", h.space, "space", h.space, "error", err)
		return
	}
	ctx, item := h.env.ctx, model.StateDoc{Doc: model.StateKeyOfQuarantine(e.Seq), Seq: 1, Data: data}
	h.env.tasks.Go(func() { // ends with ctx
		err := h.env.bus.SaveState(ctx, h.space, []model.StateDoc{item}, nil)
		if err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrOutdated) && !errors.Is(err, model.ErrRewound) && !errors.Is(err, model.ErrStopped) {
			h.env.cfg.faults.Warn("record a commit in quarantine", h.space, "space", h.space, "error", err)
		}
	})
}
