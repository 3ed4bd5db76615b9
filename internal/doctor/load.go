package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/display"
)

// lateTimers is how long a timer may be due before that is reported: a worker that has just begun to
// serve a partition first has to wake the spaces with due timers.
const lateTimers = 30 * time.Second

// missedFor is how long missed times of a job are reported, from the first of them on.
const missedFor = 24 * time.Hour

// timers judges timers, jobs and delayed events that are due and not handled.
func (j *judge) timers() {
	fine := true
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil {
			continue
		}
		for _, l := range m.Figures.Late {
			age := m.Figures.Now.Sub(l.Since) // both by the worker's clock
			if age < lateTimers {
				continue
			}
			fine = false
			j.bad(Warning, CheckTimers, fmt.Sprintf("space %s, on %s: the first of %s was due %v ago, at %s", l.Space, m.ID, display.Count(l.Waiting, "event"), age.Round(time.Second), l.Since.Format(time.RFC3339)),
				"Timers, jobs and delayed events of the space are handled late: one at a time, like its other events.",
				"If the space is listed as stuck above, see there first. `settle timers "+l.Space+"` lists what waits. Let fewer come due at one moment, or divide them among several spaces.")
		}
		if more := m.Figures.LateCount - len(m.Figures.Late); more > 0 && !fine {
			j.bad(Warning, CheckTimers, fmt.Sprintf("%s more on %s are late with what is due", display.Count(more, "space"), m.ID), "See above.", "See above, and more workers if there are many: they divide the partitions.")
		}
	}
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil {
			continue
		}
		for _, missed := range m.Figures.Missed {
			if m.Figures.Now.Sub(missed.At) > missedFor {
				continue
			}
			fine = false
			j.bad(Warning, CheckTimers, fmt.Sprintf("job %s of space %s has skipped %s after the one of %s, as %s reports", missed.Cron, missed.Space, display.Count(missed.Times, "time"), missed.At.Format(time.RFC3339), m.ID),
				"No worker ran when they were due, and the job's CatchUp setting does not repeat each of them.",
				"Find out why its partition was not served. If each time matters, give the job CatchUp All; the payload of its event has the number of skipped times (missed).")
		}
	}
	if fine {
		j.ok(CheckTimers, "none is late by more than %v", lateTimers)
	}
}

// manyWaking is how many spaces may wait to be loaded before that is reported: a worker loads 64 at a time.
const manyWaking = 100

// waking judges how many spaces wait to be loaded into memory.
func (j *judge) waking() {
	fine := true
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil || m.Figures.Queued < manyWaking {
			continue
		}
		fine = false
		f := m.Figures
		text := fmt.Sprintf("%s wait to be loaded by %s, next: %s; %d are in memory", display.Count(f.Queued, "space"), m.ID, strings.Join(f.Next, ", "), f.Awake)
		do := "Wait if the number decreases: it is normal after a start, or when many timers were due at one moment. Otherwise add workers: they divide the partitions."
		if f.Limit > 0 && f.Awake >= f.Limit {
			text += fmt.Sprintf(", of at most %d", f.Limit)
			do += " The limit of spaces in memory is reached (--max-awake), and busy or stuck spaces stay there."
		}
		j.bad(Warning, CheckWaking, text, "Their events and timers wait until they are in memory.", do)
	}
	if fine {
		j.ok(CheckWaking, "fewer than %d spaces wait to be loaded by a worker", manyWaking)
	}
}

// manyWatches is the share of its limit from which a worker's watches are reported, in percent.
const manyWatches = 80

// watches judges how many live queries the workers serve.
func (j *judge) watches() {
	fine, open := true, 0
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil {
			continue
		}
		w := &m.Figures.Watches
		open += w.Open
		if w.Limit == 0 || w.Open*100 < manyWatches*w.Limit {
			continue
		}
		fine = false
		text := fmt.Sprintf("worker %s serves %d watches, of at most %d; %d of them of document %s of space %s", m.ID, w.Open, w.Limit, w.Most, w.Document, w.Space)
		if w.Refused > 0 {
			text += fmt.Sprintf("; it has refused %d", w.Refused)
		}
		j.bad(Warning, CheckWatches, text, "A watch beyond the limit is refused, and asks another worker. If all are full, it asks again until there is room.",
			"More workers, or fewer watches: a page that reloads often, or a client that does not close what it no longer needs, leaves many.")
	}
	if fine {
		j.ok(CheckWatches, "%d, and room for more at each worker", open)
	}
}

// unrunnable reports deployed versions that workers cannot run.
func (j *judge) unrunnable() {
	told := map[string]bool{}
	for i := range j.fleet.Workers {
		m := &j.fleet.Workers[i]
		if m.Figures == nil {
			continue
		}
		for _, text := range m.Figures.Unrunnable {
			if told[text] {
				continue // already reported
			}
			told[text] = true
			j.bad(Failure, CheckPrograms, "on worker "+m.ID+": "+text,
				"The deployed version does not run. Events of spaces for which nothing runs wait, and are kept.",
				"Deploy a version that compiles on these workers, or go back: `settle versions` lists them, `settle rollback` goes back.")
		}
	}
	if len(told) == 0 {
		j.ok(CheckPrograms, "every deployed version that a rule names runs where it is to")
	}
}

// unperformedWarning is how long tasks may wait for a performer before that is reported: one that is restarted comes back sooner.
const unperformedWarning = 30 * time.Second

// performers reports actions whose tasks no performer takes.
func (j *judge) performers() {
	found := 0
	for _, u := range j.fleet.Unperformed() {
		if j.fleet.At.Sub(u.Since) < unperformedWarning {
			continue
		}
		if found++; found > maxNamed {
			continue
		}
		text := fmt.Sprintf("%s; %s of space %s (reported by %s)", u.Text(j.fleet.At), display.Count(u.Tasks, "task"), u.Space, strings.Join(u.Workers, ", "))
		j.bad(Warning, CheckPerformers, text, "The tasks are kept, and count no attempt; workflows that have called the action wait.", "Start a performer: `"+u.Advice()+"`, or a program of your own (docs/performers.md).")
	}
	switch {
	case found > maxNamed:
		j.bad(Warning, CheckPerformers, fmt.Sprintf("%d more actions have no performer", found-maxNamed), "See above.", "`settle fleet --json` has them all.")
	case found == 0:
		j.ok(CheckPerformers, "no action whose tasks wait for a performer, for longer than %v", unperformedWarning)
	}
}
