package tasks

import (
	"container/list"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/settlehq/settle/space"
)

// Fleet divides limits among the workers of a deployment (docs/adr/0066). Its methods may be called by any goroutine.
type Fleet interface {
	// Take uses one of a limit, unless this process has no more; waiting is how many tasks wait for that here. Return gives it back.
	Take(limit string, of, waiting int) bool
	Return(limit string)
	// Part returns how much of a limit this process has that is not taken and given back.
	Part(limit string, of, waiting int) int
}

// Limits admits tasks to attempts, for all spaces of a process, within the limits of actions that count for a whole fleet. The spaces whose
// tasks wait for a limit take turns. Tasks of actions without such a limit never get here.
type Limits struct {
	fleet Fleet
	mu    sync.Mutex
	by    map[string]*fleetLimit // by action and value
}

// NewLimits returns limits that a fleet divides.
func NewLimits(of Fleet) *Limits { return &Limits{fleet: of, by: map[string]*fleetLimit{}} }

// fleetLimit is a limit that tasks wait for, or that is a rate.
type fleetLimit struct {
	rate rate
	// waiters are the spaces whose tasks wait, in the order of their turns, by name.
	turns   *list.List
	waiters map[string]*list.Element
	tasks   int // of all of them
	about   time.Time
}

// waiter is a space whose tasks wait.
type waiter struct {
	space string
	tasks int
	asked time.Time
	wake  func()
}

const (
	// askAgain is how long a task waits until it asks again, unless it is its turn before, and goneAfter how long a space that has not
	// asked again has its turn: it was handed over, say.
	askAgain  = time.Second
	goneAfter = 3 * time.Second
	// maxFleetLimits bounds the limits that are remembered, whose names are in part values of inputs.
	maxFleetLimits = 10_000
	// milli is the unit of rates.
	milli = 1000
)

// limitOf returns the limit that counts for a task of an action, "" for none.
func limitOf(a *space.ActionSpec, t *space.Task) string {
	if !a.Fleet.Set() {
		return ""
	}
	v := a.Fleet.Value(t)
	if v.IsAbsent() || v.IsNull() {
		return a.Name
	}
	h := fnv.New64a()
	_, _ = h.Write(v.AppendJSON(nil)) // never fails
	return a.Name + "." + strconv.FormatUint(h.Sum64(), 36)
}

// admit returns 0 if a task can begin, and otherwise how long to wait at most; wake is called when it is the turn of the space. waiting is
// how many tasks of the space could begin but for the limit, this one included.
func (l *Limits) admit(name string, terms *space.Fleet, of string, waiting int, wake func(), now time.Time) time.Duration {
	l.mu.Lock()
	f := l.of(name, now)
	f.dropGone(now)
	f.enter(&waiter{of, waiting, now, wake})
	wait, next := askAgain, func() {}
	if f.turns.Front() == f.waiters[of] {
		if wait = l.take(name, f, terms, now); wait == 0 {
			f.leave(of)
			next = f.first()
		}
	}
	l.mu.Unlock()
	next()
	return wait
}

// take takes what a task needs, or returns how long to wait.
func (l *Limits) take(name string, f *fleetLimit, terms *space.Fleet, now time.Time) time.Duration {
	if terms.AtATime > 0 && !l.fleet.Take(atATime+name, terms.AtATime, f.tasks) {
		return askAgain
	}
	if terms.PerSecond == 0 {
		return 0
	}
	wait := askAgain
	if has := l.fleet.Part(perSecond+name, int(terms.PerSecond*milli), min(f.tasks, space.MaxFleet)*milli); has > 0 {
		wait = min(f.rate.share(float64(has)/milli, now), askAgain)
	}
	if wait > 0 && terms.AtATime > 0 {
		l.fleet.Return(atATime + name)
	}
	return wait
}

// Prefixes of the names of limits.
const (
	atATime   = "at."
	perSecond = "rate."
)

// ended gives back what a task has had that was admitted. begun reports whether there was an attempt.
func (l *Limits) ended(name string, terms *space.Fleet, begun bool) {
	l.mu.Lock()
	if terms.AtATime > 0 {
		l.fleet.Return(atATime + name)
	}
	next := func() {}
	if f := l.by[name]; f != nil {
		if terms.PerSecond > 0 && !begun {
			f.rate.put(f.rate.before)
		}
		next = f.first()
	}
	l.mu.Unlock()
	next()
}

// leave records that no task of a space waits for a limit any more, or none that can begin.
func (l *Limits) leave(name, of string) {
	l.mu.Lock()
	next := func() {}
	if f := l.by[name]; f != nil {
		f.leave(of)
		next = f.first()
	}
	l.mu.Unlock()
	next()
}

// Changed wakes the tasks whose turn it is: there may be more of a limit than before.
func (l *Limits) Changed() {
	l.mu.Lock()
	var wake []func()
	for _, f := range l.by { // any order: each on its own
		wake = append(wake, f.first())
	}
	l.mu.Unlock()
	for _, f := range wake {
		f()
	}
}

// of returns a limit.
func (l *Limits) of(name string, now time.Time) *fleetLimit {
	f := l.by[name]
	if f == nil {
		if len(l.by) >= maxFleetLimits {
			l.dropIdle(now)
		}
		f = &fleetLimit{turns: list.New(), waiters: map[string]*list.Element{}}
		l.by[name] = f
	}
	f.about = now
	return f
}

// dropIdle forgets limits that nothing waits for: that costs the knowledge of a rate, which is worth a task.
func (l *Limits) dropIdle(now time.Time) {
	for name, f := range l.by { // any order: all of them
		if f.turns.Len() == 0 && now.Sub(f.about) > goneAfter {
			delete(l.by, name)
		}
	}
}

// enter adds a space at the end, or records what it has said, if it waits already.
func (f *fleetLimit) enter(w *waiter) {
	if e := f.waiters[w.space]; e != nil {
		f.tasks += w.tasks - e.Value.(*waiter).tasks
		e.Value = w
		return
	}
	f.waiters[w.space] = f.turns.PushBack(w)
	f.tasks += w.tasks
}

func (f *fleetLimit) leave(of string) {
	if e := f.waiters[of]; e != nil {
		f.tasks -= f.turns.Remove(e).(*waiter).tasks
		delete(f.waiters, of)
	}
}

// dropGone removes spaces that have not asked again.
func (f *fleetLimit) dropGone(now time.Time) {
	for e := f.turns.Front(); e != nil; e = f.turns.Front() {
		w := e.Value.(*waiter)
		if now.Sub(w.asked) < goneAfter {
			return
		}
		f.leave(w.space)
	}
}

// first returns what wakes the space whose turn it is.
func (f *fleetLimit) first() func() {
	if e := f.turns.Front(); e != nil {
		return e.Value.(*waiter).wake
	}
	return func() {}
}
