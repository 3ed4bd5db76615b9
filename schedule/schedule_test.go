package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// occurrences lists the next n occurrences of a definition after a time, in the zone of the definition.
func occurrences(t *testing.T, d Definition, after string, n int) string {
	t.Helper()
	d.Workflow = "w"
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation(d.Zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, after)
	if err != nil {
		t.Fatal(err)
	}
	x, err := d.timing("k", seconds(at.UnixMilli()))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for next := x.next(at.UnixMilli()); next != 0 && len(list) < n; next = x.next(next) {
		list = append(list, time.UnixMilli(next).In(zone).Format("01-02T15:04:05-0700"))
	}
	return strings.Join(list, " ")
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// On a day on which clocks change, a schedule with fixed hours has one occurrence: later by as much as the clocks were put
// forward, or the first of two. One of every hour follows elapsed time, and so does an interval.
func TestNext_WhenClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d           Definition
		after, want string
	}{
		{Definition{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, "2026-03-28T00:00:00Z", "03-28T02:30:00+0100 03-29T03:30:00+0200 03-30T02:30:00+0200"},
		{Definition{Cron: "30 2 * * *", Zone: "Europe/Berlin"}, "2026-10-24T00:00:00Z", "10-24T02:30:00+0200 10-25T02:30:00+0200 10-26T02:30:00+0100"},
		{Definition{Cron: "0 * * * *", Zone: "Europe/Berlin"}, "2026-10-24T23:30:00Z", "10-25T02:00:00+0200 10-25T02:00:00+0100 10-25T03:00:00+0100"},
		{Definition{Cron: "0 * * * *", Zone: "Europe/Berlin"}, "2026-03-29T00:00:00Z", "03-29T03:00:00+0200 03-29T04:00:00+0200 03-29T05:00:00+0200"},
		{Definition{Every: 24 * time.Hour, Start: at("2026-10-24T01:00:00Z")}, "2026-10-20T00:00:00Z", "10-24T01:00:00+0000 10-25T01:00:00+0000 10-26T01:00:00+0000"},
		{Definition{Every: time.Hour, End: at("2026-10-20T02:00:00Z")}, "2026-10-20T00:00:00Z", "10-20T01:00:00+0000"},
		{Definition{Cron: "0 3 * * *", Start: at("2026-10-20T03:00:00Z"), End: at("2026-10-22T03:00:00Z")}, "2026-01-01T00:00:00Z", "10-20T03:00:00+0000 10-21T03:00:00+0000"},
	} {
		if have := occurrences(t, c.d, c.after, 3); have != c.want {
			t.Errorf("%s after %s: %s, want %s", c.d.When(), c.after, have, c.want)
		}
	}
}

