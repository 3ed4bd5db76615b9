package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/schedule"
)

// scheduleCmd is `settle schedule`.
type scheduleCmd struct {
	List     scheduleListCmd     `cmd:"" help:"List the schedules of a space."`
	Show     scheduleShowCmd     `cmd:"" help:"Print a schedule: its next time, its last run, and counts."`
	Set      scheduleSetCmd      `cmd:"" help:"Create a schedule, or replace its definition. With the same times it keeps its next one."`
	Pause    schedulePauseCmd    `cmd:"" help:"Pause a schedule."`
	Resume   scheduleResumeCmd   `cmd:"" help:"Resume a schedule. Times during the pause are not made up for."`
	Trigger  scheduleTriggerCmd  `cmd:"" help:"Start a run of a schedule now."`
	Backfill scheduleBackfillCmd `cmd:"" help:"Start runs of past times of a schedule."`
	Delete   scheduleDeleteCmd   `cmd:"" help:"Delete a schedule. Its runs go on."`
}

// withSchedules connects, and calls f with the schedules of a space.
func (c *inName) withSchedules(ctx context.Context, io streams, space string, f func(s flow.Schedules) error) error {
	if err := model.CheckName("space", space); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, ofSpaces(space), func(_ *bus.Bus, client *settle.Client) error {
		err := f(flow.SchedulesIn(client.Space(space)))
		if r, is := errors.AsType[*flow.ScheduleRefusal](err); errors.Is(err, flow.ErrNoSchedule) || is && r.Code == schedule.Unknown && !strings.Contains(r.Message, "no workflow") {
			return fmt.Errorf("%w; `settle schedule list %s` lists those that it has", err, space)
		}
		return usageIfName(err)
	})
}

// ofSchedule is a command about one schedule, which a worker performs.
type ofSchedule struct {
	inName
	Space   string        `arg:"" help:"A space."`
	Name    string        `arg:"" help:"A schedule."`
	Timeout time.Duration `help:"How long to wait for a worker." default:"10s"`
}

// do calls f within the timeout, and prints what it returns.
func (c *ofSchedule) do(ctx context.Context, io streams, f func(ctx context.Context, s flow.Schedules) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.withSchedules(ctx, io, c.Space, func(s flow.Schedules) error {
		text, err := f(ctx, s)
		if err == nil {
			fmt.Fprintf(io.out, "%s: %s\n", c.Name, text)
		}
		return err
	})
}

// scheduleListCmd is `settle schedule list`.
type scheduleListCmd struct {
	inName
	Space string `arg:"" help:"A space."`
	JSON  bool   `name:"json" help:"Print a JSON object per line."`
}

// Run lists schedules.
func (c *scheduleListCmd) Run(ctx context.Context, io streams) error {
	return c.withSchedules(ctx, io, c.Space, func(s flow.Schedules) error {
		list, err := s.List(ctx)
		if err != nil {
			return err
		}
		for _, x := range list {
			if c.JSON {
				if err := printSchedule(io, x); err != nil {
					return err
				}
				continue
			}
			last := "-"
			if x.Last != nil {
				last = x.Last.State
			}
			fmt.Fprintf(io.out, "%-6s  %-20s  %-9s  %s  %s  %s\n", x.Status, nextText(x), last, x.Name, x.Workflow, x.When())
		}
		if len(list) == 0 && !c.JSON {
			fmt.Fprintln(io.err, "there are no schedules in space", c.Space)
		}
		return nil
	})
}

// nextText returns the next time of a schedule.
func nextText(x *flow.ScheduleState) string {
	if x.Next == 0 {
		return "-"
	}
	return msText(x.Next)
}

