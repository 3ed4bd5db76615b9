package space

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/model"
)

// Commands and statements for wall time: events that wait, timers and cron.

func init() {
	commands = append(commands, command{"clock", (*stage).cmdClock}, command{"later", (*stage).cmdLater})
}

// zeroHour is the origin of a scenario's clock, a full hour.
const zeroHour = 1_800_000_000_000 / 3_600_000 * 3_600_000

// clock is the wall time of a scenario. Without it, runtimes do not know the time.
type clock struct {
	set  bool
	wall time.Duration // since zeroHour
}

func (c *clock) now() time.Time { return time.UnixMilli(zeroHour).Add(c.wall) }

// onClock converts a time in milliseconds to the clock of a scenario.
func onClock(ms int64) time.Duration { return time.Duration(ms-zeroHour) * time.Millisecond }

// cmdClock sets the clock, and runs the runtimes that wait for that time.
func (s *stage) cmdClock(d *datadriven.TestData) error {
	to, err := time.ParseDuration(arg(d, 0))
	if err != nil {
		return err
	}
	s.clock = clock{true, to}
	s.tellBus("the clock shows %s", to)
	s.runDue()
	return nil
}

// runDue runs the runtimes that requested to be called by now.
func (s *stage) runDue() {
	for _, a := range s.actors {
		if a.wake != 0 && a.wake <= s.now || a.due != 0 && a.due <= s.clock.now().UnixMilli() {
			a.runAll()
		}
	}
}

// tellDue prints when a runtime must be called, by the clock, if that has changed.
func (a *actor) tellDue(due int64) {
	if due != a.due && due != 0 {
		a.tell(a, 1, "due at %s", onClock(due))
	}
	a.due = due
}

// cmdLater prints what waits in a space according to the log, in order of time.
func (s *stage) cmdLater(d *datadriven.TestData) error {
	var list []*model.Waiting
	s.replica(arg(d, 0)).Later.Each(func(w *model.Waiting) { list = append(list, w) })
	slices.SortFunc(list, func(a, b *model.Waiting) int {
		return cmp.Or(cmp.Compare(a.NotBefore, b.NotBefore), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Nth, b.Nth))
	})
	for _, w := range list {
		s.tellBus("%s on %s at %s%s, in slot %d", w.ID, w.Stream, onClock(w.NotBefore), timerNamed(w.Timer), w.Slot)
	}
	if len(list) == 0 {
		s.tellBus("nothing waits")
	}
	return nil
}

func timerNamed(name string) string {
	if name == "" {
		return ""
	}
	return ", timer " + name
}

// waitsUntil describes the time that a send waits for.
func waitsUntil(m *model.Send) string {
	if m.NotBefore == 0 {
		return ""
	}
	return fmt.Sprintf(" at %s%s", onClock(m.NotBefore), timerNamed(m.Timer))
}

// parseAfter parses "DURATION stream [expr]" or "DURATION space/stream [expr]".
func parseAfter(rest string) (statement, error) {
	after, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	d, err := time.ParseDuration(after)
	if err != nil {
		return nil, err
	}
	return parseSending(rest, func(tx *Tx, space, stream string, v model.Value) { tx.SendAfter(space, stream, d, v) })
}

// parseTimer parses "name DURATION stream [expr]".
func parseTimer(rest string) (statement, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	after, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	d, err := time.ParseDuration(after)
	if err != nil {
		return nil, err
	}
	return parseSending(rest, func(tx *Tx, _, stream string, v model.Value) {
		if now := tx.Now(); tx.Err() == nil {
			tx.SetTimer(name, stream, now.Add(d), v)
		}
	})
}

// parseCancel parses the name of a timer.
func parseCancel(rest string) (statement, error) {
	return func(tx *Tx, _ *env) (model.Value, bool) {
		tx.CancelTimer(strings.TrimSpace(rest))
		return model.Value{}, false
	}, nil
}

// cron parses "name stream every=DURATION [catch-up=skip] [grace=DURATION] [limit=N]".
func (s *script) cron(rest string) error {
	words := strings.Fields(rest)
	if len(words) < 3 {
		return fmt.Errorf("it is: cron name stream every=DURATION [catch-up=fire-once|skip|all] [grace=DURATION] [limit=N]")
	}
	c := CronSpec{Name: words[0], Stream: words[1]}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "every":
			var d time.Duration
			d, err = time.ParseDuration(value)
			c.Schedule, c.Spec = evenly(d), value
		case "catch-up":
			i := slices.Index([]string{"fire-once", "skip", "all"}, value)
			if i < 0 {
				err = fmt.Errorf("%q is none of fire-once, skip and all", value)
			}
			c.CatchUp = CatchUp(max(i, 0))
		case "grace":
			c.Grace, err = time.ParseDuration(value)
		case "limit":
			_, err = fmt.Sscan(value, &c.Limit)
		default:
			err = fmt.Errorf("a cron job has no such option")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return s.Cron(c)
}

// evenly is a schedule with equal intervals, counted from the zero hour.
type evenly time.Duration

func (e evenly) Next(after time.Time) time.Time {
	d := time.Duration(e)
	return time.UnixMilli(zeroHour).Add((after.Sub(time.UnixMilli(zeroHour))/d + 1) * d)
}
