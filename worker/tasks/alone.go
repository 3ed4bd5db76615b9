package tasks

import (
	"cmp"
	"slices"
	"time"

	"github.com/settlehq/settle/status"
)

// alone records that no performer takes tasks that are offered: offers since one was taken, or was refused by a performer that is busy.
type alone struct {
	since, last time.Time // the first and the last of these offers; zero if there were none
	claimed     time.Time // when a performer has taken a task for the last time; zero if none has
	silent      bool      // a performer is there, and does not answer
	of          demand    // of the last offer
	warned      bool
}

// demand is what waits in a space: the tasks of an action.
type demand struct {
	space string
	tasks int
}

const (
	// aloneFor is for how long after an offer it is known that no performer is there: while tasks wait there is an offer every few seconds, the pause
	// before it and the time for a claim.
	aloneFor = 15 * time.Second
	// warnAfter is how long no performer may be there before that is logged: one may be about to start.
	warnAfter = 3 * time.Second
	// maxAlone is how many actions without a performer a worker reports.
	maxAlone = 20
)

// refused records a refusal, and reports whether it is to be logged that no performer is there.
func (a *alone) refused(r *refusal, now time.Time) bool {
	if r.why == busy {
		*a = alone{claimed: a.claimed}
		return false
	}
	if a.since.IsZero() {
		a.since = now
	}
	a.last, a.silent, a.of = now, r.why == unclaimed, r.of
	if a.warned || now.Sub(a.since) < warnAfter {
		return false
	}
	a.warned = true
	return true
}

// unperformed describes that no performer takes the tasks of a gate.
func (at *gate) unperformed(id gateID) *status.Unperformed {
	a := &at.alone
	return &status.Unperformed{
		Action: id.action, Queue: id.queue, Since: a.since.UTC(), Last: a.last.UTC(), Claimed: a.claimed.UTC(), Silent: a.silent, Space: a.of.space, Tasks: a.of.tasks,
	}
}

// describe adds the actions to the figures of a worker whose tasks no performer takes, those that have waited for longest first.
func (g *gates) describe(f *status.Figures, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, at := range g.by { // any order: sorted below
		if a := &at.alone; !a.since.IsZero() && now.Sub(a.last) < aloneFor {
			f.Unperformed = append(f.Unperformed, *at.unperformed(id))
		}
	}
	slices.SortFunc(f.Unperformed, func(a, b status.Unperformed) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Queue, b.Queue))
	})
	f.UnperformedCount = len(f.Unperformed)
	f.Unperformed = f.Unperformed[:min(len(f.Unperformed), maxAlone)]
}
