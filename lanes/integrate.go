package lanes

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// Integrate continues from st, the confirmed state after a commit that another runtime made to the same
// space. Events that the commit decided are not handled here again, events that it sent are queued, and all
// events get the order of a lane that was newly created from st. The lane must have been rewound: no event
// may be undecided. Events that have waited for their time have no place in that order: those that still wait
// stay in front if they were there, and otherwise come last.
func (l *Lane) Integrate(st State) {
	due := l.due(st.Waits)
	first := len(l.entries) > 0 && l.entries[0].Slot > 0
	known := l.held.all()
	for _, ev := range l.entries {
		if ev.Lane != 0 {
			known = append(known, entryOf(asOffered(ev)))
		}
	}
	for _, seq := range l.reclaim {
		known = append(known, early{lane: seq})
	}
	slices.SortFunc(known, byLane)
	seen, gap, refused, recalled := l.seen, l.gap, l.refused, l.recalled
	*l = *newLane(st, l.limit, l.held.limit)
	l.refused, l.recalled = refused, recalled
	if l.restoreAll(known) {
		if seen > l.seen {
			l.releaseOwn(seen) // the missing events up to that point were duplicates
			l.seen = seen
		}
		if gap > l.seen {
			l.gap = gap
		}
	} else {
		l.refused = max(refused, seen)
	}
	if first {
		l.entries = slices.Concat(due, l.entries)
	} else {
		l.entries = append(l.entries, due...)
	}
}

// due returns the events that were queued when their time had come, and that still wait.
func (l *Lane) due(waits func(*model.Event) bool) (list []*model.Event) {
	for _, ev := range l.entries {
		if ev.Slot > 0 && waits != nil && waits(ev) {
			list = append(list, ev)
		}
	}
	for i := range l.own {
		if ev := l.own[i]; ev.Slot > 0 && waits != nil && waits(&ev) {
			list = append(list, &ev)
		}
	}
	return list
}

// restoreAll is Offer for events that are in memory already, or whose sequence is: there is always room for
// them. It returns false if it has left some in the stream, because an earlier one has to be read again.
func (l *Lane) restoreAll(known []early) bool {
	for _, e := range known {
		unread := e.ev == nil && e.origin == ""
		switch {
		case l.isReclaimed(e.lane):
			if !unread {
				l.reclaimOne(e)
			}
		case e.lane <= l.seen:
		case unread || len(l.reclaim) > 0:
			l.gap = e.lane
			return false
		default:
			l.accept(e)
		}
	}
	return true
}
