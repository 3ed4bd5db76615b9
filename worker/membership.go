package worker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// roster is what this worker believes of the others. Beliefs may be wrong, and
// two workers may believe differently: that costs a refused append, never a
// wrong one. So a suspicion may be quick.
type roster struct {
	mu      sync.Mutex
	self    model.Member
	ttl     time.Duration
	entries map[string]*rosterEntry
}

type rosterEntry struct {
	member model.Member
	// heard is when the member's beat last moved, by this worker's clock: clocks
	// of different machines are never compared.
	heard time.Time
	// silent is set when nobody answered a ping, until the beat moves again.
	silent bool
}

func newRoster(self model.Member, ttl time.Duration) *roster {
	return &roster{self: self, ttl: ttl, entries: map[string]*rosterEntry{}}
}

// hear takes in an announcement.
func (r *roster) hear(m model.Member, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.ID == r.self.ID {
		return
	}
	if m.Left {
		delete(r.entries, m.ID)
		return
	}
	e := r.entries[m.ID]
	if e == nil {
		e = &rosterEntry{member: m, heard: now}
		r.entries[m.ID] = e
	}
	if m.Beat != e.member.Beat {
		*e = rosterEntry{member: m, heard: now}
	}
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
		if since.Sub(e.heard) < r.ttl {
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
		if !e.silent && now.Sub(e.heard) < r.ttl {
			out = append(out, e.member)
		}
	}
	slices.SortFunc(out, func(a, b model.Member) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// beat advances and returns this worker's own announcement. One that has left stays
// so, whatever a heartbeat that is still under way says.
func (r *roster) beat(left bool) model.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.self.Beat++
	r.self.Left = r.self.Left || left
	return r.self
}
