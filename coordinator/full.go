package coordinator

import (
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/model"
)

// roomFor is how long a lane must have had room for all waiting releases before it counts as having room.
const roomFor = 5 * time.Second

// fullLanes tracks the lanes without room for a release. Each holds up the releases that wait for it and,
// once these fill the window, the log that they come from, even for other lanes. A full lane is logged once,
// and then at growing intervals, until releases continue.
type fullLanes struct {
	c  *Coordinator
	mu sync.Mutex
	of map[int]*fullLane // by partition
}

// fullLane is a lane that has refused a release for lack of room.
type fullLane struct {
	model.FullLane
	refused time.Time // the last time
	pace    faultlog.Pace
}

// refuse records that the lane of a release has no room for it.
func (f *fullLanes) refuse(r *release, err error) {
	now := time.Now()
	p := model.PartitionOf(r.m.Space, len(r.t.sent))
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.of[p]
	if l == nil {
		l = &fullLane{FullLane: model.FullLane{Partition: p, Space: r.m.Space, Since: now.UTC()}}
		if f.of == nil {
			f.of = map[int]*fullLane{}
		}
		f.of[p] = l
	}
	if l.refused = now; !r.waits {
		r.waits = true
		l.Waiting++
	}
	if _, due := l.pace.Due(now); due {
		f.c.cfg.Logger.Warn("a lane has no room: sends to its spaces wait, and so may later ones of the same log",
			"partition", p, "space", r.m.Space, "stream", r.m.Stream, "event", r.m.ID, "from", r.from, "since", l.Since, "waiting", l.Waiting, "error", err)
	}
}

// leave records that a release no longer waits for room: it was stored, or given up.
func (f *fullLanes) leave(r *release) {
	if !r.waits {
		return
	}
	r.waits = false
	p := model.PartitionOf(r.m.Space, len(r.t.sent))
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.of[p]; l != nil {
		if l.Waiting--; l.Waiting == 0 {
			time.AfterFunc(roomFor, func() { f.over(l) })
		}
	}
}

// over logs that a lane has room, if it has had some for a while.
func (f *fullLanes) over(l *fullLane) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[l.Partition] != l || l.Waiting > 0 || time.Since(l.refused) < roomFor || f.c.ctx.Err() != nil {
		return
	}
	delete(f.of, l.Partition)
	f.c.cfg.Logger.Info("a lane has room again: the waiting sends are released", "partition", l.Partition, "since", l.Since, "for", l.refused.Sub(l.Since))
}

// now returns the lanes that have no room, by partition.
func (f *fullLanes) now() (list []model.FullLane) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.of { // any order: sorted below
		list = append(list, l.FullLane)
	}
	slices.SortFunc(list, func(a, b model.FullLane) int { return a.Partition - b.Partition })
	return list
}
