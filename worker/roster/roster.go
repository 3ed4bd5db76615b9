package roster

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// Roster is what a member believes of the others, and what it says of itself. Its methods
// may be called from any goroutine.
type Roster struct {
	mu      sync.Mutex
	self    model.Member
	ttl     time.Duration
	entries map[string]*entry
	// holds are the partitions that this member serves or hands over, wants those that
	// it is about to serve. untold is set when that has changed since the last beat.
	holds  map[int]bool
	wants  map[int]*claim
	untold bool
	twin   twin
}

type entry struct {
	member model.Member
	// heard is when the member's beat last moved, by this member's clock: clocks
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

// New makes the roster of a member that knows of nobody yet. It hears those of the same role.
// One whose beat stands still for the ttl is taken to be gone.
func New(self model.Member, ttl time.Duration) *Roster {
	return &Roster{
		self: self, ttl: ttl, entries: map[string]*entry{},
		holds: map[int]bool{}, wants: map[int]*claim{}, twin: twin{own: make(chan struct{})},
	}
}

// Hear takes in an announcement, also this member's own.
func (r *Roster) Hear(m model.Member, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Role != r.self.Role:
		return
	case m.ID == r.self.ID:
		r.hearOwn(m, now)
		return
	case HasLeft(&m):
		delete(r.entries, m.ID)
		return
	}
	e := r.entries[m.ID]
	switch {
	case e == nil:
		r.entries[m.ID] = &entry{member: m, heard: now}
	case m.Life != e.member.Life:
		*e = entry{member: m, heard: now}
	case m.Beat == e.member.Beat || m.Life != "" && m.Beat < e.member.Beat:
		// nothing new: read again, or late
	default:
		*e = entry{member: m, heard: now, probation: e.probationAt(now, r.ttl)}
	}
}

// probationAt is the probation of a member that beats again.
func (e *entry) probationAt(now time.Time, ttl time.Duration) int {
	switch gap := now.Sub(e.heard); {
	case gap >= ttl:
		return probation
	case e.probation > 0 && gap < ttl/3:
		return e.probation - 1
	}
	return e.probation
}

// Suspect notes that nobody answered for a member whose last known beat was beat.
func (r *Roster) Suspect(id string, beat uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[id]; e != nil && e.member.Beat == beat {
		e.silent = true
	}
}

// Excuse takes the time from since to now out of the silence of those who were
// there then: the store was away, so nobody could be heard.
func (r *Roster) Excuse(since, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries { // any order: each on its own
		switch {
		case e.heard.After(since) && e.probation == probation:
			e.probation = 0 // it was heard again before this member knew of the outage
		case since.Sub(e.heard) < r.ttl:
			e.heard = e.heard.Add(min(now.Sub(since), now.Sub(e.heard)))
		}
	}
}

// Live lists the members that are believed to be there, by id; this one always is.
func (r *Roster) Live(now time.Time) []model.Member {
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

func (e *entry) live(now time.Time, ttl time.Duration) bool {
	return !e.silent && e.probation == 0 && now.Sub(e.heard) < ttl
}

// Staying are the live members that do not mean to leave: those among which the partitions
// are divided.
func (r *Roster) Staying(now time.Time) []model.Member {
	return slices.DeleteFunc(r.Live(now), func(m model.Member) bool { return m.Leaving || HasLeft(&m) })
}

// Share lists the partitions, of n, that fall to this member.
func (r *Roster) Share(n int, now time.Time) []int {
	var mine []int
	for p, owner := range Divide(n, r.Staying(now)) {
		if owner == r.self.ID {
			mine = append(mine, p)
		}
	}
	return slices.Clip(mine)
}

// HasLeft reports whether an announcement is a member's last. Others than workers say Left all
// along (see model.Member.Role), and Leaving at the end.
func HasLeft(m *model.Member) bool {
	if m.Role == "" {
		return m.Left
	}
	return m.Leaving
}

// Self is this member's last announcement.
func (r *Roster) Self() model.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.self
}

// Beat advances and returns this member's own announcement. One that has left stays
// so, whatever a heartbeat that is still under way says.
func (r *Roster) Beat(left bool) model.Member {
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
