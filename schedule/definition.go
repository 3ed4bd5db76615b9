package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// Overlap is what happens to an occurrence while a run of the schedule is still running.
type Overlap string

// Overlap rules.
const (
	Skip   Overlap = "skip"   // it does not start a run; the default
	Queue  Overlap = "queue"  // it waits for the end of the run, in a bounded queue
	Cancel Overlap = "cancel" // the run is cancelled, and the new one starts
	Allow  Overlap = "allow"  // both run
)

// Bounds of a definition.
const (
	maxName         = 24
	minEvery        = time.Second
	maxEvery        = 3650 * 24 * time.Hour
	maxJitter       = 24 * time.Hour
	minCatchUp      = 10 * time.Second
	maxCatchUp      = 31 * 24 * time.Hour
	maxCatchUpRuns  = 100
	maxQueue        = 100
	maxText         = 100 // of a cron expression, and of a zone
	defaultCatchUp  = 24 * time.Hour
	defaultCatchUps = 1
	defaultQueue    = 1
)

// Definition is when a schedule starts runs, and of which workflow. In JSON, durations are texts such as "1h30m", and
// times are texts such as "2026-11-27T10:00:00Z".
type Definition struct {
	Workflow string `json:"workflow"`

	// Cron is a cron expression of five fields, see package cron, and Zone its time zone, "" for UTC. Or Every is an
	// interval of whole seconds, counted from Start, or else from the time at which the schedule was set.
	Cron  string        `json:"cron,omitzero"`
	Zone  string        `json:"zone,omitzero"`
	Every time.Duration `json:"every,omitzero"`

	// Jitter is how much later than its occurrence a run starts at most. It differs from one occurrence and space to
	// another, and is shorter than the time to the next occurrence.
	Jitter time.Duration `json:"jitter,omitzero"`
	// Start is the time of the first possible occurrence, End the first time at which there is none any more.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// Max is the number of occurrences that start a run, or queue one, after which the schedule ends; 0 means no limit.
	Max int64 `json:"max,omitzero"`

	// Overlap is Skip by default. Queue is how many occurrences wait with the rule Queue; 0 means one.
	Overlap Overlap `json:"overlap,omitzero"`
	Queue   int     `json:"queue,omitzero"`

	// CatchUp is by how much an occurrence may be late, after which it is missed; 0 means 24 hours. CatchUpMax is how
	// many occurrences that are due at the same time start a run, the last ones; 0 means one.
	CatchUp    time.Duration `json:"catch_up,omitzero"`
	CatchUpMax int           `json:"catch_up_max,omitzero"`

	// TimeAs is the name of an argument that gets the time of the occurrence, "" for none.
	TimeAs string `json:"time_as,omitzero"`
}

// CheckName returns an error for an invalid name of a schedule.
func CheckName(name string) error {
	if err := model.CheckName("schedule", name); err != nil {
		return err
	}
	if len(name) > maxName {
		return fmt.Errorf("schedule %q: the name has %d characters; at most %d are possible", name, len(name), maxName)
	}
	return nil
}

// Check returns an error if the definition is invalid.
func (d *Definition) Check() error {
	if err := model.CheckName("workflow", d.Workflow); err != nil {
		return err
	}
	if err := d.checkTiming(); err != nil {
		return err
	}
	if err := checkOverlap(d.Overlap); err != nil {
		return err
	}
	switch {
	case d.Queue != 0 && d.Overlap != Queue:
		return fmt.Errorf("queue is the length of the queue with overlap %q; the overlap is %q", Queue, d.overlap())
	case d.Queue < 0 || d.Queue > maxQueue:
		return fmt.Errorf("queue is %d; it must be between 1 and %d", d.Queue, maxQueue)
	case d.CatchUp != 0 && (d.CatchUp < minCatchUp || d.CatchUp > maxCatchUp):
		return fmt.Errorf("catch_up is %s; it must be between %s and %s", d.CatchUp, minCatchUp, maxCatchUp)
	case d.CatchUpMax < 0 || d.CatchUpMax > maxCatchUpRuns:
		return fmt.Errorf("catch_up_max is %d; it must be between 1 and %d", d.CatchUpMax, maxCatchUpRuns)
	case d.TimeAs != "":
		return model.CheckName("argument", d.TimeAs)
	}
	return nil
}

