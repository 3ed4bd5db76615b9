package worker

import "context"

// An owner learns that another runtime has taken its space over when an append or a save of
// its own is refused, or by a question that is asked at the head. One that has nothing to do
// would never learn it, and show what the other has left behind: if that ran another version
// of the program, its derived values are not what this one derives (docs/adr/0026).
//
// So the owner of a partition looks now and then whether the log has grown, which retention asks
// for anyway, and asks for the heads of those spaces in memory that have not grown with it. What
// other spaces have heard since says nothing about these.

// unheard finds commits that nobody in memory has heard of. It belongs to retention.
type unheard struct {
	// last was the end of the log when it was looked at before: what was appended since may
	// be on its way to whom it belongs.
	last uint64
	// next is the space with which to go on.
	next string
}

// headsStep is how many heads are asked for at a time, so that a worker with a hundred thousand
// spaces in memory does not ask for all of them every minute.
const headsStep = 2048

// look takes in where the log ends, and has the spaces look whose log has grown. hosts are
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
			h.call(h.overtaken) // and if that fails, the next look finds it again
			continue
		}
		h.compared = before
	}
	return nil
}
