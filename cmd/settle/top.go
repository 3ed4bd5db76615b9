package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/space/inspect"
)

// topCmd is `settle top`.
type topCmd struct {
	connection
	Every time.Duration `help:"How long to measure before each output." default:"2s"`
	Limit int           `short:"n" help:"Number of spaces and of nodes to print." default:"10"`
	Sort  string        `help:"What to sort by: time, runs, bytes or wasted." enum:"time,runs,bytes,wasted" default:"time"`
	Once  bool          `help:"Print once, and exit."`
	JSON  bool          `name:"json" help:"Print JSON, one object for each output."`
}

// Run prints which spaces and nodes take most time, until it is interrupted.
func (c *topCmd) Run(ctx context.Context, io streams) error {
	if c.Every < 100*time.Millisecond || c.Every > time.Minute {
		return usage(fmt.Errorf("--every %v: use 100ms to 1m", c.Every))
	}
	if c.Limit < 1 {
		return usage(fmt.Errorf("--limit %d: use a positive number", c.Limit))
	}
	return c.use(ctx, io, need{shared: []string{provision.ComponentWorkers}}, func(b *bus.Bus, client *settle.Client) error {
		m := &meter{Meter: questions.Meter{Ask: func(ctx context.Context, worker string) (*questions.Top, error) { return client.Top(ctx, worker, 0) }}}
		for n := 0; ; n++ {
			if n%ticksPerLook == 0 {
				if err := m.look(ctx, b); err != nil {
					return interrupted(ctx, err)
				}
			}
			got, err := m.Read(ctx, m.workers)
			if err != nil {
				return interrupted(ctx, err)
			}
			if n > 0 {
				c.show(io, got)
			}
			if n > 0 && c.Once || pause.For(ctx, c.Every) != nil {
				return nil
			}
		}
	})
}

// ticksPerLook is after how many measurements the list of workers is read again.
const ticksPerLook = 10

// interrupted returns the error, unless the command was interrupted, which is its normal end.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// meter measures all workers.
type meter struct {
	questions.Meter
	workers []string
}

// look finds the workers.
func (m *meter) look(ctx context.Context, b *bus.Bus) error {
	f, err := fleet.Look(ctx, b)
	if err != nil {
		return err
	}
	m.workers = nil
	for i := range f.Workers {
		if s := f.Workers[i].State; s == fleet.Here || s == fleet.Leaving {
			m.workers = append(m.workers, f.Workers[i].ID)
		}
	}
	if len(m.workers) == 0 {
		return errors.New("no worker answers; start one (spaceworker)")
	}
	return nil
}

// show prints a measurement.
func (c *topCmd) show(io streams, m *questions.Measurement) {
	total := questions.Load{}
	for _, l := range m.Spaces {
		total.Time, total.Runs, total.Wasted, total.Errors, total.Bytes = total.Time+l.Time, total.Runs+l.Runs, total.Wasted+l.Wasted, total.Errors+l.Errors, total.Bytes+l.Bytes
	}
	m.Spaces, m.Nodes = questions.Largest(m.Spaces, c.Sort, c.Limit), questions.Largest(m.Nodes, c.Sort, c.Limit)
	if c.JSON {
		if err := printLine(io.out, m); err != nil {
			fmt.Fprintln(io.err, err)
		}
		return
	}
	s, _ := sheetFor(io.out)
	if s.color && !c.Once {
		fmt.Fprint(io.out, "\x1b[H\x1b[2J")
	}
	printLoad(s, m, &total)
}

func printLoad(s sheet, m *questions.Measurement, total *questions.Load) {
	head := fmt.Sprintf("%s  %s, %s runs/s, %s of them changed nothing, %s/s, measured over %.1fs", display.Count(len(m.Workers), "worker"), s.paint(bold, percent(total.Time)+" of one processor"),
		rate(total.Runs), percent(total.Wasted/max(total.Runs, 1e-9)), display.Bytes(int64(total.Bytes)), m.Seconds)
	fmt.Fprintln(s.out, head)
	if len(m.Silent) > 0 {
		fmt.Fprintln(s.out, s.paint(yellow, "no answer from "+strings.Join(m.Silent, ", ")))
	}
	if len(m.Spaces) == 0 {
		fmt.Fprintln(s.out, "nothing ran")
		return
	}
	fmt.Fprintln(s.out)
	table := func(heading []string, all []questions.Load, names func(*questions.Load) []cell) {
		rows := make([][]cell, len(all))
		for i := range all {
			l := &all[i]
			rows[i] = append([]cell{
				{text: percent(l.Time), code: bold, right: true},
				{text: rate(l.Runs), right: true},
				{text: lasted(time.Duration(l.Time / l.Runs * float64(time.Second))), right: true},
				quiet(percent(l.Wasted / l.Runs)),
				{text: display.Bytes(int64(l.Bytes)), right: true},
				problem(rate(l.Errors)),
			}, names(l)...)
		}
		s.table(append([]string{"TIME", "RUNS/S", "EACH", "WASTED", "WRITTEN/S", "ERRORS/S"}, heading...), rows)
	}
	table([]string{"SPACE", "WORKER"}, m.Spaces, func(l *questions.Load) []cell { return []cell{{text: l.Space}, {text: l.Worker, code: faint}} })
	fmt.Fprintln(s.out)
	table([]string{"SPACE", "NODE"}, m.Nodes, func(l *questions.Load) []cell {
		name := l.Node
		if doc, is := inspect.Observed(l.Node); is {
			name = "observers of " + doc
		} else if l.Handler {
			name = "event " + l.Node
		}
		return []cell{{text: l.Space}, {text: name}}
	})
}

// quiet shows a zero faintly, and problem a number in red unless it is zero.
func quiet(text string) cell {
	if text == "0%" {
		return cell{text: text, code: faint, right: true}
	}
	return cell{text: text, right: true}
}

func problem(text string) cell {
	if text == "0" {
		return cell{text: text, code: faint, right: true}
	}
	return cell{text: text, code: red, right: true}
}

// percent formats a part of one.
func percent(part float64) string {
	switch p := 100 * part; {
	case p == 0:
		return "0%"
	case p < 0.1:
		return "<0.1%"
	case p < 10:
		return fmt.Sprintf("%.1f%%", p)
	default:
		return fmt.Sprintf("%.0f%%", p)
	}
}

// rate formats a number per second.
func rate(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 10:
		return fmt.Sprintf("%.1f", n)
	default:
		return display.Grouped(int64(n + 0.5))
	}
}