func TestCheck_RefusesWithWords(t *testing.T) {
	t.Parallel()
	hour := Definition{Workflow: "w", Every: time.Hour}
	for want, change := range map[string]func(d *Definition){
		"workflow":                      func(d *Definition) { d.Workflow = "a b" },
		"give one of them":              func(d *Definition) { d.Cron = "0 3 * * *" },
		"zone is for cron":              func(d *Definition) { d.Zone = "UTC" },
		"whole seconds, between 1s":     func(d *Definition) { d.Every = 1500 * time.Millisecond },
		"jitter is -1s":                 func(d *Definition) { d.Jitter = -time.Second },
		"max is -1":                     func(d *Definition) { d.Max = -1 },
		"start is 2026":                 func(d *Definition) { d.Start = at("2026-01-01T00:00:00.5Z") },
		"is not after the start":        func(d *Definition) { d.Start, d.End = at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z") },
		"overlap is \"x\"":              func(d *Definition) { d.Overlap = "x" },
		"the overlap is \"skip\"":       func(d *Definition) { d.Queue = 2 },
		"queue is 101":                  func(d *Definition) { d.Overlap, d.Queue = Queue, 101 },
		"catch_up is 1s":                func(d *Definition) { d.CatchUp = time.Second },
		"catch_up_max is 101":           func(d *Definition) { d.CatchUpMax = 101 },
		"argument":                      func(d *Definition) { d.TimeAs = "a b" },
		"expression \"0 0 30 2 *\"":     func(d *Definition) { d.Every, d.Cron = 0, "0 0 30 2 *" },
		"has 6 fields":                  func(d *Definition) { d.Every, d.Cron = 0, "0 0 0 1 1 *" },
		"the zone apart":                func(d *Definition) { d.Every, d.Cron = 0, "CRON_TZ=Europe/Berlin 0 3 * *" },
		"have at most 100":              func(d *Definition) { d.Every, d.Cron = 0, strings.Repeat("0", 101) },
		"zone \"UTC 0 3\": write a":     func(d *Definition) { d.Every, d.Cron, d.Zone = 0, "0 3 * * *", "UTC 0 3" },
		"\"Europe/Atlantis\" is not kn": func(d *Definition) { d.Every, d.Cron, d.Zone = 0, "0 3 * * *", "Europe/Atlantis" },
	} {
		d := hour
		change(&d)
		if err := d.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A definition as clients send it, and as a space stores it, with durations as texts.
func TestReadDefinition_IsTheInverseOfValue(t *testing.T) {
	t.Parallel()
	d := Definition{
		Workflow: "w", Cron: "0 3 * * *", Zone: "Europe/Berlin", Jitter: 90 * time.Second, Start: at("2026-01-01T00:00:00Z"), End: at("2027-01-01T00:00:00Z"),
		Max: 5, Overlap: Queue, Queue: 3, CatchUp: 7 * 24 * time.Hour, CatchUpMax: 4, TimeAs: "day",
	}
	v, err := d.Value()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"catch_up":"168h","catch_up_max":4,"cron":"0 3 * * *","end":"2027-01-01T00:00:00Z","jitter":"1m30s","max":5,"overlap":"queue","queue":3,"start":"2026-01-01T00:00:00Z","time_as":"day","workflow":"w","zone":"Europe/Berlin"}`
	if v.String() != want {
		t.Error(v)
	}
	if again, err := ReadDefinition(v); err != nil || again != d {
		t.Errorf("%+v, %v", again, err)
	}
	week, err := v.Set(model.Path{"catch_up"}, model.String("7d"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ReadDefinition(week); err != nil || again != d {
		t.Errorf("%+v, %v", again, err)
	}
	for d, want := range map[time.Duration]string{10 * time.Second: "10s", 30 * time.Minute: "30m", 90 * time.Minute: "1h30m", 20 * time.Hour: "20h"} {
		if have := (&Definition{Every: d}).When(); have != "every "+want {
			t.Error(have)
		}
	}
}

// The limit counts occurrences that started a run or queued one, from when the times were set.
func TestRedefine_MaxCountsFromWhenTheTimesWereSet(t *testing.T) {
	t.Parallel()
	d := Definition{Workflow: "w", Every: time.Minute, Max: 2, Overlap: Allow}
	s, err := New("s", "n", d, noon)
	if err != nil {
		t.Fatal(err)
	}
	now, none := noon, func(string) bool { return false }
	pass := func(minutes int) string {
		for range minutes {
			now += 60_000
			s.Turn(Moment{Now: now, Exists: none})
		}
		return fmt.Sprintf("%d %s %v", s.Started, s.Status, s.Wake(now) != 0)
	}
	set := func(change func()) {
		change()
		if err := s.Redefine("s", d, now); err != nil {
			t.Fatal(err)
		}
	}
	if got := pass(4); got != "2 ended false" {
		t.Error(got)
	}
	if set(func() { d.Max = 3 }); s.Next != now+60_000 {
		t.Errorf("next is %d", s.Next-now)
	}
	if got := pass(4); got != "3 ended false" {
		t.Error(got)
	}
	set(func() { d.Every = 2 * time.Minute })
	if got := pass(10); got != "6 ended false" {
		t.Error(got)
	}
}

// Missed occurrences of a cron expression are counted up to a bound, and then passed over.
func TestArrived_DoesNotCountForEver(t *testing.T) {
	t.Parallel()
	x, err := (&Definition{Cron: "* * * * *"}).timing("k", noon)
	if err != nil {
		t.Fatal(err)
	}
	now := noon + 365*24*time.Hour.Milliseconds()
	missed, rest, next := x.arrived(noon, now, time.Minute.Milliseconds(), 5)
	if missed != maxCounted || len(rest) != 1 || rest[0] != now || next != now+60_000 {
		t.Error(missed, rest, next-now)
	}
	y := timing{every: 1000, anchor: noon}
	if missed, rest, _ = y.arrived(noon, now, 10_000, 3); missed != (now-noon)/1000+1-3 || len(rest) != 3 {
		t.Error(missed, rest)
	}
}

// The IDs of runs are within the bound of IDs of runs, 40 characters, for the longest name.
func TestRunID_FollowsFromTheOccurrence(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", maxName)
	if CheckName(name) != nil || CheckName(name+"n") == nil {
		t.Error(CheckName(name), CheckName(name+"n"))
	}
	if id := RunID(name, noon); id != name+"-20261127T120000" || len(id) > 40 {
		t.Error(id)
	}
}

// A backfill is of the times of its schedule: it ends when they change, and goes on when anything else does.
func TestRedefine_EndsABackfillIfTheTimesChange(t *testing.T) {
	t.Parallel()
	d := Definition{Workflow: "w", Every: time.Minute, Overlap: Queue}
	s, err := New("s", "n", d, noon)
	if err != nil {
		t.Fatal(err)
	}
	if n, r := s.Fill(at("2026-11-27T11:00:00Z"), at("2026-11-27T11:30:00Z"), "", noon); n != 30 || r != nil {
		t.Fatal(n, r)
	}
	d.Overlap = Skip
	if err := s.Redefine("s", d, noon); err != nil || s.Backfill == nil || s.Backfill.Overlap != Queue {
		t.Errorf("%v %+v", err, s.Backfill)
	}
	d.Every = time.Hour
	if err := s.Redefine("s", d, noon); err != nil || s.Backfill != nil {
		t.Errorf("%v %+v", err, s.Backfill)
	}
}

// A pause keeps what waits, and lets a trigger through.
func TestPause_StartsOnlyWhatIsTriggered(t *testing.T) {
	t.Parallel()
	s, err := New("s", "n", Definition{Workflow: "w", Every: time.Minute, Overlap: Queue}, noon)
	if err != nil {
		t.Fatal(err)
	}
	m := Moment{Now: noon + 60_000, Exists: func(string) bool { return false }}
	first := s.Turn(m)
	m.Now += 60_000
	s.Turn(m) // it waits
	if r := s.Pause(strings.Repeat("x", maxReason+1)); r == nil || r.Code != Invalid || s.Status != Active {
		t.Errorf("%v %s", r, s.Status)
	}
	if r := s.Pause(""); r != nil {
		t.Fatal(r)
	}
	s.Ended(first.Start.Run, "done", m.Now)
	if turn := s.Turn(m); turn.Start != nil || s.Wake(m.Now) != 0 || s.Waiting != 1 {
		t.Errorf("%+v %+v", turn, s.State)
	}
	if turn, _, r := s.Trigger(m); turn.Start != nil || r == nil || r.Message != "run n-20261127T120200 waits, and the queue is full: 1 wait" {
		t.Errorf("%+v %v", turn, r)
	}
	s.Overlap = Allow
	if turn, o, r := s.Trigger(m); turn.Start == nil || r != nil || o.Run != "n-20261127t120200" {
		t.Errorf("%+v %v", turn, r)
	}
	s.Resume(m.Now)
	if turn := s.Turn(m); turn.Start == nil || turn.Start.Run != "n-20261127T120200" {
		t.Errorf("%+v", turn)
	}
}

// With the rule cancel only the newest run counts: what waits by the rule before that does not start after it.
func TestCancel_TakesThePlaceOfWhatWaits(t *testing.T) {
	t.Parallel()
	s, err := New("s", "n", Definition{Workflow: "w", Every: time.Minute, Overlap: Queue}, noon)
	if err != nil {
		t.Fatal(err)
	}
	m := Moment{Now: noon + 60_000, Exists: func(string) bool { return false }}
	s.Turn(m)
	m.Now += 60_000
	if s.Turn(m); s.Waiting != 1 {
		t.Fatalf("%+v", s.State)
	}
	s.Overlap = Cancel
	m.Now += 60_000
	turn := s.Turn(m)
	if turn.Start == nil || turn.Start.Run != "n-20261127T120300" || len(turn.Cancel) != 1 || s.Waiting != 0 || s.Skipped != 1 || s.Skip.Why != "run n-20261127T120300 starts in its place" {
		t.Errorf("%+v %+v", turn, s.State)
	}
	s.Ended(turn.Start.Run, "done", m.Now)
	if turn := s.Turn(m); turn.Start != nil {
		t.Errorf("%+v", turn)
	}
}
