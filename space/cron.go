package space

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// Schedule computes the times of a job: the first one after a given time, and the zero time if there is none.
// It must be deterministic.
type Schedule interface {
	Next(after time.Time) time.Time
}

// CatchUp decides what happens to the times of a job that passed while the space was not loaded, because no
// worker ran or because a clock jumped.
type CatchUp uint8

const (
	// FireOnce: one event stands for all missed times, and carries their number.
	FireOnce CatchUp = iota
	// Skip: times older than CronSpec.Grace are not handled.
	Skip
	// All: each time is handled, in order, up to CronSpec.Limit of them in a row. The others are skipped and
	// reported as an error.
	All
)

func (c CatchUp) String() string {
	switch c {
	case FireOnce:
		return "fire once"
	case Skip:
		return "skip"
	case All:
		return "all"
	default:
		return "unknown"
	}
}

// CronSpec is a recurring job of every space of a program: it sends an event to a stream at each scheduled
// time. The next time is a timer of the space.
type CronSpec struct {
	// Name names the job within the program.
	Name   string
	Stream string
	// Schedule computes the times. Spec is its text: if that differs in the program that a space changes to,
	// the space adopts the new schedule.
	Schedule Schedule
	Spec     string
	CatchUp  CatchUp
	// Grace is the greatest delay with Skip; default one minute.
	Grace time.Duration
	// Limit is the largest number of missed times that All handles in a row; default 1000.
	Limit int
	// Once makes it an event that each space gets once for each Spec, in place of a Schedule: when the space first runs a
	// program with the job, and when Spec has changed. A handler may see it again years later.
	Once bool
}

// Missed times beyond maxMissed are not counted.
const (
	defaultGrace = time.Minute
	defaultLimit = 1000
	onceAgain    = 9 * 365 * 24 * time.Hour // how long the timer waits that stands for a job's event with Once
	maxMissed    = 10_000
	byCron       = "cron"   // by which the timers are set
	cronPrefix   = "=cron." // prefix of the timers' names; programs cannot use it
)

