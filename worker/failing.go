package worker

import "time"

// The pause after which a space whose host failed to load, or failed later, is loaded again. It is
// doubled after each failure, up to the longest.
const (
	leastRefusal   = 500 * time.Millisecond
	longestRefusal = 10 * time.Second
)

// failings are the spaces of a partition whose last attempt to be served failed. Events, leases,
// queries and times all wake a space. Without a pause, each of these would load it again, and
// fail again, as fast as a store can reject reads of a missing log. So all of them wait for the same
// moment, after growing pauses.
type failings map[string]*failing

// failing is why a space could not be served, and when the next attempt is due.
type failing struct {
	rest  time.Duration
	until time.Time
}

// note records that a space could not be served.
func (fs failings) note(space string, now time.Time) {
	f := fs[space]
	if f == nil {
		f = &failing{}
		fs[space] = f
	}
	f.rest = min(max(2*f.rest, leastRefusal), longestRefusal)
	f.until = now.Add(f.rest)
}

// left returns how long a space must wait until it is loaded again.
func (fs failings) left(space string, now time.Time) time.Duration {
	if f := fs[space]; f != nil {
		return max(0, f.until.Sub(now))
	}
	return 0
}

// unable records that a space could not be loaded.
func (p *partition) unable(space string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failings.note(space, time.Now())
}

// able records that a space is served.
func (p *partition) able(space string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failings, space)
}

// putOff delays a space that could not be served until the next attempt is due, like a space that waits for
// its turn; it returns false if no delay is needed. p.mu is held.
func (p *partition) putOff(space string) bool {
	left := p.failings.left(space, time.Now())
	if left == 0 {
		return false
	}
	p.waiting[space] = nil
	p.tasks.Go(func() { // ends with p.ctx
		p.returns.after(p.ctx, left, space, func() {
			if again := (loadRequest{space, p.admitted}); p.residency.admit(again) {
				p.residency.admitted(again)
			}
		})
	})
	return true
}
