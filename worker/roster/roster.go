package roster

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
)

// Roster is a member's view of the other members, and its own announcement. Its methods
// may be called from any goroutine.
type Roster struct {
	mu      sync.Mutex
	self    model.Member
	ttl     time.Duration
	entries map[string]*entry
	// holds are the partitions that this member serves or hands over, wants those that
	// it is about to serve. untold is set when they have changed since the last beat.
	holds  map[int]bool
	wants  map[int]*claim
	untold bool
	twin   twin
	// limits are those that this member has a use for, echoed is when its own announcement last came back.
	limits map[string]*limit
	echoed time.Time
}

type entry struct {
	member model.Member
	// received is when the member's beat last moved, by this member's clock: clocks
	// of different machines are never compared.
	received time.Time
	// silent is set when a ping had no responder, until the beat moves again.
	silent bool
	// probation is how many more beats, each in time, a member must show that had
	// stood still for the TTL: a flapping member does not move partitions back and forth.
	probation int
	// returned is when the probation began.
	returned time.Time
}

// probation of a member that had stood still and beats again.
const probation = 2

// New returns the roster of a member that knows no other yet. It reads announcements of the same role.
// A member whose beat stands still for the ttl counts as gone.
func New(self model.Member, ttl time.Duration) *Roster {
	return &Roster{
		self: self, ttl: ttl, entries: map[string]*entry{},
		holds: map[int]bool{}, wants: map[int]*claim{}, twin: twin{own: make(chan struct{})}, limits: map[string]*limit{},
	}
}

// Receive processes an announcement, including this member's own.
func (r *Roster) Receive(m model.Member, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Role != r.self.Role:
		return
	case m.ID == r.self.ID:
		r.receiveOwn(m, now)
		return
	case HasLeft(&m):
		delete(r.entries, m.ID)
		return
	}
	e := r.entries[m.ID]
	switch {
	case e == nil:
		r.entries[m.ID] = &entry{member: m, received: now}
	case m.Life != e.member.Life:
		*e = entry{member: m, received: now}
	case m.Beat == e.member.Beat || m.Life != "" && m.Beat < e.member.Beat:
		// nothing new: read again, or late
	default:
		was := *e
		*e = entry{member: m, received: now, probation: was.probationAt(now, r.ttl), returned: was.returned}
		if e.probation == probation {
			e.returned = now
		}
	}
	r.limitsReceived(&m, now)
}

// probationAt returns the probation of a member that beats again. A beat is in time if the member has not stood
// still for the ttl: a shorter limit could be one that its heartbeat never meets.
func (e *entry) probationAt(now time.Time, ttl time.Duration) int {
	switch gap := now.Sub(e.received); {
	case gap >= ttl:
		return probation
	case e.probation > 0:
		return e.probation - 1
	}
	return e.probation
}

// Suspect records that the pings of a member whose last known beat was beat had no responder.
func (r *Roster) Suspect(id string, beat uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[id]; e != nil && e.member.Beat == beat {
		e.silent = true
	}
}

// Excuse does not count the time from since to now as silence of the members
// known then: the store was away, so no announcement could arrive.
func (r *Roster) Excuse(since, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries { // any order: each on its own
		switch {
		case e.probation > 0 && e.returned.After(since):
			e.probation = 0 // it beat again, perhaps several times, before this member noticed the outage
		case since.Sub(e.received) < r.ttl:
			e.received = e.received.Add(min(now.Sub(since), now.Sub(e.received)))
		}
	}
}

// Live returns the members that are believed to be live, by id; this one always is.
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
	return !e.silent && e.probation == 0 && now.Sub(e.received) < ttl
}

// Staying returns the live members that are not about to leave: those among which the partitions
// are divided.
func (r *Roster) Staying(now time.Time) []model.Member {
	return slices.DeleteFunc(r.Live(now), func(m model.Member) bool { return m.Leaving || HasLeft(&m) })
}

// Share returns the partitions, of n, that this member is to serve.
func (r *Roster) Share(n int, now time.Time) []int {
	var mine []int
	for p, owner := range Divide(n, r.Staying(now)) {
		if owner == r.self.ID {
			mine = append(mine, p)
		}
	}
	return slices.Clip(mine)
}

// HasLeft reports whether an announcement is a member's last. Members that are not workers set Left all
// the time (see model.Member.Role), and have left when they are leaving and hold nothing any more.
func HasLeft(m *model.Member) bool {
	if m.Role == "" {
		return m.Left
	}
	return m.Leaving && len(m.Holds) == 0
}

// Self returns this member's last announcement.
func (r *Roster) Self() model.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.self
}

// Beat advances and returns this member's own announcement. After a member has left it
// stays so, even if a heartbeat is still in flight.
func (r *Roster) Beat(left bool, now time.Time) model.Member {
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
	r.announceLimits(now)
	return r.self
}