func (c *CronSpec) check() error {
	if err := model.CheckName("cron", c.Name); err != nil {
		return err
	}
	if err := model.CheckSendStream(c.Stream); err != nil {
		return err
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.Limit == 0 {
		c.Limit = defaultLimit
	}
	switch {
	case c.Schedule == nil && !c.Once:
		return fmt.Errorf("there is no schedule")
	case c.CatchUp > All:
		return fmt.Errorf("the catch-up policy is %d; use FireOnce, Skip or All", c.CatchUp)
	case c.Grace < 0:
		return fmt.Errorf("the grace of %s is negative", c.Grace)
	case c.Limit < 1 || c.Limit > maxMissed:
		return fmt.Errorf("the limit is %d; it must be between 1 and %d", c.Limit, maxMissed)
	}
	return nil
}

// JobOfTimer returns the name of the job that a timer belongs to, and false for any other timer.
func JobOfTimer(timer string) (job string, is bool) { return strings.CutPrefix(timer, cronPrefix) }

// jobTimers maintains the timers of the program's jobs.
type jobTimers struct {
	space  string
	specs  map[string]*CronSpec
	ledger *ledger.Ledger
	hooks  *hooks
	// check requests a check of the timers.
	check  bool
	missed Missed
}

// of returns the job that an event's timer belongs to, nil if there is none.
func (j *jobTimers) of(ev *model.Event) *CronSpec {
	name, ok := JobOfTimer(ev.Timer)
	if !ok || ev.Slot == 0 {
		return nil
	}
	return j.specs[name]
}

// occurrence is one time of a job, the payload of its event.
type occurrence struct {
	at int64
	// missed counts the earlier times that this occurrence stands for.
	missed int
	// prev is the last time that was handled, 0 if there was none: when the clock is set back, the schedule
	// continues after it. late counts the consecutive times that were handled to catch up.
	prev int64
	late int
}

func (c *CronSpec) payload(o occurrence) model.Value {
	return model.Object( // already sorted
		model.Field{Key: "at", Value: model.String(time.UnixMilli(o.at).UTC().Format(time.RFC3339))},
		model.Field{Key: "cron", Value: model.String(c.Name)},
		model.Field{Key: "late", Value: model.Int(int64(o.late))},
		model.Field{Key: "missed", Value: model.Int(int64(o.missed))},
		model.Field{Key: "prev", Value: model.Int(o.prev)},
		model.Field{Key: "spec", Value: model.String(c.Spec)},
	)
}

func readOccurrence(at int64, v model.Value) (o occurrence, spec string) {
	number := func(key string) int64 {
		n, _ := v.Get(key).AsInt()
		return n
	}
	spec, _ = v.Get("spec").AsString()
	return occurrence{at: at, missed: int(number("missed")), prev: number("prev"), late: int(number("late"))}, spec
}

// first returns the time at which a job begins that has no timer yet, 0 if there is none.
func (c *CronSpec) first(wall, after int64) int64 {
	if c.Once {
		return wall
	}
	return c.after(after)
}

// after returns the first time of the job after ms, 0 if there is none.
func (c *CronSpec) after(ms int64) int64 {
	if c.Once {
		return ms + onceAgain.Milliseconds()
	}
	next := c.Schedule.Next(time.UnixMilli(ms).UTC())
	if next.IsZero() {
		return 0
	}
	return max(model.NotBefore(next), ms+1)
}

// count counts the times after from, up to bound, and returns their number and the first time after them.
func (c *CronSpec) count(from, bound int64) (n int, next int64) {
	for next = c.after(from); next != 0 && next <= bound; next = c.after(next) {
		if n++; n == maxMissed {
			return n, c.after(bound)
		}
	}
	return n, next
}

// seen returns the occurrence for the handler, and the next one; next.at is 0 if there is none.
func (j *jobTimers) seen(c *CronSpec, ev *model.Event) (o, next occurrence) {
	o, _ = readOccurrence(ev.NotBefore, ev.Payload)
	next = occurrence{prev: o.at}
	switch c.CatchUp {
	case FireOnce:
		o.missed, next.at = c.count(o.at, j.ledger.Wall())
	case All:
		next.at = c.after(o.at)
		if next.at == 0 || next.at > j.ledger.Wall() {
			break
		}
		if next.late = o.late + 1; next.late >= c.Limit {
			next.missed, next.at = c.count(o.at, j.ledger.Wall())
			next.late = 0
		}
	default:
		next.at = c.after(o.at)
	}
	return o, next
}

// seenBy returns the event with the payload that the job's handler sees.
func (j *jobTimers) seenBy(ev *model.Event) model.Event {
	handed := *ev // a copy, because the handler may change it
	if c := j.of(ev); c != nil {
		set, spec := readOccurrence(ev.NotBefore, ev.Payload)
		if o, _ := j.seen(c, ev); o != set || spec != c.Spec {
			handed.Payload = c.payload(o)
		}
	}
	return handed
}

// setNext adds the next timer to the transaction that ends the event of a job, whatever its outcome.
func (j *jobTimers) setNext(d *ledger.Draft, ev *model.Event) {
	c := j.of(ev)
	if c == nil {
		return
	}
	o, next := j.seen(c, ev)
	j.noteMissed(c, max(o.missed, next.missed), o.at)
	if next.missed > 0 {
		j.hooks.report(ErrorInfo{Stream: ev.Stream, Event: ev.ID, Err: &MissedError{Cron: c.Name, Missed: next.missed}, Rejection: ByRule})
	}
	j.set(d, c, next)
}

// noteMissed records that a job skips times with the event that was due at the given time.
func (j *jobTimers) noteMissed(c *CronSpec, times int, at int64) {
	if times > 0 {
		j.missed = Missed{c.Name, times, at}
	}
}

func (j *jobTimers) set(d *ledger.Draft, c *CronSpec, o occurrence) {
	if o.at == 0 {
		return
	}
	d.Sends = append(d.Sends, model.Send{
		To: j.space, Stream: c.Stream, Timer: cronPrefix + c.Name, NotBefore: o.at, Payload: c.payload(o),
	})
}

// tooLate reports whether the event of a job must be skipped.
func (j *jobTimers) tooLate(ev *model.Event) bool {
	c := j.of(ev)
	return c != nil && c.CatchUp == Skip && ev.NotBefore < j.ledger.Wall()-c.Grace.Milliseconds()
}

// skip fills in the transaction that ends an event which is too late: it sets the timer to the next time that
// is not.
func (j *jobTimers) skip(d *ledger.Draft, ev *model.Event) {
	c := j.of(ev)
	o, _ := readOccurrence(ev.NotBefore, ev.Payload)
	n, next := c.count(o.at, j.ledger.Wall()-c.Grace.Milliseconds()-1)
	j.noteMissed(c, 1+n, o.at)
	j.set(d, c, occurrence{at: next, prev: o.at, missed: o.missed + 1 + n})
	if next == 0 {
		d.Cancels = append(d.Cancels, ev.Timer)
	}
}

// checkTimers sets the timers of jobs after the space was loaded or changed its program: missing ones, and
// those that another program set. After the clock was set back, it moves timers that lie too far ahead.
func (j *jobTimers) checkTimers(d *ledger.Draft) {
	d.By = byCron
	timers := j.ledger.Timers()
	for _, name := range slices.Sorted(maps.Keys(j.specs)) {
		j.checkTimer(d, j.specs[name])
	}
	for _, timer := range timers {
		if name, ok := JobOfTimer(timer); ok && j.specs[name] == nil {
			d.Cancels = append(d.Cancels, timer)
		}
	}
	if j.check = len(d.Sends)+len(d.Cancels) > 0; j.check {
		_, err := j.ledger.Record(d)
		j.check = err != nil // the next group has room
	}
}

func (j *jobTimers) checkTimer(d *ledger.Draft, c *CronSpec) {
	w := j.ledger.Timer(cronPrefix + c.Name)
	if w == nil {
		j.set(d, c, occurrence{at: c.first(j.ledger.Wall(), j.ledger.Wall())})
		return
	}
	o, spec := readOccurrence(w.NotBefore, w.Payload)
	if w.NotBefore <= j.ledger.Wall() {
		return // it is about to be handled, and that sets the next one
	}
	at := c.first(j.ledger.Wall(), max(j.ledger.Wall(), o.prev))
	if same := spec == c.Spec && w.Stream == c.Stream; !same || at != 0 && at < w.NotBefore && !c.Once {
		j.set(d, c, occurrence{at: at, prev: o.prev, missed: o.missed})
		if at == 0 {
			d.Cancels = append(d.Cancels, w.Timer)
		}
	}
}
