package membus

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/model"
)

// members is the bucket of announcements: the last one of every member. Nothing
// in it expires, since a Server has no clock; followers judge by the beat.
type members struct {
	last      map[string]Announcement
	revision  uint64
	announced signal
}

// memberStore are the announcements of members.
type memberStore struct {
	*data
	members members
}

// Announcement is what a member said last, and the revision under which it did.
type Announcement struct {
	model.Member
	Rev uint64
}

func newMembers() members { return members{last: map[string]Announcement{}} }

// Announce replaces what the member said before.
func (s *memberStore) Announce(m model.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members.revision++
	s.members.last[m.Key()] = Announcement{m, s.members.revision}
	s.members.announced.raise()
}

// FollowMembers returns the last announcements behind revision after, oldest
// first; more is closed by the next one. A follower that looks too seldom misses those that
// were replaced meanwhile.
func (s *memberStore) FollowMembers(after uint64) (found []Announcement, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// any order: sorted below
	for _, a := range s.members.last {
		if a.Rev > after {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b Announcement) int { return cmp.Compare(a.Rev, b.Rev) })
	return found, s.members.announced.wait()
}
