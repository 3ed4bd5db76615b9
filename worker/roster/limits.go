package roster

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/settlehq/settle/model"
)

// limit is a number that all members together may not exceed, such as the tasks of an action that are performed at the same time.
// Each member announces how much it wants and how much it claims, and has what those that it has read before its own
// announcement have left (docs/adr/0066). So whatever the members believe about a fair division, the sum of what they have is not
// more than the limit: the order of the bucket decides, which is the same for all of them.
type limit struct {
	of int
	// used is what is used now, and waiting what could be used in addition, as of asked.
	used, waiting int
	asked         time.Time
	// has is what this member may use.
	has int
	// echoed is its claim in its last announcement that has come back. sent are those after that, the oldest first.
	echoed int
	sent   []sent
	// last is the last announcement, about is when it was last about a use.
	last  model.LimitClaim
	about time.Time
}

// sent is an announcement that has not come back.
type sent struct {
	beat  uint64
	claim int
}

const (
	// maxLimits bounds the limits that a member announces. Those that are not in use make room.
	maxLimits = 256
	// askedFor is how long it counts that something waits: what waits asks again before.
	askedFor = 3 * time.Second
	// wantsFor is how long a member wants what it does not use any more, and keepsFor how long it claims that, unless others want it.
	wantsFor = time.Second
	keepsFor = 30 * time.Second
	// turn is how long a member has what cannot be divided.
	turn = 5 * time.Second
)

// Take uses one of a limit, unless that would be more than this member has; waiting is how many it could use now. Return gives it back. due
// reports that there is something to announce. What cannot be taken now is to be asked for again, within some seconds.
func (r *Roster) Take(name string, of, waiting int, now time.Time) (ok, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.limit(name, of, waiting, now)
	if l == nil {
		return false, false
	}
	if l.used < r.may(name, l, now) {
		l.used++
		l.waiting--
		ok = true
	}
	return ok, r.limitDue(name, l, now)
}

// Return gives back one that was taken.
func (r *Roster) Return(name string, now time.Time) (due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.limits[name]
	if l == nil || l.used == 0 {
		return false
	}
	l.used--
	l.about = now
	return r.limitDue(name, l, now)
}

// Part returns how much of a limit this member may use, for one that is not taken and given back, such as a rate. See Take.
func (r *Roster) Part(name string, of, waiting int, now time.Time) (has int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.limit(name, of, waiting, now)
	if l == nil {
		return 0, false
	}
	return r.may(name, l, now), r.limitDue(name, l, now)
}

// Limited reports whether any limit is known.
func (r *Roster) Limited() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.limits) > 0
}

// limit returns a limit that is asked for, nil if there are too many in use. r.mu is held, here and below.
func (r *Roster) limit(name string, of, waiting int, now time.Time) *limit {
	l := r.limits[name]
	if l == nil {
		if len(r.limits) >= maxLimits && !r.dropLimit(now) {
			return nil
		}
		l = &limit{}
		r.limits[name] = l
	}
	l.of, l.waiting, l.asked, l.about = of, max(waiting, 0), now, now
	return l
}

// dropLimit forgets a limit that is not in use, and reports whether there was one. Its claim ends with the next announcement.
func (r *Roster) dropLimit(now time.Time) bool {
	for name, l := range r.limits { // any order: each is as good
		if l.need(now) == 0 && now.Sub(l.about) >= wantsFor {
			delete(r.limits, name)
			r.untold = true
			return true
		}
	}
	return false
}

// need returns how much could be used.
func (l *limit) need(now time.Time) int {
	if now.Sub(l.asked) >= askedFor {
		return min(l.used, l.of)
	}
	return min(l.used+l.waiting, l.of)
}

// want returns what to announce as wanted: a power of two, so that there are few announcements about it.
func (l *limit) want(now time.Time) int {
	switch n := l.need(now); {
	case n == 0 && now.Sub(l.about) < wantsFor:
		return min(l.last.Want, l.of)
	case n <= l.last.Want && n > l.last.Want/4 && l.last.Want <= l.of:
		return l.last.Want
	default:
		return min(atLeast(n), l.of)
	}
}

// atLeast returns the least power of two that is not less than n, 0 for 0.
func atLeast(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return min(p, n*p)
}

// others returns the claims of the other members that may be at work. One on probation counts: it may not have stopped.
func (r *Roster) others(name string, now time.Time) (claims []model.LimitClaim, sum int) {
	for id, e := range r.entries { // any order: they are sorted where that matters
		if e.silent || now.Sub(e.received) >= r.ttl {
			continue
		}
		for _, c := range e.member.Limits {
			if c.Name == name {
				claims = append(claims, model.LimitClaim{Name: id, Want: c.Want, Claim: c.Claim})
				sum += c.Claim
			}
		}
	}
	return claims, sum
}

