package tasks

import "time"

// held are tasks of an action that wait for a limit of the fleet. The first of them is in the queue of the action and asks from time to time, the
// others wait until it has begun. So it does not matter how many there are.
type held struct {
	first *task
	rest  queue
}

func newPerforming() *performing {
	return &performing{pending: map[string]*task{}, queue: newQueue(), held: map[string]*held{}}
}

// within reports whether a task is within the limit that counts for it. Otherwise it waits.
func (l *List) within(a *performing, t *task, limit string, now time.Duration) bool {
	h := a.held[limit]
	if h != nil && h.first != t && t.Priority <= h.first.Priority {
		l.hold(a, t, limit)
		return false
	}
	waiting := 1
	if h != nil {
		waiting = h.rest.len() + 1
	}
	wake := func() { l.host.Call(func() { l.turn(a, limit) }) }
	wait := l.host.Limits.admit(limit, &a.spec.Fleet, l.host.Space, waiting, wake, time.Now())
	if wait == 0 {
		l.advance(a, t)
		t.limit = limit
		return true
	}
	if h != nil && h.first != t {
		l.hold(a, h.first, limit)
	}
	if h == nil {
		h = &held{rest: newQueue()}
		a.held[limit] = h
	}
	h.first, t.limit = t, limit
	a.queue.postpone(t, now+wait)
	return false
}

// hold lets a task wait behind the first one.
func (l *List) hold(a *performing, t *task, limit string) {
	a.queue.remove(t)
	t.at, t.limit = 0, limit
	a.held[limit].rest.push(t)
}

// advance records that a task waits no more, and lets the next one ask, if it was the first.
func (l *List) advance(a *performing, t *task) {
	h := a.held[t.limit]
	if h == nil || t.limit == "" {
		return
	}
	limit := t.limit
	t.limit = ""
	if h.first != t {
		h.rest.remove(t)
		return
	}
	next := h.rest.first(0)
	if next == nil {
		delete(a.held, limit)
		return
	}
	h.rest.begin(next)
	h.first = next
	a.queue.push(next)
}

// unhold removes a task that is not pending any more.
func (l *List) unhold(a *performing, t *task) {
	limit := t.limit
	l.advance(a, t)
	if limit != "" && a.held[limit] == nil {
		l.host.Limits.leave(limit, l.host.Space)
	}
}

// letGo lets all tasks ask again that wait for limits: another program may have others.
func (l *List) letGo(a *performing) {
	for limit, h := range a.held { // any order: all of them
		h.first.limit = ""
		a.queue.postpone(h.first, 0)
		for t := h.rest.first(0); t != nil; t = h.rest.first(0) {
			h.rest.begin(t)
			t.limit = ""
			a.queue.push(t)
		}
		delete(a.held, limit)
		l.host.Limits.leave(limit, l.host.Space)
	}
}

// turn lets a task begin that waits for a limit: it is the turn of this space.
func (l *List) turn(a *performing, limit string) {
	h := a.held[limit]
	if h == nil || a.underWay >= a.limit {
		l.host.Limits.leave(limit, l.host.Space)
	}
	if h != nil {
		a.queue.postpone(h.first, 0)
	}
}
