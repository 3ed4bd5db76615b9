package membus

import (
	"cmp"
	"slices"

	"github.com/settlehq/settle/model"
)

// members is the bucket of announcements: the last one of every member. Nothing in it expires, since a Server
// has no clock; followers judge members by their beats.
type members struct {
	last      map[string]Announcement
	revision  uint64
	announced signal
}

// memberStore stores the announcements of members.
type memberStore struct {
	*data
	members members
}

// Announcement is the last announcement of a member, and its revision.
type Announcement struct {
	model.Member
	Rev uint64
}

func newMembers() members { return members{last: map[string]Announcement{}} }

// Announce replaces the member's announcement.
func (s *memberStore) Announce(m model.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members.revision++
	s.members.last[m.Key()] = Announcement{m, s.members.revision}
	s.members.announced.raise()
}

// FollowMembers returns the last announcements after revision after, oldest first; the next one closes more.
// A slow follower misses announcements that were replaced.
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
