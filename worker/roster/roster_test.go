package roster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

const ttl = 10 * time.Second

// rosterAt is a roster with a clock that the test controls.
type rosterAt struct {
	*testing.T
	*Roster
	now time.Time
}

func newRosterAt(t *testing.T) *rosterAt {
	return &rosterAt{T: t, Roster: New(model.Member{ID: "me"}, ttl), now: time.Unix(1000, 0)}
}

func (r *rosterAt) pass(d time.Duration) { r.now = r.now.Add(d) }

func (r *rosterAt) says(id string, beat uint64) { r.Receive(model.Member{ID: id, Beat: beat}, r.now) }

func (r *rosterAt) wantLive(ids string) {
	r.Helper()
	var got []string
	for _, m := range r.Live(r.now) {
		got = append(got, m.ID)
	}
	if want := strings.Fields(ids); !slices.Equal(got, want) {
		r.Errorf("live members: %v, want %v", got, want)
	}
}

func TestRoster_AMemberIsLiveFromItsFirstBeatUntilTheTTL(t *testing.T) {
	r := newRosterAt(t)
	r.wantLive("me")
	r.says("a", 1)
	r.says("z", 7)
	r.wantLive("a me z")
	r.pass(ttl - 1)
	r.wantLive("a me z")
	r.says("a", 2)
	r.pass(1)
	r.wantLive("a me")
}

func TestRoster_TheSameBeatAgainIsNoSignOfLife(t *testing.T) {
	r := newRosterAt(t)
	r.says("a", 1)
	r.pass(ttl)
	r.says("a", 1) // the bucket is read again after a reconnect
	r.wantLive("me")
	for beat := uint64(2); beat <= 2+probation; beat++ {
		r.says("a", beat)
	}
	r.wantLive("a me")
}

// A member at the edge of the TTL would otherwise move its partitions with every beat.
func TestRoster_AStalledMemberIsBackWhenItBeatsRegularly(t *testing.T) {
	r := newRosterAt(t)
	r.says("a", 1)
	beat := uint64(1)
	for range 5 { // sparse beats
		r.pass(ttl)
		beat++
		r.says("a", beat)
		r.wantLive("me")
	}
	for range probation {
		r.wantLive("me")
		r.pass(ttl / 20)
		beat++
		r.says("a", beat)
	}
	r.wantLive("a me")
	r.pass(ttl)
	r.Receive(model.Member{ID: "a", Beat: 1, Life: "another"}, r.now) // restarted
	r.wantLive("a me")
}

// A member that beats less than three times per TTL also comes back: a member that started in the meantime
// has never missed it, and from then on the two would divide the partitions differently.
func TestRoster_AMemberThatBeatsSlowlyComesBackFromProbation(t *testing.T) {
	r := newRosterAt(t)
	r.says("a", 1)
	r.pass(2 * ttl)
	r.wantLive("me")
	r.says("a", 2)
	for beat := uint64(3); beat < 3+probation; beat++ {
		r.wantLive("me")
		r.pass(ttl * 2 / 3)
		r.says("a", beat)
	}
	r.wantLive("a me")
}

// A later request of the same process can overtake an earlier one.
func TestRoster_ALateAnnouncementIsIgnored(t *testing.T) {
	r := newRosterAt(t)
	r.Receive(model.Member{ID: "a", Beat: 3, Life: "l", Holds: []int{1}}, r.now)
	r.Receive(model.Member{ID: "a", Beat: 2, Life: "l"}, r.now)
	if !r.Contested(1, r.now) {
		t.Error("an older announcement replaced a newer one")
	}
}

func TestRoster_ADepartedMemberIsGoneAtOnceAndBackWithItsNextBeat(t *testing.T) {
	r := newRosterAt(t)
	r.says("a", 5)
	r.Receive(model.Member{ID: "a", Beat: 6, Left: true}, r.now)
	r.wantLive("me")
	r.says("a", 1) // restarted under its old name
	r.wantLive("a me")
}

