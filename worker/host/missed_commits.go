package host

import "context"

// An owner learns that another runtime has taken its space over when an append or a save of
// its own is refused, or by a query that reads the head. An owner without work
// would never learn it, and show stale values: if the other ran another version
// of the program, its derived values differ (docs/adr/0026).
//
// So the owner of a partition periodically checks whether the log has grown, which retention
// reads anyway, and reads the heads of those loaded spaces that have not grown with it. Commits
// that other spaces have integrated since do not matter for these.

// missedCommits finds commits that no loaded space has integrated. It belongs to retention.
type missedCommits struct {
	// last was the end of the log at the previous check: later commits may still be in transit to their
	// spaces.
	last uint64
	// next is the space to continue with.
	next string
}

// heads returns the ends of the logs of spaces.
type heads interface {
	Head(ctx context.Context, space string) (uint64, error)
}

// headsStep is how many heads are read at a time, so that a worker with a hundred thousand
// spaces in memory does not read all of them every minute.
const headsStep = 2048

// look records the end of the log, and makes the spaces whose log has grown read it. spaces are
// sorted by name.
func (m *missedCommits) look(ctx context.Context, bus heads, spaces []*storedSpace, end uint64) error {
	before := m.last
	m.last = end
	from := 0
	for from < len(spaces) && spaces[from].space < m.next {
		from++
	}
	m.next = ""
	asked := 0
	for i := range spaces {
		s := spaces[(from+i)%len(spaces)]
		if s.compared >= before || s.seen.Load() >= before {
			continue
		}
		if asked++; asked > headsStep {
			m.next = s.space
			return nil
		}
		head, err := bus.Head(ctx, s.space)
		if err != nil {
			m.next = s.space
			return err
		}
		if head > s.seen.Load() {
			s.missed() // if that fails, the next check finds it again
			continue
		}
		s.compared = before
	}
	return nil
}
