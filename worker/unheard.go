package worker

import "context"

// An owner learns that another runtime has taken its space over when an append or a save of
// its own is refused, or by a query that reads the head. An owner without work
// would never learn it, and show stale values: if the other ran another version
// of the program, its derived values differ (docs/adr/0026).
//
// So the owner of a partition periodically checks whether the log has grown, which retention
// reads anyway, and reads the heads of those loaded spaces that have not grown with it. Commits
// that other spaces have integrated since do not matter for these.

// unheard finds commits that no loaded space has integrated. It belongs to retention.
type unheard struct {
	// last was the end of the log at the previous check: later commits may
	// still be on their way to their spaces.
	last uint64
	// next is the space to continue with.
	next string
}

// headsStep is how many heads are read at a time, so that a worker with a hundred thousand
// spaces in memory does not read all of them every minute.
const headsStep = 2048

// look records the end of the log, and makes the spaces whose log has grown read it. hosts are
// sorted by space.
func (u *unheard) look(ctx context.Context, hosts []*host, end uint64) error {
	before := u.last
	u.last = end
	from := 0
	for from < len(hosts) && hosts[from].space < u.next {
		from++
	}
	u.next = ""
	asked := 0
	for i := range hosts {
		h := hosts[(from+i)%len(hosts)]
		if h.compared >= before || h.seen.Load() >= before {
			continue
		}
		if asked++; asked > headsStep {
			u.next = h.space
			return nil
		}
		head, err := h.env.bus.Head(ctx, h.space)
		if err != nil {
			u.next = h.space
			return err
		}
		if head > h.seen.Load() {
			h.call(h.overtaken) // if that fails, the next check finds it again
			continue
		}
		h.compared = before
	}
	return nil
}