func msText(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// printSchedule prints a schedule as the document of the space has it, with its name and other fields.
func printSchedule(io streams, x *flow.ScheduleState, fields ...model.Field) error {
	v, err := x.Value()
	if err != nil {
		return err
	}
	for k, field := range v.All() {
		fields = append(fields, model.Field{Key: k, Value: field})
	}
	return printLine(io.out, model.Object(append(fields, model.F("schedule", x.Name))...))
}

// scheduleShowCmd is `settle schedule show`.
type scheduleShowCmd struct {
	inName
	Space string `arg:"" help:"A space."`
	Name  string `arg:"" help:"A schedule."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run prints a schedule.
func (c *scheduleShowCmd) Run(ctx context.Context, io streams) error {
	return c.withSchedules(ctx, io, c.Space, func(s flow.Schedules) error {
		x, args, err := s.Get(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			lists, err := x.Lists.Value()
			if err != nil {
				return err
			}
			return printSchedule(io, x, model.F("args", args), model.F("runs", lists))
		}
		showSchedule(io, x, args)
		return nil
	})
}

func showSchedule(io streams, x *flow.ScheduleState, args model.Value) {
	line := func(format string, args ...any) { fmt.Fprintf(io.out, "  "+format+"\n", args...) }
	fmt.Fprintf(io.out, "%s: workflow %s, %s, %s\n", x.Name, x.Workflow, x.When(), x.Status)
	switch {
	case x.Changed:
		line("declared by the program, and changed since")
	case x.Declared != "":
		line("declared by the program")
	}
	if x.Reason != "" {
		line("paused: %s", x.Reason)
	}
	line("arguments %s", args)
	if x.Next != 0 {
		line("next %s, due %s", msText(x.Next), msText(x.Due))
	}
	if l := x.Last; l != nil {
		line("last run %s, %s, of %s by %s", l.Run, l.State, msText(l.At), l.By)
	}
	for _, id := range x.Active {
		line("running %s", id)
	}
	for _, o := range x.Queued {
		line("waiting %s", o.Run)
	}
	if b := x.Backfill; b != nil {
		line("backfill from %s to %s", msText(b.Next), msText(b.To))
	}
	line("started %d, skipped %d, missed %d, triggered %d, backfilled %d", x.Started, x.Skipped, x.Missed, x.Triggered, x.Backfilled)
	if k := x.Skip; k != nil {
		line("skipped %s: %s", k.Run, k.Why)
	}
}

// scheduleSetCmd is `settle schedule set`.
type scheduleSetCmd struct {
	ofSchedule
	Workflow string `arg:"" help:"The workflow, of the program that the space runs."`
	Args     string `arg:"" optional:"" name:"arguments" help:"A JSON object with the arguments of the runs, by name."`

	Cron       string `help:"A cron expression of five fields: minute hour day month weekday." placeholder:"EXPRESSION" xor:"when"`
	Zone       string `help:"The time zone of the cron expression. Default: UTC." placeholder:"ZONE"`
	Every      string `help:"An interval instead, such as 90s, 1h30m or 7d." placeholder:"DURATION" xor:"when"`
	Jitter     string `help:"How much later than its time a run starts at most." placeholder:"DURATION"`
	Start      string `help:"The time of the first possible run, such as 2026-11-27T10:00:00Z." placeholder:"TIME"`
	End        string `help:"The first time at which no run starts any more." placeholder:"TIME"`
	Max        int64  `help:"End after so many runs. Default: no limit." placeholder:"N"`
	Overlap    string `help:"While a run is still running: skip, queue, cancel or allow. Default: skip." placeholder:"RULE"`
	Queue      int    `help:"With overlap queue, how many runs may wait. Default: 1." placeholder:"N"`
	CatchUp    string `help:"By how much a run may be late, after which its time is missed. Default: 24h." placeholder:"DURATION"`
	CatchUpMax int    `help:"How many of the times that were missed at once start runs, the last ones. Default: 1." placeholder:"N"`
	TimeAs     string `help:"An argument of the runs that gets the time, as text." placeholder:"ARGUMENT"`
}

// definition reads the flags.
func (c *scheduleSetCmd) definition() (d flow.Schedule, err error) {
	fields := []model.Field{model.F("workflow", c.Workflow)}
	for _, f := range []struct{ key, text string }{
		{"cron", c.Cron},
		{"zone", c.Zone},
		{"every", c.Every},
		{"jitter", c.Jitter},
		{"start", c.Start},
		{"end", c.End},
		{"overlap", c.Overlap},
		{"catch_up", c.CatchUp},
		{"time_as", c.TimeAs},
	} {
		if f.text != "" {
			fields = append(fields, model.F(f.key, f.text))
		}
	}
	fields = append(fields, model.F("max", c.Max), model.F("queue", c.Queue), model.F("catch_up_max", c.CatchUpMax))
	return schedule.ReadDefinition(model.Object(fields...))
}

// Run sets a schedule.
func (c *scheduleSetCmd) Run(ctx context.Context, io streams) error {
	args, err := ofJSON("the argument", c.Args)
	if err != nil {
		return err
	}
	d, err := c.definition()
	if err := errors.Join(schedule.CheckName(c.Name), err); err != nil {
		return usage(err)
	}
	return c.do(ctx, io, func(ctx context.Context, s flow.Schedules) (string, error) {
		created, err := s.Set(ctx, c.Name, d, args)
		if created {
			return "created", err
		}
		return "replaced", err
	})
}

// schedulePauseCmd is `settle schedule pause`.
type schedulePauseCmd struct {
	ofSchedule
	Reason string `help:"The reason, which show prints." placeholder:"TEXT"`
}

// Run pauses a schedule.
func (c *schedulePauseCmd) Run(ctx context.Context, io streams) error {
	return c.do(ctx, io, func(ctx context.Context, s flow.Schedules) (string, error) {
		return "paused", s.Pause(ctx, c.Name, c.Reason)
	})
}

// scheduleResumeCmd is `settle schedule resume`.
type scheduleResumeCmd struct{ ofSchedule }

// Run resumes a schedule.
func (c *scheduleResumeCmd) Run(ctx context.Context, io streams) error {
	return c.do(ctx, io, func(ctx context.Context, s flow.Schedules) (string, error) {
		return "resumed", s.Resume(ctx, c.Name)
	})
}

// scheduleTriggerCmd is `settle schedule trigger`.
type scheduleTriggerCmd struct{ ofSchedule }

// Run triggers a schedule.
func (c *scheduleTriggerCmd) Run(ctx context.Context, io streams) error {
	return c.do(ctx, io, func(ctx context.Context, s flow.Schedules) (string, error) {
		run, started, err := s.Trigger(ctx, c.Name)
		if !started {
			return "run " + run + " waits for the end of another one", err
		}
		return "started run " + run, err
	})
}

// scheduleBackfillCmd is `settle schedule backfill`.
type scheduleBackfillCmd struct {
	ofSchedule
	From    time.Time `arg:"" help:"The first time, such as 2026-11-20T00:00:00Z."`
	To      time.Time `arg:"" help:"The end: the first time that is not included."`
	Overlap string    `help:"The overlap rule for these runs: skip, queue, cancel or allow. Default: that of the schedule." placeholder:"RULE"`
}

// Run backfills a schedule.
func (c *scheduleBackfillCmd) Run(ctx context.Context, io streams) error {
	return c.do(ctx, io, func(ctx context.Context, s flow.Schedules) (string, error) {
		n, err := s.Backfill(ctx, c.Name, c.From, c.To, schedule.Overlap(c.Overlap))
		return fmt.Sprintf("backfill of %d times", n), err
	})
}

// scheduleDeleteCmd is `settle schedule delete`.
type scheduleDeleteCmd struct{ ofSchedule }

// Run deletes a schedule.
func (c *scheduleDeleteCmd) Run(ctx context.Context, io streams) error {
	return c.do(ctx, io, func(ctx context.Context, s flow.Schedules) (string, error) {
		return "deleted", s.Delete(ctx, c.Name)
	})
}
