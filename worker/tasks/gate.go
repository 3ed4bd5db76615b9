package tasks

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/status"
)

// reason is why no performer has taken a task.
type reason int

const (
	absent    reason = iota // none is there
	busy                    // all of those that were asked are at work
	unclaimed               // there was no answer in time
)

// pauses are the first and the longest pause before another offer of an action, by the reason for which the last one was not taken.
var pauses = [...]struct{ first, most time.Duration }{
	absent:    {250 * time.Millisecond, 5 * time.Second},
	busy:      {20 * time.Millisecond, time.Second},
	unclaimed: {250 * time.Millisecond, 5 * time.Second},
}

// gates decide, for all spaces of a process, when tasks of an action are offered. After an offer that was not taken there is one at
// a time, with growing pauses, until one is taken.
type gates struct {
	mu sync.Mutex
	by map[gateID]*gate
	// rates are the tokens of the actions that have a limit.
	rates map[string]*rate
}

// gateID names a gate.
type gateID struct{ action, queue string }

type gate struct {
	until time.Time
	pause time.Duration // 0 if the last offer was taken
	// probing reports that an offer was made since the pause last grew.
	probing bool
	alone   alone
}

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

// maxGates bounds the gates, whose names are in part those that inputs of tasks give to queues.
const maxGates = 10_000

// of returns the gate of an action and a queue.
func (g *gates) of(action, queue string) *gate {
	id := gateID{action, queue}
	if g.by == nil || len(g.by) >= maxGates && g.by[id] == nil {
		g.by = map[gateID]*gate{} // all are open then: it costs offers, and no task
	}
	if g.by[id] == nil {
		g.by[id] = &gate{}
	}
	return g.by[id]
}

// admit reports how long to wait before a task can be offered; 0 for an offer to be made now.
func (g *gates) admit(action, queue string, perSecond float64, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.of(action, queue)
	if wait := at.until.Sub(now); wait > 0 {
		return wait
	}
	if perSecond > 0 {
		if wait := g.rateOf(action).take(perSecond, now); wait > 0 {
			return wait
		}
	}
	if at.pause > 0 {
		at.until, at.probing = now.Add(at.pause), true
	}
	return 0
}

// refused records that an offer was not taken, and what waits. It returns a report that no performer has been there for a while, once until one is.
func (g *gates) refused(action, queue string, perSecond float64, why reason, of demand, now time.Time) (report *status.Unperformed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, p := g.of(action, queue), pauses[why]
	switch {
	case at.pause == 0:
		at.pause = p.first
	case at.probing:
		at.pause = min(max(2*at.pause, p.first), p.most)
	}
	at.probing = false
	at.until = now.Add(at.pause)
	if perSecond > 0 {
		g.rateOf(action).put(perSecond)
	}
	a := &at.alone
	if why == busy {
		*a = alone{claimed: a.claimed}
		return nil
	}
	if a.since.IsZero() {
		a.since = now
	}
	a.last, a.silent, a.of = now, why == unclaimed, of
	if a.warned || now.Sub(a.since) < warnAfter {
		return nil
	}
	a.warned = true
	return at.unperformed(gateID{action, queue})
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

// taken records that an offer was taken, and reports whether others were not.
func (g *gates) taken(action, queue string, now time.Time) (opened bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.of(action, queue)
	opened = at.pause > 0
	*at = gate{alone: alone{claimed: now}}
	return opened
}

// freed records that a performer has ended a task: it may take another one.
func (g *gates) freed(action, queue string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(action, queue).until = time.Time{}
}

func (g *gates) rateOf(action string) *rate {
	if g.rates == nil {
		g.rates = map[string]*rate{}
	}
	if g.rates[action] == nil {
		g.rates[action] = &rate{}
	}
	return g.rates[action]
}

// rate is a bucket of tokens, which holds those of one second.
type rate struct {
	tokens float64
	at     time.Time
	before float64 // the rate as of at; see share
}

// share is take for a rate that changes. It begins with one token: those of a second are for after a pause.
func (r *rate) share(perSecond float64, now time.Time) time.Duration {
	if r.at.IsZero() {
		r.tokens, r.at, r.before = 1, now, perSecond
	}
	r.tokens = min(max(r.before, 1), r.tokens+min(perSecond, r.before)*max(now.Sub(r.at), 0).Seconds())
	r.at, r.before = now, perSecond
	return r.take(perSecond, now)
}

// take takes a token, or returns how long to wait for one.
func (r *rate) take(perSecond float64, now time.Time) time.Duration {
	room := max(perSecond, 1)
	if r.at.IsZero() {
		r.tokens = room
	} else {
		r.tokens = min(room, r.tokens+perSecond*max(now.Sub(r.at), 0).Seconds())
	}
	r.at = now
	if r.tokens < 1 {
		return max(time.Duration((1-r.tokens)/perSecond*float64(time.Second)), time.Millisecond)
	}
	r.tokens--
	return 0
}

// put gives a token back that was not used.
func (r *rate) put(perSecond float64) { r.tokens = min(max(perSecond, 1), r.tokens+1) }
