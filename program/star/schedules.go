package star

import (
	"fmt"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/schedule"
)

// scheduled is a schedule that a program declares.
type scheduled struct {
	schedule.Definition
	args model.Value
}

// scheduleArguments are the arguments of schedule(...) that are not a name.
type scheduleArguments struct {
	every, jitter, catchUp starlark.String
	start, end             string
	overlap                string
	args                   starlark.Value
}

// schedule is schedule(name, workflow, cron = "", zone = "UTC", every = "", ...): a schedule of each space of the program.
func (inst *instance) schedule(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	var d scheduled
	a := scheduleArguments{args: starlark.None}
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "workflow", &d.Workflow, "cron?", &d.Cron, "zone?", &d.Zone,
		"every?", &a.every, "jitter?", &a.jitter, "start?", &a.start, "end?", &a.end, "max?", &d.Max, "overlap?", &a.overlap, "queue?", &d.Queue,
		"catch_up?", &a.catchUp, "catch_up_max?", &d.CatchUpMax, "time_as?", &d.TimeAs, "args?", &a.args); err != nil {
		return nil, err
	}
	err := a.read(&d)
	if err == nil && a.args != starlark.None {
		d.args, err = inst.Run.ToModel(a.args)
	}
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", name, err)
	}
	return starlark.None, inst.add(t, &decl{kind: "schedule", id: name, scheduled: &d})
}

// read reads the durations and times.
func (a *scheduleArguments) read(d *scheduled) (err error) {
	d.Overlap = schedule.Overlap(a.overlap)
	for _, x := range []struct {
		what string
		text starlark.String
		to   *time.Duration
	}{{"every", a.every, &d.Every}, {"jitter", a.jitter, &d.Jitter}, {"catch_up", a.catchUp, &d.CatchUp}} {
		if *x.to, err = durationOf(x.what, x.text); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		what, text string
		to         *time.Time
	}{{"start", a.start, &d.Start}, {"end", a.end, &d.End}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = time.Parse(time.RFC3339, x.text); err != nil {
			return fmt.Errorf("%s: %q is not a time; write it like \"2026-11-27T10:00:00Z\"", x.what, x.text)
		}
		*x.to = x.to.UTC()
	}
	return nil
}

// addSchedules registers the schedules of the declarations.
func (p *Program) addSchedules(decls []*decl) error {
	for _, d := range decls {
		if d.kind != "schedule" {
			continue
		}
		if p.workflows.Lacks(d.scheduled.Workflow) {
			return errorAt(d.pos, "schedule %s: there is no workflow %q; write workflow(%q, run)", d.id, d.scheduled.Workflow, d.scheduled.Workflow)
		}
		if err := p.workflows.Declare(d.id, d.scheduled.Definition, d.scheduled.args); err != nil {
			return errorAt(d.pos, "%s", err)
		}
	}
	return nil
}
