package coordinator

import (
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/model"
)

// roomFor is for how long a lane has had room for all that waited for some, when that is believed to last.
const roomFor = 5 * time.Second

// fullLanes knows which lanes have no room for what is to be released. Each holds up the releases that wait for it and,
// once those are as many as may be under way, the log that they come from, also for other lanes. The log
// reports it once, and then ever more rarely, until releases go on.
type fullLanes struct {
	c  *Coordinator
	mu sync.Mutex
	of map[int]*fullLane // by partition
}

// fullLane is a lane that has refused a release for want of room.
type fullLane struct {
	model.FullLane
	refused time.Time // last
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
		f.c.cfg.Logger.Warn("a lane has no room: what is sent to its spaces waits, and so may what stands behind that in a log",
			"partition", p, "space", r.m.Space, "stream", r.m.Stream, "event", r.m.ID, "from", r.from, "since", l.Since, "waiting", l.Waiting, "error", err)
	}
}

// leave records that a release no longer waits for room: it was stored, or is given up.
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

// over says that a lane has room, if it has had for a while.
func (f *fullLanes) over(l *fullLane) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[l.Partition] != l || l.Waiting > 0 || time.Since(l.refused) < roomFor || f.c.ctx.Err() != nil {
		return
	}
	delete(f.of, l.Partition)
	f.c.cfg.Logger.Info("a lane has room again: what waited for it is released", "partition", l.Partition, "since", l.Since, "for", l.refused.Sub(l.Since))
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
