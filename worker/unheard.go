package worker

import (
	"context"
	"sync/atomic"
)

// An owner learns that another runtime has taken its space over when an append or a save of
// its own is refused, or by a question that is asked at the head. One that has nothing to do
// would never learn it, and show what the other has left behind: if that ran another version
// of the program, its derived values are not what this one derives (docs/adr/0026).
//
// So the owner of a partition looks now and then whether the log has grown by more than its
// spaces know of. That is one number per partition, which retention asks for anyway; only if
// it has grown are the spaces gone through.

// unheard finds commits that nobody in memory has heard of. Its fields but known belong to
// retention.
type unheard struct {
	// known is the highest sequence of the partition's log that a space in memory has known.
	known atomic.Uint64
	// last was the end of the log when it was looked at before: what was appended since may
	// be on its way to whom it belongs.
	last uint64
}

// hear notes that a space knows its log up to a sequence.
func (u *unheard) hear(seq uint64) {
	for {
		known := u.known.Load()
		if seq <= known || u.known.CompareAndSwap(known, seq) {
			return
		}
	}
}

// look takes in where the log ends, and has the spaces look whose log has grown.
func (u *unheard) look(ctx context.Context, p *partition, hosts []*host, end uint64) error {
	before := u.last
	u.last = end
	if before <= u.known.Load() {
		return nil
	}
	found := false
	for _, h := range hosts {
		head, err := p.bus.Head(ctx, h.space)
		if err != nil {
			return err
		}
		if head > h.seen.Load() {
			found = true
			h.call(h.overtaken) // and if that fails, the next look finds it again
		}
	}
	if !found {
		u.hear(before) // it is of a space that sleeps
	}
	return nil
}
