package roster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// fleetOf is members that share a limit, and the bucket with their announcements.
type fleetOf struct {
	*testing.T
	rnd     *rand.Rand
	now     time.Time
	of      int
	members []*sharer
	log     []model.Member
}

// sharer is a member that has read a part of the bucket.
type sharer struct {
	*Roster
	id    string
	read  int
	used  int
	wants int // how many it could use in addition
	dead  bool
}

func newFleetOf(t *testing.T, seed uint64, of, n int) *fleetOf {
	f := &fleetOf{T: t, rnd: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1000, 0), of: of}
	for range n {
		f.join()
	}
	return f
}

func (f *fleetOf) join() *sharer {
	s := &sharer{id: fmt.Sprintf("m%d", len(f.members))}
	s.Roster = New(model.Member{ID: s.id, Life: s.id}, ttl)
	f.members = append(f.members, s)
	for s.read < len(f.log) {
		f.next(s)
	}
	f.announce(s)
	return s
}

func (f *fleetOf) announce(s *sharer) { f.log = append(f.log, s.Beat(false, f.now)) }

// next has a member read the next announcement.
func (f *fleetOf) next(s *sharer) {
	if s.read < len(f.log) {
		s.Receive(f.log[s.read], f.now)
		s.read++
	}
}

func (f *fleetOf) take(s *sharer) bool {
	ok, _ := s.Take("work", f.of, s.wants, f.now)
	if ok {
		s.wants--
		s.used++
	}
	return ok
}

func (f *fleetOf) end(s *sharer) {
	s.used--
	s.Return("work", f.now)
}

// used returns how many are used, and fails if there are too many.
func (f *fleetOf) used(when string) (n int) {
	f.Helper()
	for _, s := range f.members {
		if !s.dead {
			n += s.used
		}
	}
	if n > f.of {
		f.Fatalf("%s: %d are used, of %d", when, n, f.of)
	}
	return n
}

// settle lets the members take what they can, until none is due and all have read everything.
func (f *fleetOf) settle() {
	for range 100 {
		again := false
		for _, s := range f.members {
			if s.dead {
				continue
			}
			for s.read < len(f.log) {
				f.next(s)
			}
			for s.wants > 0 && f.take(s) {
				again = true
			}
			f.used("settling")
			if s.Due(f.now) {
				f.announce(s)
				again = true
			}
		}
		if !again {
			return
		}
	}
	f.Fatal("the members do not agree")
}

// beats lets time pass, with the heartbeats of all members.
func (f *fleetOf) beats(d time.Duration) {
	for end := f.now.Add(d); f.now.Before(end); f.now = f.now.Add(time.Second) {
		for _, s := range f.members {
			if !s.dead {
				f.announce(s)
			}
		}
		f.settle()
	}
}

// Whatever the members want, and however late they read the announcements of each other, they never use more than the limit, and use all of
// it in the end.
func TestLimit_TheFleetNeverUsesMoreAndUsesAllOfIt(t *testing.T) {
	for seed := range uint64(300) {
		f := newFleetOf(t, seed, 1+int(seed%7), 1+int(seed%5))
		for step := range 3000 {
			s := f.members[f.rnd.IntN(len(f.members))]
			switch what := f.rnd.IntN(20); {
			case s.dead:
			case what < 8:
				f.next(s)
			case what < 12:
				if s.wants > 0 {
					f.take(s)
				}
			case what < 14:
				if s.used > 0 {
					f.end(s)
				}
			case what < 15:
				s.wants += f.rnd.IntN(4)
			case what < 17:
				if s.Due(f.now) {
					f.announce(s)
				}
			case what < 18:
				f.announce(s)
			case what < 19:
				if f.rnd.IntN(20) == 0 {
					f.now = f.now.Add(100 * time.Millisecond)
				}
			case step%500 == 0 && len(f.members) < 8:
				f.join()
			}
			f.used(fmt.Sprintf("seed %d, step %d", seed, step))
		}
		total := 0
		for _, s := range f.members {
			s.wants += 3
			total += s.wants + s.used
		}
		f.beats(10 * time.Second)
		if n := f.used("in the end"); n != min(f.of, total) {
			t.Errorf("seed %d: %d are used of %d, though %d could be", seed, n, f.of, total)
		}
	}
}

// What one member does not want, another has; what several want, they share equally.
func TestLimit_IsDividedByWhatTheMembersWant(t *testing.T) {
	f := newFleetOf(t, 1, 12, 3)
	f.settle()
	a, b, c := f.members[0], f.members[1], f.members[2]
	a.wants = 100
	f.settle()
	if a.used != 12 {
		t.Errorf("the only one that wants some has %d of 12", a.used)
	}
	b.wants, c.wants = 100, 2
	f.settle()
	for i := range 12 { // as the tasks of a end
		f.end(a)
		f.settle()
		if f.used("handing over") != 12 {
			t.Fatalf("after the end of %d tasks, not all is used", i+1)
		}
	}
	if a.used != 5 || b.used != 5 || c.used != 2 {
		t.Errorf("two that want many have %d and %d, one that wants 2 has %d", a.used, b.used, c.used)
	}
}

