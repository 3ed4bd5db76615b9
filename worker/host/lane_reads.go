package host

import (
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// laneReads are a host's reads of the lane and of the log. Their results arrive through its loop.
type laneReads struct {
	refilling bool // events that were left in the stream are being read
	dry       int  // number of successive empty reads
	recalling bool // the events handled under reused positions are being read
}

// refill reads up to page lane events that were left in the stream, and passes them to offer. One read runs
// at a time. A read from a lagging replica, or one that fails, is retried at growing intervals.
func (r *laneReads) refill(l *loop, after uint64, page int, offer func([]model.Message)) {
	r.refilling = true
	wait := pause.Backoff(r.dry)
	l.beside(func() { // ends with the read
		_ = pause.For(l.ctx, wait)
		events, err := l.bus.ReadLane(l.ctx, l.space, after, page)
		l.call(func() {
			r.refilling = false
			if r.dry++; len(events) > 0 {
				r.dry = 0
			}
			if err != nil {
				l.report("read lane", err)
				return
			}
			offer(events)
		})
	})
}

// recallingCore has the positions that an origin has reused.
type recallingCore interface {
	Seq() uint64
	Reissued() (model.Reissued, bool)
	Recall(of model.Reissued, handled []model.Receipt)
}

// recall reads the events that the space has handled under positions that their origin has reused, if the core
// requests it: the events of that origin wait, and no others.
func (r *laneReads) recall(l *loop, core recallingCore) {
	of, asked := core.Reissued()
	if !asked || r.recalling {
		return
	}
	r.recalling = true
	upTo := core.Seq()
	l.beside(func() { // ends with the read
		handled, err := history.Recall(l.ctx, l.bus, l.space, of, upTo)
		if err != nil {
			_ = pause.For(l.ctx, askPause)
		}
		l.call(func() {
			r.recalling = false
			if err != nil {
				l.report("read what was handled before positions were given out again", err)
				return // it is requested again
			}
			l.cfg.Logger.Error("a space has gone back to an earlier state: positions of what it sends are given out again. "+
				"What it sends now is handled; what its lost commits had sent stays handled, and is not handled once more",
				"space", of.Origin, "target", l.space, "first", of.First, "last", of.Last, "handled_before", len(handled))
			core.Recall(of, handled)
		})
	})
}
