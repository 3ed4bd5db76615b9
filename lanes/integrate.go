package lanes

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/model"
)

// Integrate goes on from st, the confirmed state after a commit that another
// runtime made to the same space. What that commit decided is not to be handled
// here any more, what it launched is, and everything is in the order in which a
// lane stands that has only just been made of st. The lane must be rewound:
// nothing may be undecided. Events that have waited for their time have no place in that
// order: those that still wait stay in front if they were, and come last else.
func (l *Lane) Integrate(st State) {
	due := l.due(st.Waits)
	first := len(l.entries) > 0 && l.entries[0].Slot > 0
	known := slices.DeleteFunc(slices.Clone(l.entries), func(ev *model.Event) bool { return ev.Lane == 0 })
	for i := range l.held {
		known = append(known, &l.held[i])
	}
	slices.SortFunc(known, func(a, b *model.Event) int { return cmp.Compare(a.Lane, b.Lane) })
	seen, gap, refused := l.seen, l.gap, l.refused
	*l = *New(st, l.limit)
	for i := range known {
		l.restore(known[i])
	}
	if seen > l.seen {
		l.releaseOwn(seen) // what is missing up to there were repetitions
		l.seen = seen
	}
	l.refused = refused
	if gap > l.seen {
		l.gap = gap
	}
	if first {
		l.entries = slices.Concat(due, l.entries)
	} else {
		l.entries = append(l.entries, due...)
	}
}

// due lists the events that were queued when their time had come, and still wait.
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

// restore is Offer for an event that is in memory already: it always finds room.
func (l *Lane) restore(ev *model.Event) {
	if i, ok := slices.BinarySearch(l.reclaim, ev.Lane); ok {
		l.reclaim = slices.Delete(l.reclaim, i, i+1)
		l.place(ev)
		l.releaseOwn(l.seen)
	} else if ev.Lane > l.seen {
		l.accept(ev)
	}
}
