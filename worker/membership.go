package worker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// roster is what this worker believes of the others, and what it says of itself.
// Beliefs may be wrong, and two workers may believe differently: that costs a refused
// append, never a wrong one. So a suspicion may be quick.
type roster struct {
	mu      sync.Mutex
	self    model.Member
	ttl     time.Duration
	entries map[string]*rosterEntry
	// holds are the partitions that this worker serves or hands over, wants those that
	// it is about to serve. untold is set when that has changed since the last beat.
	holds  map[int]bool
	wants  map[int]*claim
	untold bool
	twin   twin
}

type rosterEntry struct {
	member model.Member
	// heard is when the member's beat last moved, by this worker's clock: clocks
	// of different machines are never compared.
	heard time.Time
	// silent is set when nobody answered a ping, until the beat moves again.
	silent bool
	// probation is how many more beats, each in time, a member has to show that had
	// stood still for the TTL: one that flaps does not move partitions back and forth.
	probation int
}

// probation of a member that had stood still and beats again.
const probation = 2

func newRoster(self model.Member, ttl time.Duration) *roster {
	return &roster{
		self: self, ttl: ttl, entries: map[string]*rosterEntry{},
		holds: map[int]bool{}, wants: map[int]*claim{}, twin: twin{own: make(chan struct{})},
	}
}

// hear takes in an announcement.
func (r *roster) hear(m model.Member, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Role != "":
		return // no worker
	case m.ID == r.self.ID:
		r.hearOwn(m, now)
		return
	case m.Left:
		delete(r.entries, m.ID)
		return
	}
	e := r.entries[m.ID]
	switch {
	case e == nil:
		r.entries[m.ID] = &rosterEntry{member: m, heard: now}
	case m.Life != e.member.Life:
		*e = rosterEntry{member: m, heard: now}
	case m.Beat == e.member.Beat || m.Life != "" && m.Beat < e.member.Beat:
		// nothing new: read again, or late
	default:
		*e = rosterEntry{member: m, heard: now, probation: e.probationAt(now, r.ttl)}
	}
}

// probationAt is the probation of a member that beats again.
func (e *rosterEntry) probationAt(now time.Time, ttl time.Duration) int {
	switch gap := now.Sub(e.heard); {
	case gap >= ttl:
		return probation
	case e.probation > 0 && gap < ttl/3:
		return e.probation - 1
	}
	return e.probation
}

// suspect notes that nobody answered for a member whose last known beat was beat.
func (r *roster) suspect(id string, beat uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[id]; e != nil && e.member.Beat == beat {
		e.silent = true
	}
}

// excuse takes the time from since to now out of the silence of those who were
// there then: the store was away, so nobody could be heard.
func (r *roster) excuse(since, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries { // any order: each on its own
		switch {
		case e.heard.After(since) && e.probation == probation:
			e.probation = 0 // it was heard again before this worker knew of the outage
		case since.Sub(e.heard) < r.ttl:
			e.heard = e.heard.Add(min(now.Sub(since), now.Sub(e.heard)))
		}
	}
}

// live lists the members that are believed to be there, this one included, by id.
func (r *roster) live(now time.Time) []model.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []model.Member{r.self}
	for _, e := range r.entries { // any order: sorted below
		if e.live(now, r.ttl) {
			out = append(out, e.member)
		}
	}
	slices.SortFunc(out, func(a, b model.Member) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func (e *rosterEntry) live(now time.Time, ttl time.Duration) bool {
	return !e.silent && e.probation == 0 && now.Sub(e.heard) < ttl
}

// staying are the live members that do not mean to leave: those who get partitions.
func (r *roster) staying(now time.Time) []model.Member {
	return slices.DeleteFunc(r.live(now), func(m model.Member) bool { return m.Leaving || m.Left })
}

// hasLeft reports whether this worker has begun to say that it has left.
func (r *roster) hasLeft() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.self.Left
}

// beat advances and returns this worker's own announcement. One that has left stays
// so, whatever a heartbeat that is still under way says.
func (r *roster) beat(left bool) model.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.self.Beat++
	r.self.Left = r.self.Left || left
	r.untold = false
	r.self.Holds, r.self.Wants = nil, nil
	for p := range r.holds { // any order: sorted below
		r.self.Holds = append(r.self.Holds, p)
	}
	for p, c := range r.wants { // any order: sorted below
		if !c.asked.IsZero() {
			r.self.Wants = append(r.self.Wants, p)
			c.beat = cmp.Or(c.beat, r.self.Beat)
		}
	}
	slices.Sort(r.self.Holds)
	slices.Sort(r.self.Wants)
	return r.self
}
