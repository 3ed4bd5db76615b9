package roster

import (
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

var patience = Patience{Holder: 5 * time.Second, Echo: time.Second}

func (r *rosterAt) may(p int) bool { return r.May(p, patience, r.now) }

func (r *rosterAt) has(id string, beat uint64, holds, wants []int) {
	r.Receive(model.Member{ID: id, Beat: beat, Holds: holds, Wants: wants}, r.now)
}

// wantMay checks whether a partition may be served.
func (r *rosterAt) wantMay(p int, want bool, when string) {
	r.Helper()
	if got := r.may(p); got != want {
		r.Errorf("%s: may serve partition %d: %v, want %v", when, p, got, want)
	}
}

// wantAsked checks what the next announcement requests, and returns it.
func (r *rosterAt) wantAsked(when string, partitions ...int) model.Member {
	r.Helper()
	m := r.Beat(false, time.Now())
	if !slices.Equal(m.Wants, partitions) {
		r.Errorf("%s: requested %v, want %v", when, m.Wants, partitions)
	}
	return m
}

func TestClaim_AFreePartitionIsRequestedAndServedWhenTheRequestArrives(t *testing.T) {
	r := newRosterAt(t)
	r.has("a", 1, []int{1}, nil)
	r.wantMay(1, false, "while another holds it")
	r.wantAsked("while another holds it")
	r.has("a", 2, nil, nil)
	r.wantMay(1, false, "before it was requested")
	if !r.Due(time.Now()) {
		t.Error("the claim was not announced at once")
	}
	m := r.wantAsked("without an owner", 1)
	r.wantMay(1, false, "before its own announcement arrived")
	r.Receive(m, r.now)
	r.wantMay(1, true, "when its own announcement has arrived")
}

func TestClaim_TheSecondRequestWaits(t *testing.T) {
	r := newRosterAt(t)
	r.has("a", 1, nil, []int{1})
	r.wantMay(1, false, "while another requests it")
	r.wantAsked("while another requests it")
}

func TestClaim_TheSecondAnnouncementWaits(t *testing.T) {
	r := newRosterAt(t)
	r.wantMay(1, false, "at first")
	m := r.wantAsked("at first", 1)
	r.has("a", 1, nil, []int{1})
	r.Receive(m, r.now)
	r.wantMay(1, false, "after another's claim")
	r.wantAsked("after another's claim")
	r.pass(patience.Echo)
	r.wantMay(1, false, "after another's claim, later")
	r.has("a", 2, nil, nil)
	r.wantMay(1, false, "when the other has released it")
	r.wantAsked("when the other has released it", 1)
}

// A member that lost its patience has begun although another had requested the partition before: the claim
// waits for it.
func TestClaim_WaitsForAMemberThatHasBegun(t *testing.T) {
	r := newRosterAt(t)
	r.wantMay(1, false, "at first")
	r.wantAsked("at first", 1)
	r.has("a", 1, []int{1}, nil)
	r.pass(patience.Echo)
	r.wantMay(1, false, "while another serves it")
}

func TestClaim_AnEarlierClaimDoesNotCount(t *testing.T) {
	r := newRosterAt(t)
	r.wantMay(1, false, "at first")
	old := r.wantAsked("at first", 1)
	r.LetGo(1)
	r.wantMay(1, false, "again")
	r.Receive(old, r.now)
	r.wantMay(1, false, "before it is requested again")
	r.wantAsked("again", 1)
	r.Receive(old, r.now)
	r.wantMay(1, false, "before its own announcement arrived")
}

func TestClaim_WaitsAreBounded(t *testing.T) {
	r := newRosterAt(t)
	r.has("a", 1, []int{1}, nil)
	r.wantMay(1, false, "while another holds it")
	r.pass(patience.Holder - 1)
	r.wantMay(1, false, "while another may drain it")
	r.pass(1)
	r.wantMay(1, true, "when another has had the time to drain it")
	r.wantMay(2, false, "at first")
	r.pass(patience.Echo)
	r.wantMay(2, true, "when its own announcement does not arrive")
}

func TestClaim_HoldAndLetGoAreAnnounced(t *testing.T) {
	r := newRosterAt(t)
	r.Hold(1, r.now)
	if m := r.Beat(false, time.Now()); !slices.Equal(m.Holds, []int{1}) || r.Due(time.Now()) {
		t.Errorf("holds %v", m.Holds)
	}
	r.LetGo(1)
	if !r.Due(time.Now()) {
		t.Error("the release of a partition was not announced, and its next owner waits for that")
	}
	if m := r.Beat(false, time.Now()); len(m.Holds) > 0 {
		t.Errorf("holds %v", m.Holds)
	}
	r.may(2)
	r.LetGo(2) // never requested
	r.Beat(false, time.Now())
	r.LetGo(2)
	if r.Due(time.Now()) {
		t.Error("an announcement is due although nothing was released")
	}
}

// A worker that is about to leave is live until it has left, but gets no partitions.
func TestRoster_ALeavingMemberGetsNoPartitions(t *testing.T) {
	r := newRosterAt(t)
	r.Receive(model.Member{ID: "a", Beat: 1, Leaving: true, Holds: []int{1}}, r.now)
	r.wantLive("a me")
	if staying := r.Staying(r.now); len(staying) != 1 || staying[0].ID != "me" {
		t.Errorf("the partitions are divided among %v", staying)
	}
	if !r.Contested(1, r.now) {
		t.Error("partitions that it still holds count as free")
	}
}
