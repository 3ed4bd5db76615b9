package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Delayed events, timers and a cron job: the items of a plan, and the code of programs. All decisions
// here are drawn from separate keys, so a seed without delays has the same plan as before they existed.

// far is longer than any run: an event that waits this long still waits at its end.
const far = 30 * time.Minute

// delays are what a plan decides about time.
type delays struct {
	// on enables events that wait, and timers.
	on bool
	// cron gives the program a job that recurs until the chaos ends.
	cron    bool
	catchUp space.CatchUp
	every   time.Duration
}

// delay delays some of the events, and adds events and timers.
func (p *plan) delay() {
	c := keyed(p.seed, "delay")
	if p.delays.on = c.below(2) == 0; !p.delays.on {
		return
	}
	p.delays.cron = c.below(3) == 0
	p.delays.catchUp = oneOf(c, space.FireOnce, space.All)
	p.delays.every = c.between(400*time.Millisecond, 1500*time.Millisecond).Truncate(time.Millisecond)
	p.delaySome()
	p.useTimers()
	for i := range 3 * keyed(p.seed, "applications with timers").below(2) {
		c := keyed(p.seed, "application with a timer", i)
		who := oneOf(c, "a1", "a2")
		p.add(item{at: p.when(c), do: "transact", who: who, id: fmt.Sprint(who, "T", i+1)})
	}
}

// delaySome gives a time to some of the existing events. An event that is sent again has the same time.
func (p *plan) delaySome() {
	due := map[string]time.Duration{}
	for i := range p.items {
		it := &p.items[i]
		c := keyed(p.seed, "delayed", it.id)
		if it.stream == "" || it.do == "raw" || c.below(3) > 0 {
			continue
		}
		if due[it.id] == 0 {
			due[it.id] = it.at + p.someDelay(c)
		}
		it.due = due[it.id]
	}
}

// someDelay may be negative: the time has passed.
func (p *plan) someDelay(c *chance) time.Duration {
	return oneOf(c, c.between(-2*time.Second, 0), c.between(0, 200*time.Millisecond), c.between(0, 2*time.Second), c.between(0, p.chaos))
}

func (p *plan) useTimers() {
	for i := range 3 + keyed(p.seed, "timers").below(8) {
		c := keyed(p.seed, "timer", i)
		ev := item{
			at: p.when(c), do: oneOf(c, "queue", "send", "call"), who: fmt.Sprint("u", 1+c.below(users)),
			space: p.anySpace(c), stream: oneOf(c, "later", "later", "set", "set", "set", "unset"), id: fmt.Sprint("d", i+1),
		}
		ms := p.someDelay(c).Milliseconds()
		if c.below(12) == 0 {
			ms = 2 * far.Milliseconds()
		}
		switch name := oneOf(c, "t1", "t1", "t2"); ev.stream {
		case "later":
			on := oneOf(c, "add", "add", "chain", "fail", "nobody", "flaky")
			ev.payload = fmt.Sprintf(`{"to":%q,"on":%q,"ms":%d,"k":%d}`, p.anySpace(c), on, ms, 1+c.below(3))
		case "set":
			ev.payload = fmt.Sprintf(`{"name":%q,"ms":%d,"k":%d}`, name, ms, c.below(3))
		case "unset":
			ev.payload = fmt.Sprintf(`{"name":%q,"ms":%d}`, name, c.below(2)*50)
		}
		p.add(ev)
	}
	if c := keyed(p.seed, "far"); c.below(3) == 0 {
		p.add(item{at: p.when(c), do: "send", who: "u1", space: p.anySpace(c), stream: "add", id: "far", payload: "1000", due: 2 * far})
	}
}