// may returns how much this member may use now.
func (r *Roster) may(name string, l *limit, now time.Time) int {
	if now.Sub(r.echoed) > r.ttl/2 { // the others may count this member as gone soon
		return 0
	}
	_, others := r.others(name, now)
	bound := l.echoed
	for _, s := range l.sent {
		bound = min(bound, s.claim)
	}
	l.has = min(max(l.has, min(bound, l.of-others)), l.of)
	return min(l.has, r.fair(name, l, now))
}

// fair returns what this member is to claim: its part, more while no other lacks that, and less while others claim it. To claim what
// others have would keep a third one from what is free.
func (r *Roster) fair(name string, l *limit, now time.Time) int {
	others, sum := r.others(name, now)
	lacking := 0
	for _, c := range others {
		lacking += max(c.Want-c.Claim, 0)
	}
	claim := max(r.partOf(name, l, others, now), l.has-lacking)
	return max(min(claim, max(l.has, l.of-sum)), l.used)
}

// partOf divides the limit among those that want some of it, equally, where none gets more than it wants. What remains goes to some of
// those that want more, which take turns.
func (r *Roster) partOf(name string, l *limit, others []model.LimitClaim, now time.Time) int {
	mine := l.want(now)
	wants := append(others, model.LimitClaim{Name: r.self.ID, Want: mine}) //nolint:gocritic // a list of its own
	upTo := func(level int) (sum int) {
		for _, c := range wants {
			sum += min(c.Want, level)
		}
		return sum
	}
	level := sort.Search(l.of, func(n int) bool { return upTo(n+1) > l.of })
	rest := l.of - upTo(level)
	if mine <= level || rest == 0 {
		return min(mine, level)
	}
	at := strconv.FormatInt(now.UnixMilli()/turn.Milliseconds(), 10)
	wants = slices.DeleteFunc(wants, func(c model.LimitClaim) bool { return c.Want <= level })
	slices.SortFunc(wants, func(a, b model.LimitClaim) int {
		return cmp.Or(cmp.Compare(lot(name, a.Name, at), lot(name, b.Name, at)), cmp.Compare(a.Name, b.Name))
	})
	if slices.IndexFunc(wants, func(c model.LimitClaim) bool { return c.Name == r.self.ID }) < rest {
		return level + 1
	}
	return level
}

// lot decides whose turn it is.
func lot(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p + "\x00")) // never fails
	}
	x := h.Sum64() // whose high bits depend little on the last byte
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// limitDue reports whether a limit is to be announced.
func (r *Roster) limitDue(name string, l *limit, now time.Time) bool {
	return l.want(now) != l.last.Want || r.fair(name, l, now) != l.last.Claim
}

// limitsDue reports whether any limit is to be announced.
func (r *Roster) limitsDue(now time.Time) bool {
	for name, l := range r.limits { // any order: whether there is one
		if r.limitDue(name, l, now) {
			return true
		}
	}
	return false
}

// announceLimits puts the limits into this member's announcement.
func (r *Roster) announceLimits(now time.Time) {
	r.self.Limits = nil
	for name, l := range r.limits { // any order: sorted below
		if l.need(now) == 0 && now.Sub(l.about) >= keepsFor {
			delete(r.limits, name)
			continue
		}
		l.last = model.LimitClaim{Name: name, Want: l.want(now), Claim: r.fair(name, l, now)}
		l.has = min(l.has, l.last.Claim)
		l.sent = append(l.sent, sent{r.self.Beat, l.last.Claim})
		if len(l.sent) > maxSent { // the oldest are those of announcements that were not stored
			l.sent[1].claim = min(l.sent[0].claim, l.sent[1].claim)
			l.sent = l.sent[1:]
		}
		r.self.Limits = append(r.self.Limits, l.last)
	}
	slices.SortFunc(r.self.Limits, func(a, b model.LimitClaim) int { return cmp.Compare(a.Name, b.Name) })
}

// maxSent bounds the announcements of a limit that have not come back.
const maxSent = 64

// limitsEchoed records that this member's own announcement has come back.
func (r *Roster) limitsEchoed(m *model.Member, now time.Time) {
	r.echoed = now
	for _, l := range r.limits { // any order: each on its own
		for len(l.sent) > 0 && l.sent[0].beat <= m.Beat {
			l.echoed = l.sent[0].claim
			l.sent = l.sent[1:]
		}
	}
}

// limitsReceived gives up what another member claims. That is only needed if this one has not read each of the other's announcements,
// because a later one had replaced it.
func (r *Roster) limitsReceived(m *model.Member, now time.Time) {
	for _, c := range m.Limits {
		if l := r.limits[c.Name]; l != nil {
			_, others := r.others(c.Name, now)
			l.has = max(min(l.has, l.of-others), l.used)
		}
	}
}
