package roster

import (
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// claim is a partition that a member is to serve and does not serve yet. Two members
// that disagree cause each other refused appends. To avoid that at every change of
// the fleet, a member first requests the partition in the bucket, whose order all
// members see, and begins when it reads its own request: a member that held
// the partition or had requested it by then goes first. A claim is a courtesy and no lock:
// it waits at most as long as Patience.
type claim struct {
	since    time.Time // when the partition was first wanted
	asked    time.Time // when the announcement with it became due; zero while another member has the partition
	beat     uint64    // of the first announcement with it
	received bool      // and there was no earlier claim
}

// Patience limits how long a claim waits.
type Patience struct {
	// Holder applies if a live member has the partition: its drain takes so long.
	// Echo applies while this member's own announcement has not come back.
	Holder, Echo time.Duration
}

// May reports whether the member may begin to serve a partition of its share. If
// not, it has requested the partition, or will when no other member has it.
func (r *Roster) May(p int, wait Patience, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.wants[p]
	if c == nil {
		c = &claim{since: now}
		r.wants[p] = c
	}
	switch {
	case c.received, now.Sub(c.since) >= wait.Holder:
		return true
	case r.rival(p, now, false), c.asked.IsZero() && r.rival(p, now, true):
		return false
	case c.asked.IsZero():
		c.asked, r.untold = now, true
		return false
	}
	return now.Sub(c.asked) >= wait.Echo
}

// rival reports whether another live member serves a partition, or, with wants,
// has requested it. r.mu is held.
func (r *Roster) rival(p int, now time.Time, wants bool) bool {
	for _, e := range r.entries { // any order: whether there is one
		if e.live(now, r.ttl) && (slices.Contains(e.member.Holds, p) || wants && slices.Contains(e.member.Wants, p)) {
			return true
		}
	}
	return false
}

// Contested reports whether another live member serves a partition as well.
func (r *Roster) Contested(p int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rival(p, now, false)
}

// Hold records that the member serves a partition, and returns how long it has waited for
// that.
func (r *Roster) Hold(p int, now time.Time) (waited time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.wants[p]; c != nil {
		waited = now.Sub(c.since)
	}
	delete(r.wants, p)
	r.holds[p], r.untold = true, true
	return waited
}

// LetGo records that the member no longer serves or claims a partition.
func (r *Roster) LetGo(p int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.wants[p]; r.holds[p] || c != nil && c.beat > 0 {
		r.untold = true
	}
	delete(r.holds, p)
	delete(r.wants, p)
}

// Wanted returns the claimed partitions, with the start of each claim.
func (r *Roster) Wanted() map[int]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := map[int]time.Time{}
	for p, c := range r.wants { // any order: a map again
		since[p] = c.since
	}
	return since
}

// Pending reports whether a claim waits for this member's own announcement, which
// comes soon, rather than for another member.
func (r *Roster) Pending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.wants { // any order: whether there is one
		if !c.asked.IsZero() || c.received {
			return true
		}
	}
	return false
}

// Leave records that the member is about to leave.
func (r *Roster) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.wants)
	r.self.Leaving, r.untold = true, true
}

// Due reports whether there is something to announce before the next heartbeat.
func (r *Roster) Due(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.untold || r.limitsDue(now)
}

// receiveOwn processes an announcement under this member's own id. r.mu is held.
func (r *Roster) receiveOwn(m model.Member, now time.Time) {
	if m.Life != r.self.Life {
		r.twin.receive(m)
		return
	}
	r.twin.receiveOwn()
	r.limitsEchoed(&m, now)
	for _, p := range m.Wants {
		c := r.wants[p]
		if c == nil || c.beat == 0 || c.beat > m.Beat || c.received {
			continue
		}
		if r.rival(p, now, true) {
			c.asked, c.beat, r.untold = time.Time{}, 0, true
			continue
		}
		c.received = true
	}
}