// onTime are the handlers that use time. Each returns the time at which it ran.
var onTime = map[string]func(v view, ev *model.Event) (model.Value, error){
	// an amount leaves here, and arrives there at a later time.
	"later": func(v view, ev *model.Event) (model.Value, error) {
		to, k := target(ev)
		on, _ := ev.Payload.Get("on").AsString()
		v.SendAt(to, on, after(v, ev), k)
		count(v, -k)
		return ranAt(v, "")
	},
	"set": func(v view, ev *model.Event) (model.Value, error) {
		k, _ := ev.Payload.Get("k").AsInt()
		setTimer(v, timerOf(ev), after(v, ev), k)
		return ranAt(v, timerOf(ev))
	},
	// a timer that sets itself again.
	"ring": func(v view, ev *model.Event) (model.Value, error) {
		name := timerOf(ev)
		k, _ := ev.Payload.Get("k").AsInt()
		if k > 0 {
			setTimer(v, name, v.Now().Add(time.Duration(40*k)*time.Millisecond), k-1)
			v.Send("s1", "add", 5)
			v.Send(v.Space(), "add", 1)
		}
		count(v, 1)
		return ranAt(v, name)
	},
	"unset": func(v view, ev *model.Event) (model.Value, error) {
		was, err := ranAt(v, timerOf(ev))
		v.CancelTimer(timerOf(ev))
		if ms, _ := ev.Payload.Get("ms").AsInt(); ms > 0 {
			setTimer(v, timerOf(ev), after(v, ev), 0)
		}
		return was, err
	},
	// counts the times of the job, those that were missed too.
	"tick": func(v view, ev *model.Event) (model.Value, error) {
		ticks, _ := v.Get("ticks").AsInt()
		missed, _ := ev.Payload.Get("missed").AsInt()
		v.Set("ticks", ticks+1+missed)
		return model.Of(map[string]any{"now": v.Now().UnixMilli(), "missed": missed})
	},
}

func timerOf(ev *model.Event) string {
	name, _ := ev.Payload.Get("name").AsString()
	return name
}

func after(v view, ev *model.Event) time.Time {
	ms, _ := ev.Payload.Get("ms").AsInt()
	return v.Now().Add(time.Duration(ms) * time.Millisecond)
}

func setTimer(v view, name string, at time.Time, k int64) {
	v.SetTimer(name, "ring", at, map[string]any{"name": name, "k": k})
}

// ranAt returns the result of these handlers: the time, and that to which a timer is set.
func ranAt(v view, timer string) (model.Value, error) {
	result := map[string]any{"now": v.Now().UnixMilli()}
	if at, set := v.Timer(timer); set && timer != "" {
		result["set"] = at.UnixMilli()
	}
	return model.Of(result)
}

// leaveTimer sets a timer, as some transactions of applications do.
func leaveTimer(v view, id string) {
	if !strings.Contains(id, "T") {
		return
	}
	v.Set("when", v.Now().UnixMilli())
	setTimer(v, "t1", v.Now().Add(90*time.Millisecond), 1)
}

// schedule is that of the job: finite, so that there is rest.
type schedule struct {
	begin, end time.Time
	every      time.Duration
}

func (s schedule) Next(after time.Time) time.Time {
	next := s.begin.Add((after.Sub(s.begin)/s.every + 1) * s.every)
	if next.After(s.end) {
		return time.Time{}
	}
	return next
}

// between counts the times strictly between two times.
func (s schedule) between(from, to int64) (n int64) {
	for at := s.Next(time.UnixMilli(from)); !at.IsZero() && at.UnixMilli() < to; at = s.Next(at) {
		n++
	}
	return n
}

// schedule returns the schedule of a space. Spaces that are due in the same instant would be woken in
// any order, so the times of different spaces differ by a multiple of 13 ms, and by less than the
// interval of the schedule.
func (w *world) schedule(space string) schedule {
	begin := w.story.begin.Add(time.Duration(space[len(space)-1]%16) * 13 * time.Millisecond)
	return schedule{begin, w.story.begin.Add(w.plan.chaos), w.plan.delays.every}
}

// addCron gives the program its job.
func (w *world) addCron(p *space.Program, of string) error {
	d := &w.plan.delays
	if !d.cron {
		return nil
	}
	return p.Cron(space.CronSpec{Name: "job", Stream: "tick", Schedule: w.schedule(of), Spec: d.every.String(), CatchUp: d.catchUp})
}
