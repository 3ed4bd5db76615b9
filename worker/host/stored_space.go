package host

import (
	"sync/atomic"
	"time"
)

// storedSpace is what retention knows about a space that has a host.
type storedSpace struct {
	space string
	// durable is the log sequence of the saved checkpoint, and markers are the deleted items.
	durable atomic.Uint64
	markers markers
	// seen is the end of the space's log as its host knows it, and missed makes the host read what follows.
	seen   atomic.Uint64
	missed func()

	// The fields below belong to retention: retained, and the end of the partition's log up to which the
	// space is known to have no further commits.
	retained
	compared uint64
}

// retained is the purge state of a space.
type retained struct {
	below uint64 // bound of the last purge
	// firm is the sequence of a checkpoint that is old enough, fresh that of one that
	// existed at since.
	firm, fresh uint64
	since       time.Time
}

// settled records the sequence of the last saved checkpoint, and returns that of
// the last one that is old enough.
func (r *retained) settled(saved uint64, delay time.Duration, now time.Time) uint64 {
	if r.fresh > 0 && now.Sub(r.since) >= delay {
		r.firm, r.fresh = r.fresh, 0
	}
	if r.fresh == 0 && saved > r.firm {
		r.fresh, r.since = saved, now
	}
	return r.firm
}
