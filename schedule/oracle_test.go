package schedule

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// noon is when the tests begin.
var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC).UnixMilli()

// oracle is a schedule that knows all its occurrences beforehand, and keeps each that it has not decided about in a
// list. It shares with Schedule only the jitter of an occurrence.
type oracle struct {
	d        Definition
	name     string
	due      func(at int64) int64
	open     []int64 // occurrences that are not decided, in order
	running  []string
	waiting  []string
	fill     []int64 // what a backfill has not decided
	fillRule Overlap
	known    map[string]bool // runs that exist
	paused   bool
	taken    int64

	log                      []string
	started, skipped, missed int
}

// all returns the occurrences of an interval within a period, by trying each second.
func all(d *Definition, from, to int64) (list []int64) {
	for at := from; at <= to; at += 1000 {
		inside := (d.Start.IsZero() || at >= d.Start.UnixMilli()) && (d.End.IsZero() || at < d.End.UnixMilli())
		anchor := noon
		if !d.Start.IsZero() {
			anchor = d.Start.UnixMilli()
		}
		if inside && (at-anchor)%d.Every.Milliseconds() == 0 {
			list = append(list, at)
		}
	}
	return list
}

// pass handles time until nothing is left to do at it.
func (o *oracle) pass(now int64) {
	for again := !o.paused; again; {
		again = o.once(now)
	}
}

// once decides about occurrences until a run starts, and reports whether one did.
func (o *oracle) once(now int64) bool {
	for len(o.waiting) > 0 && (len(o.running) == 0 || o.d.Overlap == Allow) {
		id := o.waiting[0]
		o.waiting = o.waiting[1:]
		if o.known[id] {
			o.skipped++
			continue
		}
		o.start(id)
		return true
	}
	var due []int64
	for len(o.open) > 0 && o.due(o.open[0]) <= now {
		due = append(due, o.open[0])
		o.open = o.open[1:]
	}
	window, most := o.d.catchUp()
	for len(due) > 0 && (o.due(due[0]) < now-window || len(due) > most) {
		due = due[1:]
		o.missed++
	}
	for i, at := range due {
		taken, started := o.offer(RunID(o.name, at), o.d.overlap())
		if !taken {
			continue
		}
		if o.taken++; o.taken == o.d.Max {
			o.open = nil
			return started || o.backfill()
		}
		if started {
			o.open = append(slices.Clone(due[i+1:]), o.open...)
			return true
		}
	}
	return o.backfill()
}

func (o *oracle) backfill() bool {
	for len(o.fill) > 0 {
		if o.fillRule == Queue && len(o.running)+len(o.waiting) > 0 {
			return false
		}
		at := o.fill[0]
		o.fill = o.fill[1:]
		if _, started := o.offer(RunID(o.name, at), o.fillRule); started {
			return true
		}
	}
	return false
}

// offer applies a rule.
func (o *oracle) offer(id string, rule Overlap) (taken, started bool) {
	busy := len(o.running)+len(o.waiting) > 0
	switch {
	case o.known[id], slices.Contains(o.waiting, id), rule == Allow && len(o.running) == maxRunning, rule == Cancel && len(o.running) > maxCancelled:
		o.skipped++
		return false, false
	case rule == Allow, rule == Cancel, !busy:
		if rule == Cancel {
			for _, r := range o.running {
				o.log = append(o.log, "cancel "+r)
			}
			o.running = nil
			o.skipped += len(o.waiting) // it takes their place
			o.waiting = nil
		}
		o.start(id)
		return true, true
	case rule == Queue && len(o.waiting) < o.d.queue():
		o.waiting = append(o.waiting, id)
		return true, false
	}
	o.skipped++
	return false, false
}

func (o *oracle) start(id string) {
	o.started++
	o.running = append(o.running, id)
	o.known[id] = true
	o.log = append(o.log, "start "+id)
}

// driven is a schedule with what a space would have of it.
type driven struct {
	*rapid.T
	s     *Schedule
	known map[string]bool
	log   []string
}

// reload stores the schedule and reads it, as a restart does.
func (x *driven) reload() {
	v, err := x.s.Value()
	if err != nil {
		x.Fatal(err)
	}
	lists, err := x.s.Lists.Value()
	if err != nil {
		x.Fatal(err)
	}
	again, err := Read("s", x.s.Name, v, lists)
	if err != nil {
		x.Fatal(err)
	}
	x.s = again
}

