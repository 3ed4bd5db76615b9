package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Bounds of the state of a schedule.
const (
	// maxRunning is the largest number of runs of a schedule that run at the same time, with the rule Allow.
	maxRunning = 100
	// maxCancelled is the largest number of runs that one occurrence cancels, in the transaction that starts its run.
	maxCancelled = 4
	// maxBackfill is the largest number of occurrences of a backfill.
	maxBackfill = 1000
	// maxReason is the largest size of the reason of a pause, and of a skip, in bytes of its JSON text.
	maxReason = 300
)

// By is what has started a run.
type By string

// What starts runs.
const (
	ByTime     By = "time"
	ByTrigger  By = "trigger"
	ByBackfill By = "backfill"
)

// Occurrence is a time at which a schedule starts a run.
type Occurrence struct {
	Run string `json:"run"`
	At  int64  `json:"at"`
	By  By     `json:"by"`
}

// Last is the last run that a schedule has started.
type Last struct {
	Occurrence
	Started int64 `json:"started"`
	// State is "running", or how the run has ended, at Ended.
	State string `json:"state"`
	Ended int64  `json:"ended,omitzero"`
}

// Skipped is an occurrence that did not start a run, and why.
type Skipped struct {
	Occurrence
	Why string `json:"why"`
}

// Backfill is what a backfill has not decided yet: the occurrences from Next on and before To.
type Backfill struct {
	Next    int64   `json:"next"`
	To      int64   `json:"to"`
	Overlap Overlap `json:"overlap"`
}

// Status summarises a schedule.
type Status string

// States of a schedule.
const (
	Active Status = "active"
	Paused Status = "paused"
	Over   Status = "ended" // there are no more occurrences
)

// Position is how far a schedule has come.
type Position struct {
	Status Status `json:"state"`
	Reason string `json:"why,omitzero"` // of the pause
	// Next is the next occurrence, Due when its run starts.
	Next int64 `json:"next,omitzero"`
	Due  int64 `json:"due,omitzero"`
	// Anchor is where an interval without a start is counted from, Prev the last occurrence that was not missed, and
	// Taken the number of occurrences that count for Max.
	Anchor int64 `json:"anchor,omitzero"`
	Prev   int64 `json:"prev,omitzero"`
	Taken  int64 `json:"taken,omitzero"`
}

// Counts are totals since the schedule was created.
type Counts struct {
	Started    int64 `json:"started"` // by its times
	Skipped    int64 `json:"skipped"`
	Missed     int64 `json:"missed"`
	Triggered  int64 `json:"triggered,omitzero"`
	Backfilled int64 `json:"backfilled,omitzero"`
	// Running and Waiting are the lengths of the lists.
	Running int `json:"running,omitzero"`
	Waiting int `json:"waiting,omitzero"`
}

// Lists are the runs of a schedule that have not ended, oldest first, and the occurrences that wait for that.
type Lists struct {
	Active []string     `json:"running,omitzero"`
	Queued []Occurrence `json:"waiting,omitzero"`
}

// State is what a space stores of a schedule besides its definition and lists.
type State struct {
	Position
	Counts
	Backfill *Backfill `json:"backfill,omitzero"`
	Last     *Last     `json:"last,omitzero"`
	Skip     *Skipped  `json:"skip,omitzero"`
}

// Schedule is a schedule of a space.
type Schedule struct {
	Name string `json:"-"`
	Definition
	State
	Lists `json:"-"`
	// Declared is the version of the declaration in the program that the definition comes from, "" if a client has set
	// the schedule. Changed is set if a client has set it since.
	Declared string `json:"declared,omitzero"`
	Changed  bool   `json:"changed,omitzero"`

	times timing
}

