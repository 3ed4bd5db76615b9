package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Moment is what a schedule has to know of its space when it decides.
type Moment struct {
	Now int64
	// Exists reports whether the space has a run of an ID.
	Exists func(run string) bool
	// Blocked is why no run can start at all, "" if one can.
	Blocked string
}

// Turn is what is to be done: first cancel runs, then start one.
type Turn struct {
	Cancel []string
	Start  *Occurrence
}

// Turn decides about what is due, until a run has to start; then there is another turn (see Wake).
func (s *Schedule) Turn(m Moment) (t Turn) {
	if s.Status == Paused {
		return t
	}
	if s.turnWaiting(&m, &t); t.Start == nil {
		s.turnTimes(&m, &t)
	}
	if t.Start == nil {
		s.turnBackfill(&m, &t)
	}
	s.refresh()
	return t
}

// Wake returns the time of the next turn, 0 if there is none until something else happens.
func (s *Schedule) Wake(now int64) (at int64) {
	switch {
	case s.Status == Paused:
		return 0
	case s.ready():
		return now + 1
	case s.Next != 0:
		return max(s.Due, now+1)
	}
	return 0
}

// ready reports whether an occurrence that waits, or one of a backfill, can be decided at once.
func (s *Schedule) ready() bool {
	b := s.Backfill
	return len(s.Queued) > 0 && s.free() || b != nil && (b.Overlap != Queue || !s.engaged())
}

// free reports whether an occurrence that waits may start.
func (s *Schedule) free() bool {
	return len(s.Active) == 0 || s.Overlap == Allow && len(s.Active) < maxRunning
}

// engaged reports whether another run is running, or waits.
func (s *Schedule) engaged() bool { return len(s.Active)+len(s.Queued) > 0 }

// turnWaiting starts the first occurrence that waits and can start.
func (s *Schedule) turnWaiting(m *Moment, t *Turn) {
	for len(s.Queued) > 0 && s.free() && t.Start == nil {
		o := s.Queued[0]
		if s.Queued = s.Queued[1:]; len(s.Queued) == 0 {
			s.Queued = nil
		}
		if r := s.forbids(o, m); r != nil {
			s.skip(o, r)
			continue
		}
		s.start(o, m, t)
	}
}

// turnTimes decides about the occurrences that are due, in their order.
func (s *Schedule) turnTimes(m *Moment, t *Turn) {
	window, most := s.catchUp()
	missed, list, upcoming := s.times.arrived(s.Next, m.Now, window, most)
	s.Missed += missed
	for i, at := range list {
		if s.Next = upcoming; i+1 < len(list) {
			s.Next = list[i+1]
		}
		s.Prev = at
		o := Occurrence{Run: RunID(s.Name, at), At: at, By: ByTime}
		if r := s.offer(s.overlap(), o, m, t); r != nil {
			s.skip(o, r)
			continue
		}
		if s.Taken++; s.Max != 0 && s.Taken >= s.Max {
			s.Next = 0
			return
		}
		if t.Start != nil {
			return
		}
	}
	s.Next = upcoming
}

// turnBackfill decides about the occurrences of a backfill. With the rule Queue they wait in the backfill.
func (s *Schedule) turnBackfill(m *Moment, t *Turn) {
	b := s.Backfill
	for b != nil && t.Start == nil && (b.Overlap != Queue || !s.engaged()) {
		o, rule := Occurrence{Run: RunID(s.Name, b.Next), At: b.Next, By: ByBackfill}, b.Overlap
		if b.Next = s.times.next(b.Next); b.Next == 0 || b.Next >= b.To {
			s.Backfill, b = nil, nil
		}
		if r := s.offer(rule, o, m, t); r != nil {
			s.skip(o, r)
		}
	}
}

// Trigger starts a run now, whatever the times, as far as the overlap rule permits. The run of a trigger that does not
// start now waits: the turn has no start then.
func (s *Schedule) Trigger(m Moment) (t Turn, o Occurrence, r *Refusal) {
	o = Occurrence{At: seconds(m.Now), By: ByTrigger}
	for at := o.At; ; at += 1000 {
		if o.Run = runID(s.Name, at, triggered); !m.Exists(o.Run) && !s.waits(o.Run) {
			break
		}
	}
	r = s.offer(s.overlap(), o, &m, &t)
	s.refresh()
	return t, o, r
}

func (s *Schedule) waits(run string) bool {
	for _, o := range s.Queued {
		if o.Run == run {
			return true
		}
	}
	return false
}

// forbids returns why the run of an occurrence cannot start, whatever else is running.
func (s *Schedule) forbids(o Occurrence, m *Moment) *Refusal {
	switch {
	case m.Exists(o.Run):
		return Refuse(Blocked, "run %s exists already", o.Run)
	case s.waits(o.Run):
		return Refuse(Blocked, "run %s waits already", o.Run)
	case m.Blocked != "":
		return &Refusal{Code: Blocked, Message: m.Blocked}
	}
	return nil
}

// offer applies an overlap rule to an occurrence: its run starts, waits, or is refused.
func (s *Schedule) offer(rule Overlap, o Occurrence, m *Moment, t *Turn) *Refusal {
	if r := s.forbids(o, m); r != nil {
		return r
	}
	switch rule {
	case Allow:
		if n := len(s.Active); n >= maxRunning {
			return Refuse(Overlaps, "%d runs of the schedule are running; more are not possible", n)
		}
	case Cancel:
		if n := len(s.Active); n > maxCancelled { // which were allowed before
			return Refuse(Overlaps, "%d runs of the schedule are running; an occurrence cancels at most %d: cancel some", n, maxCancelled)
		}
		t.Cancel, s.Active = s.Active, nil
		for _, w := range s.Queued { // by a rule before this one; it would start after what follows it
			s.skip(w, Refuse(Overlaps, "run %s starts in its place", o.Run))
		}
		s.Queued = nil
	default:
		if !s.engaged() {
			break
		}
		if rule != Queue {
			return Refuse(Overlaps, "%s", s.ahead())
		}
		if n := len(s.Queued); n >= s.queue() {
			return Refuse(Overlaps, "%s, and the queue is full: %d wait", s.ahead(), n)
		}
		s.Queued = append(s.Queued, o)
		return nil
	}
	s.start(o, m, t)
	return nil
}

// ahead describes which run is before another.
func (s *Schedule) ahead() string {
	if len(s.Active) > 0 {
		return fmt.Sprintf("run %s is still running", s.Active[0])
	}
	return fmt.Sprintf("run %s waits", s.Queued[0].Run)
}

func (s *Schedule) start(o Occurrence, m *Moment, t *Turn) {
	switch o.By {
	case ByTrigger:
		s.Triggered++
	case ByBackfill:
		s.Backfilled++
	default:
		s.Started++
	}
	s.Active = append(s.Active, o.Run)
	s.Last = &Last{Occurrence: o, Started: m.Now, State: "running"}
	t.Start = &o
}

func (s *Schedule) skip(o Occurrence, r *Refusal) {
	s.Skipped++
	why := r.Message
	for textSize(why) > maxReason {
		why = strings.ToValidUTF8(why[:len(why)*3/4], "") + "..."
	}
	s.Skip = &Skipped{Occurrence: o, Why: why}
}

// Time returns the time of an occurrence as the text that a run gets as an argument.
func (o *Occurrence) Time() string { return timeText(time.UnixMilli(o.At)) }
