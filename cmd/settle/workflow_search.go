package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/runs"
)

// workflowSearchCmd is `settle workflow search`.
type workflowSearchCmd struct {
	connection
	Spaces    []string          `arg:"" optional:"" help:"Spaces to search, or patterns of them, such as 'order-*'. Default: all."`
	Workflow  string            `help:"Find runs of this workflow." placeholder:"NAME"`
	State     string            `help:"Find runs in this state: running, done, failed or cancelled." enum:",running,done,failed,cancelled" default:""`
	Since     time.Duration     `help:"Find runs that were started within this time." placeholder:"DURATION"`
	Attribute map[string]string `help:"Find runs with this attribute. The value is JSON, or else a text. Repeat it for others that must be there, too." placeholder:"KEY=VALUE" mapsep:"none"`
	Limit     int               `help:"How many runs are printed, at most 1,000." default:"100"`
	After     string            `help:"Go on behind the runs of the page before, which has printed this value." placeholder:"PLACE"`
	JSON      bool              `name:"json" help:"Print a JSON object per line."`
}

// foundLine is a run as `settle workflow search --json` prints it.
type foundLine struct {
	Space string `json:"space"`
	statusLine
}

// Run searches.
func (c *workflowSearchCmd) Run(ctx context.Context, io streams) error {
	s := flow.Search{Spaces: c.Spaces, Filter: flow.Filter{Workflow: c.Workflow, State: runs.State(c.State), Attributes: attributesOf(c.Attribute), Limit: c.Limit, After: c.After}}
	if c.Since > 0 {
		s.Since = io.now().Add(-c.Since).UnixMilli()
	}
	if err := s.Check(); err != nil {
		return usage(err)
	}
	return c.use(ctx, io, need{every: true}, func(_ *bus.Bus, client *settle.Client) error {
		p, err := flow.Find(ctx, client, s)
		switch {
		case errors.Is(err, flow.ErrInvalid):
			return usage(err)
		case err != nil:
			return err
		case c.JSON:
			for _, f := range p.Runs {
				if err := printLine(io.out, foundLine{f.Space, lineOf(f.Status)}); err != nil {
					return err
				}
			}
		default:
			printFound(io, p)
		}
		if p.Next != "" {
			fmt.Fprintln(io.err, "there are more: --after", p.Next)
		}
		return nil
	})
}

// printFound prints a table of runs, with their spaces.
func printFound(io streams, p *flow.FoundPage) {
	if len(p.Runs) == 0 {
		fmt.Fprintf(io.err, "there are no such runs in %s\n", display.Count(p.Searched, "space"))
		return
	}
	screen, _ := sheetFor(io.out)
	rows := make([][]cell, len(p.Runs))
	for i, f := range p.Runs {
		rows[i] = append([]cell{{text: f.Space}}, runRow(io.now(), f.Status)...)
	}
	screen.table(append([]string{"SPACE"}, runColumns...), rows)
}
