package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// lsCmd is `settle ls`.
type lsCmd struct {
	connection
	Spaces string `arg:"" optional:"" help:"A pattern, such as airport-*. Default: all spaces."`
	JSON   bool   `name:"json" help:"Print JSON, one object a line."`
}

// spaceLine is a space that exists.
type spaceLine struct {
	Space     string `json:"space"`
	Partition int    `json:"partition"`
	// Runs and Rule are the deployed program that the space runs, and the rule that selects it.
	Runs string `json:"runs,omitzero"`
	Rule string `json:"rule,omitzero"`
}

// Run lists the spaces.
func (c *lsCmd) Run(ctx context.Context, io streams) error {
	if c.Spaces != "" {
		if err := program.CheckSpaces(c.Spaces); err != nil {
			return usage(err)
		}
	}
	return c.use(ctx, io, need{}, func(b *bus.Bus, _ *settle.Client) error {
		spaces, partial := b.Spaces(ctx)
		if partial != nil && !errors.Is(partial, model.ErrNoStream) {
			return partial
		}
		table, err := program.Rules(ctx, b)
		if err != nil {
			return err
		}
		lines := spaceLines(spaces, table, c.Spaces, b.Partitions())
		if c.JSON {
			for i := range lines {
				if err := printLine(io.out, &lines[i]); err != nil {
					return err
				}
			}
			return partial
		}
		printSpaces(io, lines, len(spaces))
		return partial
	})
}

func spaceLines(spaces []string, table *program.Table, pattern string, partitions int) (lines []spaceLine) {
	of := program.Rule{Spaces: or(pattern, program.All)}
	for _, s := range spaces {
		if !of.Matches(s) {
			continue
		}
		l := spaceLine{Space: s, Partition: model.PartitionOf(s, partitions)}
		if r := table.Rule(s); r != nil {
			l.Runs, l.Rule = r.Choice.Of(s).String(), r.Spaces
		}
		lines = append(lines, l)
	}
	return lines
}

func printSpaces(io streams, lines []spaceLine, all int) {
	if len(lines) == 0 {
		text := "no space has handled anything yet; send an event: settle send SPACE STREAM PAYLOAD"
		if all > 0 {
			text = fmt.Sprintf("none of the %s that exist has such a name", display.Count(all, "space"))
		}
		fmt.Fprintln(io.out, text)
		return
	}
	s, _ := sheetFor(io.out)
	hosted := slices.ContainsFunc(lines, func(l spaceLine) bool { return l.Runs != "" })
	heading := []string{"SPACE", "PARTITION"}
	if hosted {
		heading = []string{"SPACE", "PARTITION", "RUNS", "BY THE RULE ABOUT"}
	}
	rows := make([][]cell, len(lines))
	for i, l := range lines {
		rows[i] = []cell{{text: l.Space, code: bold}, {text: strconv.Itoa(l.Partition), right: true}}
		if hosted {
			rows[i] = append(rows[i], cell{text: or(l.Runs, "-")}, cell{text: or(l.Rule, "-")})
		}
	}
	s.table(heading, rows)
	if !hosted {
		fmt.Fprintln(io.out, "\nNothing was deployed to these spaces: they run the program of the workers' executable, if it has one.")
		return
	}
	if slices.ContainsFunc(lines, func(l spaceLine) bool { return l.Runs == "" }) {
		fmt.Fprintln(io.out, strings.TrimSpace("\n- is not deployed: a program of the workers' own, or none"))
	}
}