func (x *driven) moment(now int64) Moment {
	return Moment{Now: now, Exists: func(id string) bool { return x.known[id] }}
}

func (x *driven) done(t Turn) {
	for _, id := range t.Cancel {
		x.log = append(x.log, "cancel "+id)
	}
	if t.Start != nil {
		if x.known[t.Start.Run] {
			x.Fatalf("run %s is started twice", t.Start.Run)
		}
		x.known[t.Start.Run] = true
		x.log = append(x.log, "start "+t.Start.Run)
	}
}

// wake has the turns that are due at a time, with a restart before each.
func (x *driven) wake(now int64) {
	for n := 0; ; n++ {
		at := x.s.Wake(now)
		if at == 0 || at > now+1 || at == x.s.Due && !x.s.ready() {
			return
		}
		if n > 10_000 {
			x.Fatalf("it does not come to rest: %+v", x.s.State)
		}
		x.reload()
		x.done(x.s.Turn(x.moment(now)))
	}
}

// sometimes draws a value, or the zero value as often.
func sometimes[V any](t *rapid.T, what string, g *rapid.Generator[V]) (v V) {
	if rapid.Bool().Draw(t, "with "+what) {
		v = g.Draw(t, what)
	}
	return v
}

func secondsFrom(lo, hi int) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(lo, hi), func(n int) time.Duration { return time.Duration(n) * time.Second })
}

func someTime(lo, hi int) *rapid.Generator[time.Time] {
	return rapid.Map(rapid.IntRange(lo, hi), func(n int) time.Time { return time.UnixMilli(noon).Add(time.Duration(n) * time.Second).UTC() })
}

func definitions(t *rapid.T) Definition {
	d := Definition{Workflow: "w", Every: secondsFrom(1, 40).Draw(t, "every")}
	d.Jitter = sometimes(t, "jitter", secondsFrom(1, 30))
	d.Start = sometimes(t, "start", someTime(-100, 300))
	if d.Start.IsZero() {
		d.End = sometimes(t, "end", someTime(1, 900))
	}
	d.Max = sometimes(t, "max", rapid.Int64Range(1, 20))
	d.Overlap = rapid.SampledFrom([]Overlap{"", Skip, Queue, Cancel, Allow}).Draw(t, "overlap")
	if d.Overlap == Queue {
		d.Queue = sometimes(t, "queue", rapid.IntRange(1, 4))
	}
	d.CatchUp = sometimes(t, "catch up", secondsFrom(10, 200))
	d.CatchUpMax = sometimes(t, "catch up max", rapid.IntRange(1, 6))
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	return d
}

// Whatever happens, a schedule starts, cancels, skips and misses what a list of all occurrences says, and it makes no
// difference whether it is stored and read before each turn. No occurrence is started twice.
func TestSchedule_DecidesAsAListOfAllOccurrencesDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := definitions(t)
		s, err := New("s", "name", d, noon)
		if err != nil {
			t.Fatal(err)
		}
		x := &driven{T: t, s: s, known: map[string]bool{}}
		end := noon + 2_000_000
		o := &oracle{d: d, name: "name", due: func(at int64) int64 { return x.s.times.due(at) }, known: map[string]bool{}}
		future := func(now int64) []int64 {
			return slices.DeleteFunc(all(&d, noon-200_000, end), func(at int64) bool { return at <= now })
		}
		o.open = future(noon)
		now := noon
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"time", "time", "time", "ended", "ended", "pause", "resume", "again", "backfill"}).Draw(t, "step") {
			case "time":
				now = min(now+rapid.Int64Range(1, 60_000).Draw(t, "by"), end-1000)
			case "ended":
				if len(o.running) > 0 {
					id := rapid.SampledFrom(o.running).Draw(t, "run")
					o.running = slices.DeleteFunc(o.running, func(r string) bool { return r == id })
					x.s.Ended(id, "done", now)
				}
			case "pause":
				o.paused, o.open = true, nil
				if r := x.s.Pause(""); r != nil {
					t.Fatal(r)
				}
			case "resume":
				if o.paused {
					o.paused = false
					if o.d.Max == 0 || o.taken < o.d.Max {
						o.open = future(now)
					}
					x.s.Resume(now)
				}
			case "again": // the definition is set again: nothing changes
				if err := x.s.Redefine("s", d, now); err != nil {
					t.Fatal(err)
				}
				if len(o.open) == 0 && !o.paused && (o.d.Max == 0 || o.taken < o.d.Max) {
					o.open = future(now)
				}
			case "backfill":
				from, to := someTime(-200, 600).Draw(t, "from"), someTime(-200, 600).Draw(t, "to")
				rule := rapid.SampledFrom([]Overlap{"", Skip, Queue, Cancel, Allow}).Draw(t, "rule")
				if _, r := x.s.Fill(from, to, rule, now); r == nil {
					o.fillRule = rule
					if rule == "" {
						o.fillRule = d.overlap()
					}
					o.fill = slices.DeleteFunc(all(&d, from.UnixMilli(), to.UnixMilli()-1), func(at int64) bool { return at > now })
				}
			}
			x.wake(now)
			o.pass(now)
			x.compare(o)
		}
	})
}

