package space

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// every is a schedule with equal intervals in milliseconds.
type every int64

func (e every) Next(after time.Time) time.Time {
	return time.UnixMilli((after.UnixMilli()/int64(e) + 1) * int64(e))
}

// jobs returns a program with one job, every second, that records what it sees.
func jobs(t *testing.T, seen *[]string, spec string, step every, c CatchUp, limit int) *Program {
	p := newProgram(t).handle("tick", func(tx *Tx, ev *model.Event) any {
		o, _ := readOccurrence(ev.NotBefore, ev.Payload)
		*seen = append(*seen, fmt.Sprintf("%d+%d", (o.at-noon)/1000, o.missed))
		return nil
	}).Program
	if err := p.Cron(CronSpec{Name: "job", Stream: "tick", Schedule: step, Spec: spec, CatchUp: c, Limit: limit}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) runsJobs(p *Program, runtime string, wall int64) *host {
	h := w.host(runtime, p)
	h.wall = wall
	h.takeOver()
	h.run()
	return h
}

func TestCron_CatchUpPoliciesForMissedTimes(t *testing.T) {
	for _, c := range []struct {
		policy CatchUp
		limit  int
		want   []string
	}{
		{FireOnce, 0, []string{"1+0", "2+0", "3+99", "103+0"}},
		{Skip, 0, []string{"1+0", "2+0", "42+39", "43+0"}},
		{All, 0, []string{"1+0", "2+0", "3+0", "4+0"}},
		{All, 5, []string{"1+0", "2+0", "3+0", "4+0", "5+0", "6+0", "7+0", "103+95"}},
	} {
		t.Run(fmt.Sprint(c.policy, c.limit), func(t *testing.T) {
			var seen []string
			w := newWorld(t)
			p := jobs(t, &seen, "s", 1000, c.policy, c.limit)
			h := w.runsJobs(p, "r1", noon)
			for range 2 {
				h.pass(1000)
				h.run()
			}
			h = w.runsJobs(p, "r2", noon+102_000) // a hundred seconds later
			h.pass(1000)
			h.run()
			if !slices.Equal(seen[:min(len(seen), len(c.want))], c.want) {
				t.Errorf("seen %v, want %v first", seen, c.want)
			}
			if n := w.replica(home).Later.Len(); n != 1 {
				t.Errorf("%d timers wait, want only the next one", n)
			}
			if all := len(seen); c.policy == All && c.limit == 0 && all != 103 {
				t.Errorf("%d were seen, want each of 103", all)
			}
		})
	}
}

// I11: each time of a job is handled once, through refusals and crashes, and however the clock is set.
func TestI11_CronFiresEachTimeOnceWhateverHappens(t *testing.T) {
	var seen []string
	w := newWorld(t)
	p := jobs(t, &seen, "s", 1000, FireOnce, 0)
	h := w.runsJobs(p, "r1", noon)
	for i := range 40 {
		h.pass(500)
		h.settle()
		switch i % 5 {
		case 0:
			if h.inFlight != nil {
				h.refuse(put("elsewhere", i))
			}
		case 1:
			h.load()
			h.takeOver()
		case 2:
			h.checkpoint()
			h = w.runsJobs(p, fmt.Sprint("r", i), h.wall)
		case 3:
			h.wall -= 700
		}
		h.run()
	}
	at := map[int64]int{}
	for _, e := range w.logs[home] {
		for _, tx := range w.commit(e).Txs {
			for _, s := range tx.Sends {
				if s.Timer != "" {
					at[s.NotBefore]++
				}
			}
		}
	}
	if n := len(w.receipts(home)); n != len(at)-1 {
		t.Errorf("%d events were handled, and %d times were set, of which one is to come", n, len(at))
	}
	for ms, n := range at {
		if n != 1 {
			t.Errorf("second %d was set %d times", (ms-noon)/1000, n)
		}
	}
}

func TestCron_AnotherScheduleOrNoneTakesEffectWithTheNextOwner(t *testing.T) {
	var seen []string
	w := newWorld(t)
	w.runsJobs(jobs(t, &seen, "minute", 60_000, FireOnce, 0), "r1", noon)
	first := w.replica(home).Later.Next()
	w.runsJobs(jobs(t, &seen, "minute", 60_000, FireOnce, 0), "r2", noon+10)
	if next := w.replica(home).Later.Next(); next != first {
		t.Errorf("the same schedule: %d, then %d", first, next)
	}
	w.runsJobs(jobs(t, &seen, "second", 1000, FireOnce, 0), "r3", noon+20)
	if r := w.replica(home); r.Later.Len() != 1 || r.Later.Next() != noon+1000 {
		t.Errorf("another schedule: %d wait, the first until %d", r.Later.Len(), r.Later.Next())
	}
	w.runsJobs(newProgram(t).Program, "r4", noon+30)
	if n := w.replica(home).Later.Len(); n != 0 {
		t.Errorf("no schedule: %d wait", n)
	}
}

func TestCron_AJobContinuesWhenItsHandlerFailsAndWhenTheClockIsCorrected(t *testing.T) {
	p := newProgram(t).handle("tick", func(tx *Tx, _ *model.Event) any { return fmt.Errorf("no") }).Program
	if err := p.Cron(CronSpec{Name: "job", Stream: "tick", Schedule: every(1000), Spec: "s"}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.runsJobs(p, "r1", noon)
	for range 3 {
		h.pass(1000)
		h.run()
	}
	if got := w.receipts(home); len(got) != 3 || !strings.HasSuffix(got[2], "failed") {
		t.Errorf("receipts %v", got)
	}
	h.wall += 3_600_000
	h.run()
	h.wall -= 3_600_000
	h.run()
	if next := w.replica(home).Later.Next(); next != noon+5000 {
		t.Errorf("the clock was set back, and the next time is in %d s", (next-h.wall)/1000)
	}
}

func TestCron_MistakesAreFoundWhenItIsRegistered(t *testing.T) {
	p := NewProgram("p")
	good := CronSpec{Name: "a", Stream: "s", Schedule: every(1)}
	if err := p.Cron(good); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]CronSpec{
		"the name is taken": good,
		"not allowed":       {Name: "a.b", Stream: "s", Schedule: every(1)},
		"no schedule":       {Name: "b", Stream: "s"},
		"limit":             {Name: "b", Stream: "s", Schedule: every(1), Limit: 1_000_000},
		"negative":          {Name: "b", Stream: "s", Schedule: every(1), Grace: -1},
	} {
		if err := p.Cron(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want one about %q", c, err, want)
		}
	}
}

// A job that happens once happens in each space when it first runs the program, and again only for another Spec: not
// after a restart, not for a clock that is set back, and not as time passes.
func TestCron_OnceForEachSpec(t *testing.T) {
	var seen []string
	w := newWorld(t)
	program := func(spec string) *Program {
		p := newProgram(t).handle("tick", func(*Tx, *model.Event) any {
			seen = append(seen, spec)
			return nil
		}).Program
		if err := p.Cron(CronSpec{Name: "job", Stream: "tick", Spec: spec, Once: true}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := program("a"), program("b")
	h := w.runsJobs(a, "r1", noon)
	h.pass(1000)
	h.run()
	h = w.runsJobs(a, "r2", noon+100_000)
	h.wall -= 50_000
	h.load()
	h.takeOver()
	h.run()
	h.pass(3_000_000_000)
	h.run()
	if !slices.Equal(seen, []string{"a"}) {
		t.Errorf("seen %v, want one", seen)
	}
	h = w.runsJobs(b, "r3", h.wall)
	h.pass(1000)
	h.run()
	w.runsJobs(b, "r4", h.wall)
	if !slices.Equal(seen, []string{"a", "b"}) {
		t.Errorf("seen %v, want one for each program", seen)
	}
	if n := w.replica(home).Later.Len(); n != 1 {
		t.Errorf("%d timers wait, want only the one that remembers the job", n)
	}
}
