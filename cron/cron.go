// Package cron parses cron expressions and computes their times, in any time zone and across clock
// changes. Parsing is done by github.com/netresearch/go-cron; the package runs nothing, reads no
// clock, and does not depend on the machine's time zone.
//
// # Expressions
//
//	minute hour day-of-month month day-of-week
//	second minute hour day-of-month month day-of-week
//	@yearly @monthly @weekly @daily @hourly, @every 90s
//
// with lists (1,15), ranges (MON-FRI), steps (*/10), L (the last day of the month), 15W (the
// working day nearest to the 15th) and FRI#2 (the second Friday). If both day fields are given, a
// day matches if either does. "CRON_TZ=Europe/Berlin 0 9 * * *" is in that zone; without it the
// zone is UTC.
//
// # When clocks change
//
// A job with fixed hours runs once on every day on which it is due:
//
//	02:30 does not exist      it runs later by as much as the clocks were put forward: 03:30
//	02:30 occurs twice        it runs at the first
//
// A job of every hour ("*" in the hour field) follows elapsed time: it runs in both of the hours
// that have the same name, and misses none where one is skipped. @every is an interval of elapsed
// time.
package cron

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // so that every worker has the same zones

	gocron "github.com/netresearch/go-cron"
)

// Schedule computes the times of an expression. It is safe for concurrent use.
type Schedule struct {
	text string
	zone *time.Location
	// elapsed computes the times of a job that follows elapsed time, nil for fixed hours.
	elapsed gocron.Schedule
	// fixed computes local times, as if they were UTC.
	fixed *gocron.SpecSchedule
}

var parser = gocron.MustNewParser(gocron.SecondOptional | gocron.Minute | gocron.Hour | gocron.Dom | gocron.Month |
	gocron.Dow | gocron.Descriptor | gocron.Extended | gocron.DowOrDom)

// anyHour is the parser's mark of an hour field "*".
const anyHour = 1 << 63

// Parse parses an expression. It refuses one that never occurs, such as the 30th of February.
func Parse(text string) (*Schedule, error) {
	parsed, err := parser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cron expression %q: %w", text, inField(text, err))
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

// inField returns the error of an expression with the name of the field that cannot be read, if one cannot.
func inField(text string, err error) error {
	fields := strings.Fields(text)
	if len(fields) > 0 && (strings.HasPrefix(fields[0], "TZ=") || strings.HasPrefix(fields[0], "CRON_TZ=")) {
		fields = fields[1:]
	}
	names := []string{"second", "minute", "hour", "day of the month", "month", "day of the week"}
	if len(fields) == len(names)-1 {
		names = names[1:]
	}
	if len(fields) != len(names) {
		return err
	}
	for i, field := range fields {
		alone := slices.Repeat([]string{"*"}, len(fields))
		alone[i] = field
		if _, own := parser.Parse(strings.Join(alone, " ")); own != nil {
			return fmt.Errorf("the %s, %q: %w", names[i], field, own)
		}
	}
	return err
}

// String returns the expression.
func (s *Schedule) String() string { return s.text }

// Next returns the first time after a time, in UTC; the zero time if there is none within years.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.elapsed != nil {
		return inUTC(s.elapsed.Next(after.In(s.zone)))
	}
	// The search starts one day earlier: a local time that does not exist stands for a later time,
	// and one that occurs twice for the first of them.
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

// readingOf returns the local time of a clock, as if it were UTC.
func readingOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// at returns when the clocks of the zone show a local time: the first such time or, if they never
// do, when they would have without being put forward.
func (s *Schedule) at(reading time.Time) time.Time {
	// The offset from UTC in force before any clock change nearby.
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
	return first // the local time does not exist
}
