package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

// workflowListCmd is `settle workflow list`.
type workflowListCmd struct {
	inName
	Space     string            `arg:"" help:"A space."`
	Workflow  string            `help:"List runs of this workflow." placeholder:"NAME"`
	State     string            `help:"List runs in this state: running, done, failed or cancelled." enum:",running,done,failed,cancelled" default:""`
	Since     time.Duration     `help:"List runs that were started within this time." placeholder:"DURATION"`
	Attribute map[string]string `help:"List runs with this attribute. The value is JSON, or else a text. Repeat it for others that must be there, too." placeholder:"KEY=VALUE" mapsep:"none"`
	Limit     int               `help:"How many runs are listed, at most 1,000." default:"100"`
	After     string            `help:"Go on behind the runs of the page before, which has printed this value." placeholder:"PLACE"`
	JSON      bool              `name:"json" help:"Print a JSON object per line."`
}

// filter returns the filter of the flags.
func (c *workflowListCmd) filter(now time.Time) flow.Filter {
	f := flow.Filter{Workflow: c.Workflow, State: runs.State(c.State), Attributes: attributesOf(c.Attribute), Limit: c.Limit, After: c.After}
	if c.Since > 0 {
		f.Since = now.Add(-c.Since).UnixMilli()
	}
	return f
}

// attributesOf returns the attributes of flags.
func attributesOf(flags map[string]string) map[string]model.Value {
	all := map[string]model.Value{}
	for key, text := range flags { // any order: each on its own
		all[key] = runs.AttributeOf(text)
	}
	return all
}

// Run lists runs.
func (c *workflowListCmd) Run(ctx context.Context, io streams) error {
	return c.withRuns(ctx, io, c.Space, func(r flow.Runs) error {
		p, err := r.Find(ctx, c.filter(io.now()))
		if err != nil {
			return err
		}
		if !c.JSON {
			printRuns(io, p.Runs)
		}
		for _, s := range p.Runs {
			if !c.JSON {
				break
			}
			if err := printLine(io.out, lineOf(s)); err != nil {
				return err
			}
		}
		switch {
		case p.Next != "":
			fmt.Fprintln(io.err, "there are more: --after", p.Next)
		case len(p.Runs) == 0 && !c.JSON:
			fmt.Fprintln(io.err, "there are no such runs in space", c.Space)
		}
		return nil
	})
}

// printRuns prints a table of runs.
func printRuns(io streams, list []*flow.Status) {
	if len(list) == 0 {
		return
	}
	screen, _ := sheetFor(io.out)
	now := io.now()
	rows := make([][]cell, len(list))
	for i, s := range list {
		rows[i] = runRow(now, s)
	}
	screen.table(runColumns, rows)
}

// runColumns are the heads of the columns of runRow.
var runColumns = []string{"RUN", "WORKFLOW", "STATE", "STARTED", "FOR", ""}

// runRow returns the row of a run in a table.
func runRow(now time.Time, s *flow.Status) []cell {
	started, end := time.UnixMilli(s.Started), now
	if s.Ended > 0 {
		end = time.UnixMilli(s.Ended)
	}
	more := childMark(s)
	if !s.Attributes.IsAbsent() {
		more = strings.TrimSpace(more + " " + s.Attributes.String())
	}
	return []cell{
		{text: s.ID, code: bold},
		{text: s.Workflow},
		{text: string(s.State), code: runColors[s.State]},
		{text: at(now, started)},
		{text: brief(end.Sub(started)), right: true},
		{text: more},
	}
}