// Workers divide partitions among themselves, and so do servers of package ordered.
func TestRoster_OnlyMembersOfOneRoleCount(t *testing.T) {
	r := newRosterAt(t)
	r.Receive(model.Member{ID: "o", Beat: 1, Role: model.RoleOrdered, Left: true}, r.now)
	r.wantLive("me")
	r.Roster = New(model.Member{ID: "me", Role: model.RoleOrdered, Left: true}, ttl)
	r.says("a", 1)
	r.Receive(model.Member{ID: "c", Beat: 1, Role: model.RoleCoordinator, Left: true}, r.now)
	r.Receive(model.Member{ID: "o", Beat: 1, Role: model.RoleOrdered, Left: true}, r.now)
	r.wantLive("me o")
	if n := len(r.Staying(r.now)); n != 2 {
		t.Errorf("the partitions are divided among %d, want both", n)
	}
	r.Receive(model.Member{ID: "o", Beat: 2, Role: model.RoleOrdered, Left: true, Leaving: true}, r.now)
	r.wantLive("me")
}

func TestRoster_DepartedMembersAreForgotten(t *testing.T) {
	r := newRosterAt(t)
	for _, id := range []string{"a", "b", "c"} {
		r.says(id, 1)
		r.Receive(model.Member{ID: id, Beat: 2, Left: true}, r.now)
		r.Receive(model.Member{ID: id, Beat: 2, Left: true}, r.now) // read again
	}
	if len(r.entries) != 0 {
		t.Errorf("%d members that have left are kept, which would fill the memory over time", len(r.entries))
	}
}

func TestRoster_ASilentProcessIsGoneAtOnceAndBackWithItsNextBeat(t *testing.T) {
	r := newRosterAt(t)
	r.says("a", 3)
	r.Suspect("a", 3)
	r.wantLive("me")
	r.says("a", 3)
	r.wantLive("me")
	r.says("a", 4)
	r.wantLive("a me")
}

// An unanswered ping may be older than a beat that has arrived since.
func TestRoster_ASuspicionOfAnOlderBeatCountsForNothing(t *testing.T) {
	r := newRosterAt(t)
	r.says("a", 3)
	r.says("a", 4)
	r.Suspect("a", 3)
	r.Suspect("nobody", 1)
	r.wantLive("a me")
}

func TestRoster_OwnEarlierAnnouncementsAreIgnored(t *testing.T) {
	r := newRosterAt(t)
	r.Receive(model.Member{ID: "me", Beat: 99, Left: true, Weight: 7}, r.now)
	r.wantLive("me")
	if m := r.Beat(false, time.Now()); m.Beat != 1 || m.Left {
		t.Errorf("the first beat is %+v", m)
	}
}

// During an outage of the store no member can be heard, so none is suspected.
func TestRoster_TimeWithoutTheStoreDoesNotCount(t *testing.T) {
	r := newRosterAt(t)
	r.says("hung", 1)
	r.pass(ttl / 2)
	r.says("a", 1)
	r.pass(ttl / 2) // "hung" has stood still for too long
	since := r.now
	r.pass(10 * ttl)
	r.Excuse(since, r.now)
	r.wantLive("a me")
	r.pass(ttl/2 - 1)
	r.wantLive("a me")
	r.pass(1)
	r.wantLive("me")
}

// After an outage, announcements of another member may arrive before this member's own is stored. However many there
// were, the outage is not held against the other; a stand-still before the outage is.
func TestRoster_AnnouncementsThatArriveBeforeTheOutageIsNoticed(t *testing.T) {
	for _, beats := range []uint64{1, 2} {
		r := newRosterAt(t)
		r.says("a", 1)
		r.says("hung", 1)
		r.pass(2 * ttl)
		r.says("hung", 2)
		r.says("a", 2)
		r.says("a", 3)
		r.says("a", 4)
		since := r.now
		r.pass(2 * ttl)
		for n := range beats {
			r.says("a", 5+n)
		}
		r.Excuse(since, r.now)
		r.wantLive("a me")
	}
}

func TestRoster_TheLastAnnouncementIsTheDeparture(t *testing.T) {
	r := newRosterAt(t)
	r.Beat(false, time.Now())
	if m := r.Beat(true, time.Now()); !m.Left {
		t.Errorf("the last announcement is %+v", m)
	}
	if m := r.Beat(false, time.Now()); !m.Left {
		t.Error("a heartbeat after the departure brings the member back")
	}
}
