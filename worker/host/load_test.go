package host

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle/space/inspect"
	"github.com/settlehq/settle/status"
)

// A space with more events in its lane than it has room for comes before all others, ordered by what is left;
// the others are ordered by their events.
func TestLoads_TheLargestBacklogIsFirst(t *testing.T) {
	loads := []load{
		{Load: status.Load{Space: "few", Events: 1}},
		{Load: status.Load{Space: "near", Events: 512}, unread: true, span: 2000},
		{Load: status.Load{Space: "many", Events: 40}},
		{Load: status.Load{Space: "far", Events: 0}, unread: true, span: 90_000},
		{Load: status.Load{Space: "as many", Events: 40}},
		{Load: status.Load{Space: "behind", Events: 40}, span: 50},
	}
	slices.SortFunc(loads, compareLoads)
	var got []string
	for _, l := range loads {
		got = append(got, l.Space)
	}
	if want := []string{"far", "near", "behind", "as many", "many", "few"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// The last missed times of each job of a space are kept, for a limited number of jobs.
func TestMissed_TheLastTimesOfEachJobAreKept(t *testing.T) {
	var l missedLog
	for n, m := range []struct{ space, cron string }{{"s", "a"}, {"s", "b"}, {"t", "a"}, {"s", "a"}, {"u", "a"}, {"u", "b"}, {"u", "c"}} {
		l.note(m.space, Missed{Cron: m.cron, Times: n})
	}
	var got []int
	for _, m := range l.newest() {
		got = append(got, m.Times)
	}
	if want := []int{2, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("kept times of %v, want %v", got, want)
	}
}

// A timer that is just due is handled now, and does not count as late yet.
func TestLate_IsWhatHasBeenDueForASecond(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	p := &servedPartition{hosts: map[string]*host{}}
	for name, due := range map[string]int64{"now": 1_000_000, "soon": 1_000_500, "just": 999_001, "late": 999_000, "later": 1_000, "none": 0, "at work": atOnce} {
		h := &host{space: name, inbox: newInbox(laneBacklog{}, new(atomic.Int64), 0)}
		h.published.due.Store(due)
		p.hosts[name] = h
	}
	_, late, count := loadOf([]*servedPartition{p}, now)
	if count != 2 || len(late) != 2 || late[0].Space != "later" || late[1].Space != "late" {
		t.Errorf("%d are late: %+v", count, late)
	}
}

// Reports use the core's names for causes; readers of reports do not link the core.
func TestCauses_AreThoseOfTheCore(t *testing.T) {
	for reported, core := range map[string]string{ // any order: each on its own
		status.CauseRetry: inspect.CauseRetry, status.CauseLost: inspect.CauseLost, status.CauseTurn: inspect.CauseTurn,
	} {
		if reported != core {
			t.Errorf("a report says %q where the core says %q", reported, core)
		}
	}
}
