package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/roster"
)

// fleetCmd is `settle fleet`.
type fleetCmd struct {
	connection
	Space string        `help:"Explain where this space is served." placeholder:"SPACE"`
	JSON  bool          `name:"json" help:"Print JSON."`
	Watch bool          `help:"Repeat, until interrupted."`
	Every time.Duration `help:"The interval of --watch." default:"1s"`
}

// Run prints the members, the owners of partitions, and backlogs.
func (c *fleetCmd) Run(ctx context.Context, io streams) error {
	if c.Every <= 0 {
		return usage(fmt.Errorf("--every %v: use a positive duration", c.Every))
	}
	if c.Space != "" {
		if err := model.CheckName("space", c.Space); err != nil {
			return usage(err)
		}
	}
	return c.use(ctx, io, need{shared: []string{provision.ComponentWorkers}}, func(b *bus.Bus, _ *settle.Client) error {
		for {
			if err := c.look(ctx, io.out, b); err != nil || !c.Watch {
				return err
			}
			if pause.For(ctx, c.Every) != nil {
				return nil // interrupted, which is the normal end
			}
		}
	})
}

func (c *fleetCmd) look(ctx context.Context, out io.Writer, b *bus.Bus) error {
	f, err := fleet.Look(ctx, b)
	if err != nil {
		if c.Watch && ctx.Err() != nil {
			return nil
		}
		return err
	}
	switch {
	case c.JSON && c.Space != "":
		return fleetJSON(out, explain(f, c.Space))
	case c.JSON:
		return fleetJSON(out, f)
	}
	screen, width := sheetFor(out)
	if c.Watch && screen.color {
		fmt.Fprint(out, "\x1b[H\x1b[2J")
	}
	if c.Space != "" {
		printPlace(screen, explain(f, c.Space))
		return nil
	}
	printFleet(screen, f, c.Prefix, width)
	return nil
}

func fleetJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// place is the JSON output of --space: where a space is served, and why.
type place struct {
	Space      string        `json:"space"`
	Partition  int           `json:"partition"`
	Partitions int           `json:"partitions"`
	Owner      string        `json:"owner"`
	Served     []string      `json:"served"`
	Silent     []string      `json:"silent,omitzero"`
	Ranking    []roster.Rank `json:"ranking"`
}

func explain(f *fleet.Fleet, space string) place {
	n := len(f.Partitions)
	p := model.PartitionOf(space, n)
	return place{
		Space: space, Partition: p, Partitions: n,
		Owner: f.Partitions[p].Owner, Served: f.Partitions[p].Served, Silent: f.Partitions[p].Silent,
		Ranking: roster.Explain(p, n, f.Staying()),
	}
}

// sheetFor returns the sheet for out, and its number of columns.
func sheetFor(out io.Writer) (sheet, int) {
	s, width := sheet{out: out}, 120
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s, width
	}
	s.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		width, s.width = w, w
	}
	return s, width
}