func (x *driven) compare(o *oracle) {
	x.Helper()
	have := fmt.Sprint(x.log, x.s.Active, x.s.Waiting, x.s.Started+x.s.Backfilled, x.s.Skipped, x.s.Missed, x.s.Taken, x.s.Backfill != nil)
	want := fmt.Sprint(o.log, o.running, len(o.waiting), o.started, o.skipped, o.missed, o.taken, len(o.fill) > 0)
	if have != want {
		x.Fatalf("%s\nhave %s\nwant %s", x.s.When(), have, want)
	}
	if next := int64(0); len(o.open) > 0 {
		if next = o.open[0]; x.s.Next != next {
			x.Fatalf("next is %d, want %d", x.s.Next-noon, next-noon)
		}
	}
}

// An occurrence is due at its time or later by less than the jitter and the time to the next one, and always at the same
// time; other spaces have another time.
func TestJitter_IsDeterministicAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := Definition{Workflow: "w", Every: secondsFrom(1, 100).Draw(t, "every"), Jitter: secondsFrom(1, 100).Draw(t, "jitter")}
		a, err := d.timing("a/n", noon)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := d.timing("a/n", noon)
		for at, n := noon, 0; n < 50; n++ {
			due, next := a.due(at), a.next(at)
			if due < at || due > at+d.Jitter.Milliseconds() || due >= next || due != again.due(at) {
				t.Fatalf("the occurrence %d is due at %d, before %d", at, due, next)
			}
			at = next
		}
	})
	h := fnv.New64a()
	spread := map[int64]bool{}
	d := Definition{Workflow: "w", Every: time.Hour, Jitter: 10 * time.Minute}
	for n := range 100 {
		_, _ = h.Write([]byte{byte(n)})
		x, err := d.timing(fmt.Sprintf("space-%d/n", n), noon)
		if err != nil {
			t.Fatal(err)
		}
		spread[x.due(noon)/60_000] = true
	}
	if len(spread) < 9 {
		t.Errorf("a hundred spaces start within %d of ten minutes", len(spread))
	}
}

// What is counted in one go is what is counted one by one.
func TestArrived_CountsWhatWasMissedWithoutAVisit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := definitions(t)
		x, err := d.timing("k", noon)
		if err != nil {
			t.Fatal(err)
		}
		now := noon + rapid.Int64Range(0, 1_500_000).Draw(t, "now")
		window, keep := rapid.Int64Range(10_000, 400_000).Draw(t, "window"), rapid.IntRange(1, 10).Draw(t, "keep")
		var due []int64
		var missed, upcoming int64
		for at := x.next(noon); at != 0; at = x.next(at) {
			if x.due(at) > now {
				upcoming = at
				break
			}
			due = append(due, at)
		}
		for len(due) > 0 && (len(due) > keep || x.due(due[0]) < now-window) {
			due, missed = due[1:], missed+1
		}
		m, rest, next := x.arrived(x.next(noon), now, window, keep)
		if m != missed || !slices.Equal(rest, due) || next != upcoming {
			t.Fatalf("have %d %v %d, want %d %v %d", m, rest, next, missed, due, upcoming)
		}
	})
}
