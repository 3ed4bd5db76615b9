package sim

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Tasks and timers together in spaces that are not in memory: an event starts a task and sets a timer,
// which is due soon, late or after the run, and the workers die before the task has ended. Only the
// saved time at which the space wants to be woken makes the next workers load it.

func (p *plan) asleep() {
	if !p.has("tasks") {
		return
	}
	for i := range p.times("asleep", 3) {
		c := keyed(p.seed, "asleep", i)
		at := p.when(c)
		ms := oneOf(c, c.below(400), 1000+c.below(3000), 2*int(far.Milliseconds()))
		p.add(item{
			at: at, do: oneOf(c, "queue", "send"), who: anyUser(c), space: p.anySpace(c), stream: "start-and-set",
			id: fmt.Sprint("z", i+1), payload: fmt.Sprintf(`{"name":"t3","ms":%d,"k":0}`, ms),
		})
		at += c.between(30*time.Millisecond, 700*time.Millisecond)
		for k := range workers {
			who := fmt.Sprint("w", k+1)
			p.add(item{at: at + time.Duration(k), do: "kill", who: who})
			if k == 0 || c.below(2) == 0 {
				p.add(item{at: at + c.between(time.Millisecond, time.Second), do: "start", who: who})
			}
		}
	}
}

// ofAsleep are its streams.
var ofAsleep = map[string]func(v view, ev *model.Event) (model.Value, error){
	"start-and-set": func(v view, ev *model.Event) (model.Value, error) {
		key := taskKey(ev.ID, 1)
		v.StartTask(work, key, taskInput(v.Space(), key))
		setTimer(v, timerOf(ev), after(v, ev), 0)
		return ranAt(v, timerOf(ev))
	},
}

// hasTask reports whether a task is pending.
func (f *fold) hasTask() bool {
	for key, entry := range f.docs[work].Get("tasks").All() {
		if space.TaskOf(key, entry).State == space.TaskPending {
			return true
		}
	}
	return false
}

// wokenForTask counts a space that is served again because a task is pending, though a timer
// waits, and nothing has come by its lane.
func (f *fold) wokenForTask() {
	quiet := len(f.lane) == 0 || f.lane[len(f.lane)-1].Seq <= f.cursor.Floor
	if quiet && len(f.agenda.timers) > 0 && f.hasTask() {
		f.w.count("spaces with a timer that were woken for a task")
	}
}