// What cannot be divided goes around.
func TestLimit_OfOneTheMembersTakeTurns(t *testing.T) {
	f := newFleetOf(t, 1, 1, 3)
	had := map[string]int{}
	for range 100 {
		for _, s := range f.members {
			s.wants = 10
			if s.used > 0 {
				had[s.id]++
				f.end(s)
			}
		}
		f.beats(turn)
	}
	for _, s := range f.members {
		if had[s.id] < 15 {
			t.Errorf("of 100 turns, the members had %v", had)
		}
	}
}

// A member that is gone leaves its part to the others, and one that cannot reach them takes no more.
func TestLimit_ADeadMembersPartIsFree(t *testing.T) {
	f := newFleetOf(t, 1, 4, 2)
	a, b := f.members[0], f.members[1]
	a.wants = 10
	f.settle()
	a.dead = true
	b.wants = 10
	f.settle()
	if b.used != 0 {
		t.Fatalf("the other one has %d of 4 while the first one may be live", b.used)
	}
	f.beats(ttl + time.Second)
	if b.used != 4 {
		t.Errorf("the other one has %d of 4", b.used)
	}
	f.end(b)
	b.wants = 10
	f.now = f.now.Add(ttl)
	if f.take(b) {
		t.Error("a member takes some that has not read its own announcement for long")
	}
}

// A limit in use costs no announcement beside the heartbeats, and one that is not in use is forgotten.
func TestLimit_CostsAnnouncementsOnlyWhenItsDivisionChanges(t *testing.T) {
	f := newFleetOf(t, 1, 4, 2)
	f.settle()
	if f.members[0].Limited() || len(f.log[len(f.log)-1].Limits) > 0 {
		t.Error("members announce limits that they have no use for")
	}
	a := f.members[0]
	a.wants = 1000
	f.settle()
	before := len(f.log)
	for range 900 {
		f.end(a)
		f.settle()
	}
	if n := len(f.log) - before; n > 1 {
		t.Errorf("900 tasks cost %d announcements", n)
	}
	for a.used > 0 {
		f.end(a)
	}
	a.wants = 0
	f.beats(keepsFor + 2*time.Second)
	if a.Limited() {
		t.Error("a limit that is not in use is not forgotten")
	}
}

// The names of limits are in part values of inputs: those in use are bounded, and others make room.
func TestLimit_AMemberHasABoundedNumber(t *testing.T) {
	f := newFleetOf(t, 1, 1, 1)
	f.settle()
	s := f.members[0]
	for i := range 2 * maxLimits {
		s.Take(fmt.Sprint("work.", i), 1, 1, f.now)
	}
	f.announce(s)
	m := f.log[len(f.log)-1]
	if len(m.Limits) != maxLimits {
		t.Errorf("%d limits are announced, %d are possible", len(m.Limits), maxLimits)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	f.now = f.now.Add(askedFor + wantsFor)
	s.Take("work.new", 1, 1, f.now)
	f.settle()
	if ok, _ := s.Take("work.new", 1, 1, f.now); !ok {
		t.Error("there is no room for another one though none is in use")
	}
}

// A program that lowers a limit, or a member with an earlier version of it, does not get more than the present one.
func TestLimit_CanBeLowered(t *testing.T) {
	f := newFleetOf(t, 1, 8, 1)
	s := f.members[0]
	s.wants = 4
	f.settle()
	f.of, s.wants = 3, 10
	if f.take(s) {
		t.Error("with 4 of 3 in use, another one is taken")
	}
	f.end(s)
	f.end(s)
	f.settle()
	if s.used != 3 {
		t.Errorf("%d of 3 are in use", s.used)
	}
}

// A member that has not read an announcement, because a later one had replaced it, gives up what that has claimed when it reads the later one.
func TestLimit_WhatWasClaimedInAMissedAnnouncementIsGivenUp(t *testing.T) {
	f := newFleetOf(t, 1, 4, 2)
	f.settle()
	a, b := f.members[0], f.members[1]
	a.Take("work", 4, 4, f.now)
	f.announce(a)
	for a.read < len(f.log) {
		f.next(a)
	}
	b.read = len(f.log) // the bucket does not have the announcement of a any more
	b.Take("work", 4, 4, f.now)
	f.announce(b)
	f.announce(a)
	f.next(b)
	if ok, _ := b.Take("work", 4, 4, f.now); !ok {
		t.Fatal("the member has nothing though it knows of no claim")
	}
	f.next(b)
	if ok, _ := b.Take("work", 4, 3, f.now); ok {
		t.Error("the member takes more though it has read that another one claims all of it")
	}
}
