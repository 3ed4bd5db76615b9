// Package cron reads cron expressions and tells their times, in any time zone and across
// changes of the clocks there. Parsing is that of github.com/netresearch/go-cron; nothing
// here runs anything, reads a clock, or depends on the zone of the machine.
//
// # Expressions
//
//	minute hour day-of-month month day-of-week
//	second minute hour day-of-month month day-of-week
//	@yearly @monthly @weekly @daily @hourly, @every 90s
//
// with lists (1,15), ranges (MON-FRI), steps (*/10), L (the last day of the month), 15W (the
// working day next to the 15th) and FRI#2 (the second Friday). If both days are given, either
// will do. "CRON_TZ=Europe/Berlin 0 9 * * *" is in that zone; without it the zone is UTC.
//
// # When clocks change
//
// A job of fixed hours runs once on every day on which it is to run:
//
//	02:30 does not exist      it runs by so much later as the clocks were put forward: 03:30
//	02:30 comes twice         it runs at the first
//
// A job of every hour ("*" in the place of the hour) goes by the time that passes: it runs
// in both of the hours that have one name, and misses none that is left out. @every is a
// time from one to the next, and knows no clock.
package cron

import (
	"fmt"
	"time"
	_ "time/tzdata" // every worker is to know the same zones

	gocron "github.com/netresearch/go-cron"
)

// Schedule tells the times of an expression. It is safe for concurrent use.
type Schedule struct {
	text string
	zone *time.Location
	// elapsed tells the times of what goes by the time that passes, nil for fixed hours.
	elapsed gocron.Schedule
	// fixed tells the readings of the clocks, as if these were UTC.
	fixed *gocron.SpecSchedule
}

var parser = gocron.MustNewParser(gocron.SecondOptional | gocron.Minute | gocron.Hour | gocron.Dom | gocron.Month |
	gocron.Dow | gocron.Descriptor | gocron.Extended | gocron.DowOrDom)

// anyHour is how the parser marks an hour that is "*".
const anyHour = 1 << 63

// Parse reads an expression. One that is never is refused, such as the 30th of February.
func Parse(text string) (*Schedule, error) {
	parsed, err := parser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w", text, err)
	}
	s := &Schedule{text: text, zone: time.UTC}
	spec, ok := parsed.(*gocron.SpecSchedule)
	if !ok {
		s.elapsed = parsed
		return s, nil
	}
	if spec.Location != time.Local {
		s.zone = spec.Location
	}
	own := *spec
	if own.Location = time.UTC; spec.Hour&anyHour != 0 {
		own.Location, s.elapsed = s.zone, &own
	} else {
		s.fixed = &own
	}
	if s.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("cron expression %q: there is no such time", text)
	}
	return s, nil
}

// String is the expression.
func (s *Schedule) String() string { return s.text }

// Next is the first time after another, in UTC; the zero time if there is none within years.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.elapsed != nil {
		return inUTC(s.elapsed.Next(after.In(s.zone)))
	}
	// It is looked for from a day before: a reading that does not exist stands for a later
	// time, and one that comes twice for the first of them.
	reading := readingOf(after.In(s.zone)).Add(-24 * time.Hour)
	for {
		if reading = s.fixed.Next(reading); reading.IsZero() {
			return time.Time{}
		}
		if at := s.at(reading); at.After(after) {
			return at.UTC()
		}
	}
}

func inUTC(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// readingOf is what a clock shows, as if it were UTC.
func readingOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// at is when the clocks of the zone show a reading: the first time that they do, and if they
// never do, when they would if they had not been put forward yet.
func (s *Schedule) at(reading time.Time) time.Time {
	// The offset from UTC that was in force before any change that may be near.
	_, before := reading.Add(-26 * time.Hour).In(s.zone).Zone()
	first := reading.Add(-time.Duration(before) * time.Second)
	if readingOf(first.In(s.zone)).Equal(reading) {
		return first
	}
	_, now := first.In(s.zone).Zone()
	second := reading.Add(-time.Duration(now) * time.Second)
	if readingOf(second.In(s.zone)).Equal(reading) {
		return second
	}
	return first // it is left out
}
