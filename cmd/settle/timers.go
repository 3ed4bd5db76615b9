package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// timersCmd is `settle timers`.
type timersCmd struct {
	connection
	Space   string        `arg:"" help:"A space."`
	Timeout time.Duration `help:"How long the command may take." default:"15s"`
	JSON    bool          `name:"json" help:"Print JSON, one object a line, with payloads."`
}

// waitingLine is a timer, a job or a delayed event, as `settle timers --json` prints it.
type waitingLine struct {
	Space   string      `json:"space"`
	At      time.Time   `json:"at"`
	Stream  string      `json:"stream"`
	Event   string      `json:"event"`
	Timer   string      `json:"timer,omitzero"`
	Job     string      `json:"job,omitzero"`
	Payload model.Value `json:"payload,omitzero"`
	// InLane is set while no worker has read it.
	InLane bool `json:"in_lane,omitzero"`
}

// Run lists timers, jobs and delayed events, in the order of their times.
func (c *timersCmd) Run(ctx context.Context, io streams) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.use(ctx, io, ofSpaces(c.Space).patient(c.Timeout), func(b *bus.Bus, _ *settle.Client) error {
		all, exists, err := history.ReadWaiting(ctx, b, c.Space)
		switch {
		case err != nil:
			return usageIfName(err)
		case !exists:
			return noSpace(c.Space)
		}
		lines := make([]waitingLine, len(all))
		for i := range all {
			lines[i] = c.line(&all[i])
		}
		if !c.JSON {
			c.print(ctx, io, b, lines)
			return nil
		}
		for i := range lines {
			if err := printLine(io.out, &lines[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *timersCmd) line(w *model.Waiting) waitingLine {
	l := waitingLine{
		Space: c.Space, At: time.UnixMilli(w.NotBefore).UTC(), Stream: w.Stream, Event: w.ID, Timer: w.Timer, Payload: w.Payload, InLane: w.Slot == 0,
	}
	if job, is := space.JobOfTimer(w.Timer); is {
		l.Timer, l.Job = "", job
	}
	return l
}

// what names the timer, job or event.
func (l *waitingLine) what() string {
	task, isDeadline := space.TaskOfTimer(l.Timer)
	switch {
	case l.Job != "":
		return "job " + l.Job
	case isDeadline:
		return "deadline of " + task
	case l.Timer != "":
		return "timer " + l.Timer
	}
	return "event"
}

// lateness is how long an event may be due before the command prints why it is not handled.
const lateness = 5 * time.Second

func (c *timersCmd) print(ctx context.Context, io streams, b *bus.Bus, lines []waitingLine) {
	if len(lines) == 0 {
		fmt.Fprintf(io.out, "nothing waits for its time in space %s\n", c.Space)
		return
	}
	now := time.Now()
	rows := make([][]cell, len(lines))
	for i := range lines {
		l := &lines[i]
		rows[i] = []cell{{text: until(now, l.At), code: bold, right: true}, {text: at(now, l.At)}, {text: l.what()}, {text: l.Stream}, {text: l.Event, code: faint}}
	}
	s, _ := sheetFor(io.out)
	s.table([]string{"IN", "AT", "WHAT", "STREAM", "EVENT"}, rows)
	if behind := slices.ContainsFunc(lines, func(l waitingLine) bool { return l.InLane || now.Sub(l.At) > lateness }); behind {
		fmt.Fprintf(io.err, "some are late, or no worker has read them yet: %s\n", describeOwner(ctx, b, c.Space))
	}
}

// until returns the duration until a time.
func until(now, then time.Time) string {
	switch d := then.Sub(now); {
	case d >= time.Minute:
		return brief(d)
	case d > 0:
		return brief(d.Round(100 * time.Millisecond))
	case d > -time.Second:
		return "now"
	default:
		return brief(-d) + " ago"
	}
}

// at returns a time in the local zone, without the day if that is today.
func at(now, then time.Time) string {
	then = then.Local()
	if y, m, d := now.Date(); then.Year() == y && then.Month() == m && then.Day() == d {
		return then.Format(time.TimeOnly)
	}
	return then.Format(time.DateTime)
}