func checkOverlap(o Overlap) error {
	switch o {
	case "", Skip, Queue, Cancel, Allow:
		return nil
	}
	return fmt.Errorf("overlap is %.100q; use %q, %q, %q or %q", o, Skip, Queue, Cancel, Allow)
}

func (d *Definition) checkTiming() error {
	switch {
	case d.Cron == "" && d.Every == 0:
		return fmt.Errorf(`there are no times; give cron, such as "0 3 * * *", or every, such as "1h"`)
	case d.Cron != "" && d.Every != 0:
		return fmt.Errorf("there are cron and every; give one of them")
	case d.Zone != "" && d.Cron == "":
		return fmt.Errorf("zone is for cron; an interval has none")
	case d.Every != 0 && (d.Every < minEvery || d.Every > maxEvery || d.Every%time.Second != 0):
		return fmt.Errorf("every is %s; it must be whole seconds, between %s and %s", d.Every, minEvery, maxEvery)
	case d.Jitter < 0 || d.Jitter > maxJitter || d.Jitter%time.Millisecond != 0:
		return fmt.Errorf("jitter is %s; it must be whole milliseconds, at most %s", d.Jitter, maxJitter)
	case d.Max < 0:
		return fmt.Errorf("max is %d; it must be at least 1", d.Max)
	}
	for what, t := range map[string]time.Time{"start": d.Start, "end": d.End} { // any order: both are checked alike
		if err := checkTime(what, t); err != nil {
			return err
		}
	}
	if !d.Start.IsZero() && !d.End.IsZero() && !d.Start.Before(d.End) {
		return fmt.Errorf("the end, %s, is not after the start, %s", timeText(d.End), timeText(d.Start))
	}
	_, err := d.cron()
	return err
}

// checkTime refuses a time that the ID of a run cannot have. The zero time means none.
func checkTime(what string, t time.Time) error {
	if t.IsZero() {
		return nil
	}
	if y := t.UTC().Year(); y < 1970 || y > 9999 || t.Nanosecond() != 0 {
		return fmt.Errorf("%s is %s; it must be whole seconds, between the years 1970 and 9999", what, t.Format(time.RFC3339Nano))
	}
	return nil
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// sameTiming reports whether two definitions have the same occurrences, due at the same times.
func (d *Definition) sameTiming(o *Definition) bool {
	return d.Cron == o.Cron && d.zone() == o.zone() && d.Every == o.Every && d.Jitter == o.Jitter && d.Start.Equal(o.Start) && d.End.Equal(o.End)
}

func (d *Definition) zone() string {
	if d.Zone == "" {
		return "UTC"
	}
	return d.Zone
}

func (d *Definition) overlap() Overlap {
	if d.Overlap == "" {
		return Skip
	}
	return d.Overlap
}

func (d *Definition) queue() int {
	if d.Queue == 0 {
		return defaultQueue
	}
	return d.Queue
}

func (d *Definition) catchUp() (window int64, most int) {
	window, most = d.CatchUp.Milliseconds(), d.CatchUpMax
	if window == 0 {
		window = defaultCatchUp.Milliseconds()
	}
	if most == 0 {
		most = defaultCatchUps
	}
	return window, most
}

// When describes the times of the schedule in a few words.
func (d *Definition) When() string {
	if d.Every != 0 {
		return "every " + short(d.Every)
	}
	return d.Cron + " " + d.zone()
}

// short formats a duration without zero seconds and minutes at its end.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
