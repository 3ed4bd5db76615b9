package ordered

import (
	"fmt"
	"testing"
	"time"
)

// A key stands still that is not done with what was read, and has not come further for a while.
func TestStuck_KeysThatAreNotDoneWithWhatWasRead(t *testing.T) {
	p := &partition{s: &server{}, read: 5, hosts: map[string]*host{}}
	for key, done := range map[string]uint64{"behind": 4, "done": 5, "beyond": 6, "all done": allDone} { // any order: each by itself
		h := &host{}
		h.low.Store(done)
		p.hosts[key] = h
	}
	now := time.Unix(1000, 0)
	p.noteStuck(now)
	if stuck := p.stuck(now); len(stuck) > 0 {
		t.Errorf("at once there are %+v", stuck)
	}
	now = now.Add(stuckAfter)
	p.noteStuck(now)
	if stuck := p.stuck(now); len(stuck) != 1 || stuck[0].Space != "behind" || !stuck[0].Since.Equal(now.Add(-stuckAfter)) {
		t.Errorf("stuck are %+v", stuck)
	}
	p.hosts["behind"].low.Store(5)
	if stuck := p.stuck(now); len(stuck) > 0 {
		t.Errorf("what has gone on since is named: %+v", stuck)
	}
}

// Those that have stood still for longest are named, in that order.
func TestFigures_TheOldestStandstillsAreNamedFirst(t *testing.T) {
	of, _ := unitHost(t)
	s, p := of.p.s, of.p
	s.peers.init(s)
	s.partitions = map[int]*partition{0: p}
	p.read, p.hosts, p.still = 5, map[string]*host{}, map[string]standstill{}
	now := time.Now()
	for n := range maxStuck + 2 {
		h, key := &host{}, fmt.Sprintf("k%02d", n)
		h.low.Store(4)
		p.hosts[key], p.still[key] = h, standstill{done: 4, since: now.Add(-time.Hour - time.Duration(n)*time.Minute)}
	}
	f := s.figures()
	if f.StuckCount != maxStuck+2 || len(f.Stuck) != maxStuck || f.Stuck[0].Space != "k21" || f.Stuck[maxStuck-1].Space != "k02" {
		t.Errorf("of %d it names %d: %+v", f.StuckCount, len(f.Stuck), f.Stuck)
	}
}
