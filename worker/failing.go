package worker

import (
	"time"

	"github.com/settlehq/settle/internal/pause"
)

// How long a space waits whose host could not be had, or had to end, until it is loaded again:
// doubled each time that it ends so, up to the longest.
const (
	leastRefusal   = 500 * time.Millisecond
	longestRefusal = 10 * time.Second
)

// failings are the spaces of a partition that could not be served when that was tried last. Much
// wakes a space: events, leases, questions, times. Each of these would have it loaded again, and
// fail again, as fast as a store can say that it has not got the log. So all of them wait for one
// moment, ever longer.
type failings map[string]*failing

// failing is why a space could not be served, and when that is tried again.
type failing struct {
	rest  time.Duration
	until time.Time
}

// note takes in that a space could not be served.
func (fs failings) note(space string, now time.Time) {
	f := fs[space]
	if f == nil {
		f = &failing{}
		fs[space] = f
	}
	f.rest = min(max(2*f.rest, leastRefusal), longestRefusal)
	f.until = now.Add(f.rest)
}

// left is for how long a space is not to be loaded yet.
func (fs failings) left(space string, now time.Time) time.Duration {
	if f := fs[space]; f != nil {
		return max(0, f.until.Sub(now))
	}
	return 0
}

// unable notes that a space could not be brought to life.
func (p *partition) unable(space string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failings.note(space, time.Now())
}

// able notes that a space is served.
func (p *partition) able(space string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failings, space)
}

// putOff has a space that could not be served wait until it is tried again, as one that waits for
// its turn; false if it need not. p.mu is held.
func (p *partition) putOff(space string) bool {
	left := p.failings.left(space, time.Now())
	if left == 0 {
		return false
	}
	p.waiting[space] = nil
	p.tasks.Go(func() { // ends with p.ctx
		_ = pause.For(p.ctx, left)
		if p.w.awake.admit(p, space) {
			p.w.awake.admitted(wish{p, space})
		}
	})
	return true
}
