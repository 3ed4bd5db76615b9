package tasks

import (
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

// gates decide, for all spaces of a process, when tasks of an action are offered. After an offer that found no performer there is one at
// a time, with growing pauses, until one is taken. Performers that are all busy show how many tasks they can have at a time: there
// are as many offers as that leaves room for, and one more from time to time, as there may be more of them.
type gates struct {
	mu sync.Mutex
	by map[gateID]*gate
	// rates are the tokens of the actions that have a limit.
	rates map[string]*rate
}

// gateID names a gate.
type gateID struct{ action, queue string }

type gate struct {
	// room is how many tasks performers are known to have at a time, 0 if none has refused one as all were busy.
	room int
	// out is the number of tasks that performers have, asked that of the offers without an answer, and grown that of the tasks that were
	// taken since room last changed.
	out, asked, grown int
	// until is the end of the pause before an offer beyond that.
	until time.Time
	pause time.Duration // 0 if the last offer was taken
	// probing reports that such an offer was made since the pause last grew.
	probing bool
	waiting waiting
	alone   alone
}

// waiting are the lists that have tasks to offer, in the order in which they get their turn.
type waiting struct {
	lists []*List
	has   map[*List]bool // each of lists
	// look is the number of lists from which on those that have ended are removed.
	look int
}

const (
	// maxGates bounds the gates, whose names are in part those that inputs of tasks give to queues.
	maxGates = 10_000
	// growAfter is how many tasks are taken until there is room for one more.
	growAfter = 4
	// leastLook is the least number of waiting lists among which those are looked for that have ended.
	leastLook = 64
)

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

// admit reports how long to wait before a task can be offered; 0 for an offer to be made now. A list, unless it is nil, is
// opened if that is possible earlier.
func (g *gates) admit(action, queue string, perSecond float64, now time.Time, l *List) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.of(action, queue)
	if !at.hasRoom() && at.pause == 0 {
		at.pause = pauses[busy].first
		at.until = now.Add(at.pause)
	}
	if wait := at.until.Sub(now); !at.hasRoom() && wait > 0 {
		at.waiting.add(l)
		return wait
	}
	if perSecond > 0 {
		if wait := g.rateOf(action).take(perSecond, now); wait > 0 {
			return wait
		}
	}
	if !at.hasRoom() {
		at.until, at.probing = now.Add(at.pause), true
	}
	at.asked++
	return 0
}

// hasRoom reports whether a performer is expected to take another offer.
func (at *gate) hasRoom() bool {
	if at.pause > 0 && (at.room == 0 || at.out == 0) {
		return false
	}
	return at.room == 0 || at.out+at.asked < at.room
}

// add adds a list, unless it is nil.
func (w *waiting) add(l *List) {
	if l == nil || w.has[l] {
		return
	}
	if len(w.lists) >= max(w.look, leastLook) {
		w.lists = slices.DeleteFunc(w.lists, func(l *List) bool {
			if l.over() {
				delete(w.has, l)
			}
			return l.over()
		})
		w.look = 2 * len(w.lists)
	}
	if w.has == nil {
		w.has = map[*List]bool{}
	}
	w.lists, w.has[l] = append(w.lists, l), true
}

// next removes up to n lists whose turn it is. One that has ended has none.
func (w *waiting) next(n int) (woken []*List) {
	for len(woken) < n && len(w.lists) > 0 {
		l := w.lists[0]
		w.lists[0] = nil
		w.lists = w.lists[1:]
		delete(w.has, l)
		if !l.over() {
			woken = append(woken, l)
		}
	}
	return woken
}

// refusal is an offer that was not taken, or what was claimed and is handed back.
type refusal struct {
	why     reason
	claimed bool
	of      demand
}

// refused records a refusal. It returns a report that no performer has been there for a while, once until one is.
func (g *gates) refused(action, queue string, perSecond float64, r refusal, now time.Time) *status.Unperformed {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, p := g.of(action, queue), pauses[r.why]
	if !r.claimed {
		at.asked = max(0, at.asked-1)
	}
	switch {
	case at.pause == 0:
		at.pause = p.first
	case at.probing:
		at.pause = min(max(2*at.pause, p.first), p.most)
	}
	at.probing = false
	at.until = now.Add(at.pause)
	switch r.why {
	case busy:
		at.room, at.grown = max(at.out, 1), 0
	case absent:
		at.room, at.grown = 0, 0
	case unclaimed: // by one performer: the others have as much room as before
	}
	if perSecond > 0 {
		g.rateOf(action).put(perSecond)
	}
	if at.alone.refused(&r, now) {
		return at.unperformed(gateID{action, queue})
	}
	return nil
}

// taken records that an offer was taken.
func (g *gates) taken(action, queue string, now time.Time) {
	g.mu.Lock()
	at := g.of(action, queue)
	at.alone = alone{claimed: now}
	at.asked, at.out = max(0, at.asked-1), at.out+1
	at.pause, at.until, at.probing = 0, time.Time{}, false
	at.grow()
	n := len(at.waiting.lists)
	if at.room > 0 {
		n = max(0, at.room-at.out-at.asked)
	}
	woken := at.waiting.next(n)
	g.mu.Unlock()
	gateID{action, queue}.open(woken)
}

// grow makes room for what performers have shown that they take.
func (at *gate) grow() {
	if at.room == 0 {
		return
	}
	if at.grown++; at.grown >= growAfter {
		at.room, at.grown = at.room+1, 0
	}
	at.room = max(at.room, at.out)
}

// freed records that a performer has ended a task: it may take another one.
func (g *gates) freed(action, queue string) {
	g.mu.Lock()
	at := g.of(action, queue)
	at.out = max(0, at.out-1)
	if !at.hasRoom() {
		at.until = time.Time{}
	}
	woken := at.waiting.next(1)
	g.mu.Unlock()
	gateID{action, queue}.open(woken)
}

// unanswered records that an offer has ended without an answer.
func (g *gates) unanswered(action, queue string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.of(action, queue)
	at.asked = max(0, at.asked-1)
}

// pass gives the turn of a list to the next one. The loop of the list calls it.
func (g *gates) pass(l *List, id gateID) {
	g.mu.Lock()
	woken := g.of(id.action, id.queue).waiting.next(1)
	g.mu.Unlock()
	if len(woken) > 0 {
		l.host.Go(func() { id.open(woken) }) // ends when the other loop has noted it
	}
}

// open lets lists make their offers.
func (id gateID) open(lists []*List) {
	for _, l := range lists {
		l.host.Call(func() { l.open(id) })
	}
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
