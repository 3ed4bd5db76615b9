package console

import (
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// What a coordinator knows about why it is behind is said with it.
func TestStall_SaysWhatTheCoordinatorKnows(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]fleet.Member{
		"": {ID: "c1", State: fleet.Here},
		"the lane of partition 3, to which space bank belongs, has no room":           {ID: "c1", Full: []model.FullLane{{Partition: 3, Space: "bank"}}},
		"the NATS user of c1 lacks a permission: publish to settle.lane.0.bank.pay.1": {ID: "c1", Noticed: &coordinator.Figures{Denied: "publish to settle.lane.0.bank.pay.1"}},
		"c1 does not answer": {ID: "c1", State: fleet.Silent},
	} {
		if got := whyBehind(&fleet.Fleet{Coordinators: []fleet.Member{{ID: "c0", State: fleet.Here}, m}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The position of a partition is the same since it was noted with something after it; each step begins that anew.
func TestStall_BeginsAnewWithEachStep(t *testing.T) {
	t.Parallel()
	var s stalls
	begin := time.Unix(1000, 0)
	for _, step := range []struct {
		after                time.Duration
		released, unreleased uint64
		unread               string
		since                time.Duration
	}{
		{0, 5, 1, "", 0},
		{9 * time.Second, 5, 1, "", 0},
		{10 * time.Second, 5, 2, "", 0},
		{11 * time.Second, 5, 2, "no answer", 11 * time.Second},
		{12 * time.Second, 5, 2, "", 0},
		{13 * time.Second, 6, 1, "", 13 * time.Second},
		{23 * time.Second, 6, 1, "", 13 * time.Second},
		{24 * time.Second, 6, 0, "", 24 * time.Second},
		{60 * time.Second, 6, 0, "", 60 * time.Second},
	} {
		p := &fleet.Partition{Released: step.released, Unreleased: step.unreleased, Unread: step.unread}
		since, known := s.note(p, begin.Add(step.after))
		if known != (step.after >= 13*time.Second || step.unread != "") || !since.Equal(begin.Add(step.since)) {
			t.Errorf("%+v: since %v, known: %v", step, since.Sub(begin), known)
		}
	}
}

// A partition stalls since its position is the same, and not before the first entry after it was stored: the console may have noted the position long ago.
// What was so before the console has noted it is known by that entry.
func TestStall_BeginsWithTheEntry(t *testing.T) {
	t.Parallel()
	noted := time.Unix(1000, 0)
	before, after := noted.Add(-time.Minute), noted.Add(time.Minute)
	for _, c := range []struct {
		oldest time.Time
		known  bool
		want   time.Time
	}{
		{before, true, noted},
		{after, true, after},
		{time.Time{}, true, noted},
		{before, false, before},
		{after, false, after},
		{time.Time{}, false, noted},
	} {
		s := stall{oldest: c.oldest}
		if s.begin(noted, c.known); !s.Since.Equal(c.want) {
			t.Errorf("%+v: since %v", c, s.Since)
		}
	}
}

// A commit names the event that was handled in it, and the other spaces to which it sends; the first that sends to others is the one that is named.
func TestStall_NamesTheFirstThatSendsToOthers(t *testing.T) {
	t.Parallel()
	var s stall
	delivered := func(send *model.Send) bool { return send.ID == "delivered" }
	s.take(&model.Commit{Space: "a", Txs: []model.Tx{{By: "handle tidy", Receipt: &model.Receipt{Event: "t1"}, Sends: []model.Send{{To: "a"}}}}}, delivered)
	if s.First != nil {
		t.Errorf("what stays in its space is not released by a coordinator: %+v", s.First)
	}
	s.take(&model.Commit{Space: "a", Txs: []model.Tx{{By: "handle order", Receipt: &model.Receipt{Event: "o0"}, Sends: []model.Send{{To: "z", ID: "delivered"}}}}}, delivered)
	if s.First != nil {
		t.Errorf("what is in its lane is delivered, although its position is not saved: %+v", s.First)
	}
	s.take(&model.Commit{Space: "a", Txs: []model.Tx{{By: "handle order", Receipt: &model.Receipt{Event: "o1"}, Sends: []model.Send{{To: "b"}, {To: "c"}, {To: "b"}, {To: "d"}, {To: "e"}, {To: "f"}}}}}, delivered)
	if want := "what order of space a sends to b, c, d and 2 others is the first that is not delivered"; s.Text() != want {
		t.Errorf("%q, want %q", s.Text(), want)
	}
}

// Events that wait for long, although no space of their partition is stuck, need attention: the overview names the partition and its busiest space, and
// leads to what takes time. Events that their worker has not read wait for their handlers' commits to be saved, and those behind a stuck space for that.
func TestConcerns_APartitionThatLags(t *testing.T) {
	t.Parallel()
	now := time.Now()
	lag := fleet.Partition{Number: 0, Served: []string{"w1"}, Events: 3000, Waiting: 40, Oldest: now.Add(-time.Minute), Busiest: "hot"}
	stuck := fleet.Stuck{Stuck: status.Stuck{Space: "hot"}}
	for name, c := range map[string]struct {
		change func(p *fleet.Partition)
		stuck  []fleet.Stuck
		want   string
	}{
		"lags":      {func(*fleet.Partition) {}, nil, "Partition 0 is behind: 3,000 events wait for their turn, most of them for space hot"},
		"one":       {func(p *fleet.Partition) { p.Events, p.Busiest = 1, "" }, nil, "Partition 0 is behind: 1 event waits for its turn"},
		"young":     {func(p *fleet.Partition) { p.Oldest = now.Add(-time.Second) }, nil, ""},
		"unsaved":   {func(p *fleet.Partition) { p.Waiting = 0 }, nil, ""},
		"unserved":  {func(p *fleet.Partition) { p.Served = nil }, nil, ""},
		"is stuck":  {func(*fleet.Partition) {}, []fleet.Stuck{stuck}, ""},
		"no events": {func(p *fleet.Partition) { p.Events = 0 }, nil, ""},
	} {
		p := lag
		c.change(&p)
		f := &fleet.Fleet{At: now, Partitions: []fleet.Partition{p}}
		title := ""
		for _, one := range concerns(f, c.stuck, &tally{}, nil) {
			if strings.HasPrefix(one.Key, "lags") {
				title = one.Title
				if one.URL != "/fleet#what-takes-time" || one.Since != p.Oldest {
					t.Errorf("%s: %+v", name, one)
				}
			}
		}
		if title != c.want {
			t.Errorf("%s: %q, want %q", name, title, c.want)
		}
	}
}