// Refusal is why an operation has no effect.
type Refusal struct {
	Code    string
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Codes of refusals.
const (
	Invalid  = "invalid"  // the payload
	Unknown  = "unknown"  // there is no such schedule, or workflow
	TooMany  = "too-many" // a bound is reached
	Overlaps = "overlap"  // the overlap rule forbids the run
	Busy     = "busy"     // another backfill is under way
	Owned    = "declared" // the program declares the schedule
	Blocked  = "blocked"  // no run can start
)

// Refuse returns a refusal.
func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// New returns a schedule that begins now. The definition must be valid.
func New(space, name string, d Definition, now int64) (*Schedule, error) {
	s := &Schedule{Name: name, Definition: d}
	s.Status, s.Anchor = Active, seconds(now)
	err := s.Load(space)
	if err == nil {
		s.plan(now)
	}
	return s, err
}

// Load makes a schedule that was decoded usable.
func (s *Schedule) Load(space string) (err error) {
	s.times, err = s.timing(space+"/"+s.Name, s.Anchor)
	return err
}

// seconds rounds a time down to the second.
func seconds(now int64) int64 { return now - now%1000 }

// RunID returns the ID of the run of an occurrence.
func RunID(name string, at int64) string { return runID(name, at, "20060102T150405") }

func runID(name string, at int64, layout string) string {
	return name + "-" + time.UnixMilli(at).UTC().Format(layout)
}

// triggered is the layout of the IDs of runs that were triggered: never those of occurrences.
const triggered = "20060102t150405"

// plan sets the next occurrence to the first after a time.
func (s *Schedule) plan(after int64) {
	s.Next = 0
	if s.Status != Paused && (s.Max == 0 || s.Taken < s.Max) {
		s.Next = s.times.next(after)
	}
	s.refresh()
}

// refresh sets the fields that follow from others.
func (s *Schedule) refresh() {
	s.Running, s.Waiting, s.Due = len(s.Active), len(s.Queued), 0
	if s.Next != 0 {
		s.Due = s.times.due(s.Next)
	}
	switch {
	case s.Status == Paused:
	case s.Next == 0 && s.Waiting == 0 && s.Backfill == nil:
		s.Status = Over
	default:
		s.Status = Active
	}
}

// Redefine replaces the definition. If its times are the same, the next occurrence remains.
func (s *Schedule) Redefine(space string, d Definition, now int64) error {
	same := s.sameTiming(&d)
	s.Definition = d
	if !same {
		s.Anchor, s.Taken = seconds(now), 0
		if s.Prev != 0 {
			s.Anchor = s.Prev
		}
	}
	if err := s.Load(space); err != nil {
		return err
	}
	if ended := s.Max != 0 && s.Taken >= s.Max; !same || ended || s.Next == 0 {
		s.plan(now)
	}
	if !same {
		s.Backfill = nil // of other occurrences
	}
	s.refresh()
	return nil
}

// Pause has the schedule start no run but those that are triggered.
func (s *Schedule) Pause(why string) *Refusal {
	if size := textSize(why); size > maxReason {
		return Refuse(Invalid, "the reason has %d bytes; at most %d are possible", size, maxReason)
	}
	s.Status, s.Reason, s.Next = Paused, why, 0
	s.refresh()
	return nil
}

// textSize returns the size of a text in JSON, without quotes.
func textSize(text string) int { return len(model.String(text).String()) - 2 }

// Resume ends a pause. Occurrences during the pause are not made up for.
func (s *Schedule) Resume(now int64) {
	if s.Status == Paused {
		s.Status, s.Reason = Active, ""
		s.plan(now)
	}
}

// Fill begins a backfill: it starts runs of the past occurrences from one time on and before another. It returns how many
// there are.
func (s *Schedule) Fill(from, to time.Time, rule Overlap, now int64) (n int, r *Refusal) {
	if rule == "" {
		rule = s.overlap()
	}
	if r = s.refusesFill(from, to, rule, now); r != nil {
		return 0, r
	}
	switch n = s.times.count(from.UnixMilli(), to.UnixMilli(), maxBackfill); {
	case n == 0:
		return 0, Refuse(Invalid, "there are no occurrences from %s on and before %s", timeText(from), timeText(to))
	case n > maxBackfill:
		return 0, Refuse(TooMany, "there are more than %d occurrences from %s on and before %s: backfill a part at a time", maxBackfill, timeText(from), timeText(to))
	}
	s.Backfill = &Backfill{Next: s.times.next(from.UnixMilli() - 1), To: to.UnixMilli(), Overlap: rule}
	s.refresh()
	return n, nil
}

func (s *Schedule) refusesFill(from, to time.Time, rule Overlap, now int64) *Refusal {
	for what, t := range map[string]time.Time{"from": from, "to": to} { // any order: both are checked alike
		if err := checkTime(what, t); err != nil || t.IsZero() {
			return Refuse(Invalid, "a backfill has a first time, from, and a time after the last, to, both in whole seconds")
		}
	}
	switch {
	case checkOverlap(rule) != nil:
		return Refuse(Invalid, "%s", checkOverlap(rule))
	case s.Backfill != nil:
		return Refuse(Busy, "a backfill of schedule %s is under way, until %s", s.Name, timeText(time.UnixMilli(s.Backfill.To)))
	case to.UnixMilli() > now:
		return Refuse(Invalid, "a backfill is of the past; its end is %s, and it is %s now", timeText(to), timeText(time.UnixMilli(now)))
	}
	return nil
}

// Resumed notes that a run of the schedule that had ended goes on.
func (s *Schedule) Resumed(run string) {
	if !slices.Contains(s.Active, run) && len(s.Active) < maxRunning {
		s.Active = append(s.Active, run)
	}
	if s.Last != nil && s.Last.Run == run {
		s.Last.State, s.Last.Ended = "running", 0
	}
	s.refresh()
}

// Ended notes that a run of the schedule has ended.
func (s *Schedule) Ended(run, state string, now int64) {
	s.Active = slices.DeleteFunc(s.Active, func(id string) bool { return id == run })
	if s.Last != nil && s.Last.Run == run {
		s.Last.State, s.Last.Ended = state, now
	}
	s.refresh()
}
