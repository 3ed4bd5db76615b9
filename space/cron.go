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

// Schedule tells the times of a job: the first after a time, and the zero time if there is
// none. It must say the same whenever it is asked.
type Schedule interface {
	Next(after time.Time) time.Time
}

// CatchUp says what becomes of the times of a job at which the space was not awake, because
// no worker ran, or a clock has jumped.
type CatchUp uint8

const (
	// FireOnce: one event stands for all of them, and says how many others were missed.
	FireOnce CatchUp = iota
	// Skip: what is older than CronSpec.Grace is not handled.
	Skip
	// All: each is handled, in order, up to CronSpec.Limit of them in a row. What is
	// missed beyond that is skipped, and reported as an error.
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

// CronSpec is a job that every space of a program has: an event to a stream, again and
// again. Its next time is a timer of the space.
type CronSpec struct {
	// Name names the job within the program.
	Name   string
	Stream string
	// Schedule tells the times. Spec tells it from any other: with another text, the
	// schedule has changed, which a space takes up when it gets the program.
	Schedule Schedule
	Spec     string
	CatchUp  CatchUp
	// Grace is how late Skip may be; default one minute.
	Grace time.Duration
	// Limit is how many missed times All handles in a row; default 1000.
	Limit int
}

// Defaults and bounds of jobs. What is missed beyond maxMissed is not counted.
const (
	defaultGrace = time.Minute
	defaultLimit = 1000
	maxMissed    = 10_000
	byCron       = "cron"   // of the transactions that set the timers
	cronPrefix   = "=cron." // of the timer's name, which no program can choose
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
	case c.Schedule == nil:
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

// JobOfTimer returns the name of the job whose next time a timer is, and false for any other timer.
func JobOfTimer(timer string) (job string, is bool) { return strings.CutPrefix(timer, cronPrefix) }

// jobTimers are the jobs of the program, in the space.
type jobTimers struct {
	space  string
	specs  map[string]*CronSpec
	ledger *ledger.Ledger
	hooks  *hooks
	// check says that their timers are to be looked at.
	check  bool
	missed Missed
}

// of returns the job whose timer an event is, nil if it is none.
func (j *jobTimers) of(ev *model.Event) *CronSpec {
	name, ok := JobOfTimer(ev.Timer)
	if !ok || ev.Slot == 0 {
		return nil
	}
	return j.specs[name]
}

// occurrence is one time of a job, as the payload of its event has it.
type occurrence struct {
	at int64
	// missed are the times that this one stands for besides its own.
	missed int
	// prev is the time before it that was handled, 0 if there was none: when the clock is
	// set back, the schedule goes on behind it. late counts the times in a row that were
	// handled to catch up.
	prev int64
	late int
}

func (c *CronSpec) payload(o occurrence) model.Value {
	return model.Object( // sorted, so they are taken as they are
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

// after returns the first time of the job after another, 0 if there is none.
func (c *CronSpec) after(ms int64) int64 {
	next := c.Schedule.Next(time.UnixMilli(ms).UTC())
	if next.IsZero() {
		return 0
	}
	return max(model.NotBefore(next), ms+1)
}

// count goes through the times after one, up to a bound, and returns how many they are, and
// the first behind them.
func (c *CronSpec) count(from, bound int64) (n int, next int64) {
	for next = c.after(from); next != 0 && next <= bound; next = c.after(next) {
		if n++; n == maxMissed {
			return n, c.after(bound)
		}
	}
	return n, next
}

// seen returns the occurrence as its handler is to see it, and the next one. There is none if
// next.at is 0.
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

// seenBy returns the event as the handler of a job is to see it.
func (j *jobTimers) seenBy(ev *model.Event) model.Event {
	handed := *ev // the lane's own is not the handler's to change
	if c := j.of(ev); c != nil {
		set, spec := readOccurrence(ev.NotBefore, ev.Payload)
		if o, _ := j.seen(c, ev); o != set || spec != c.Spec {
			handed.Payload = c.payload(o)
		}
	}
	return handed
}

// setNext has a transaction that ends the event of a job set the next time, however the
// event has ended.
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

// noteMissed notes that a job passes over so many times with the event that was due at a time.
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

// tooLate reports whether the event of a job is to be skipped.
func (j *jobTimers) tooLate(ev *model.Event) bool {
	c := j.of(ev)
	return c != nil && c.CatchUp == Skip && ev.NotBefore < j.ledger.Wall()-c.Grace.Milliseconds()
}

// skip makes a transaction the one that takes the place of the event of a job that is too late: it sets the
// next time that is not.
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

// checkTimers sets the timers of the jobs when the space has come to life, or has got another program: those
// that there are none of, or that another program has set. When the clock was set back, it brings those back
// which lie too far ahead.
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
		j.check = err != nil // there is room in the next group
	}
}

func (j *jobTimers) checkTimer(d *ledger.Draft, c *CronSpec) {
	w := j.ledger.Timer(cronPrefix + c.Name)
	if w == nil {
		j.set(d, c, occurrence{at: c.after(j.ledger.Wall())})
		return
	}
	o, spec := readOccurrence(w.NotBefore, w.Payload)
	if w.NotBefore <= j.ledger.Wall() {
		return // it is to be handled; the next one is set then
	}
	at := c.after(max(j.ledger.Wall(), o.prev))
	if same := spec == c.Spec && w.Stream == c.Stream; !same || at != 0 && at < w.NotBefore {
		j.set(d, c, occurrence{at: at, prev: o.prev, missed: o.missed})
		if at == 0 {
			d.Cancels = append(d.Cancels, w.Timer)
		}
	}
}
