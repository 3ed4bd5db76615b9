package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/settlehq/settle/worker"
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

// load is what runs have cost in a second.
type load struct {
	Space   string `json:"space"`
	Node    string `json:"node,omitzero"`
	Handler bool   `json:"handler,omitzero"`
	Worker  string `json:"worker"`
	// Time is the part of a second that its runs took, Runs, Wasted, Errors and Bytes are counts per second.
	Time   float64 `json:"time"`
	Runs   float64 `json:"runs"`
	Wasted float64 `json:"wasted"`
	Errors float64 `json:"errors"`
	Bytes  float64 `json:"bytes"`
}

// measurement is what all workers have measured in an interval.
type measurement struct {
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	Workers []string  `json:"workers"`
	Silent  []string  `json:"silent,omitzero"`
	Spaces  []load    `json:"spaces"`
	Nodes   []load    `json:"nodes"`
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
		m := &meter{client: client, last: map[string]*questions.Top{}}
		for n := 0; ; n++ {
			if n%ticksPerLook == 0 {
				if err := m.look(ctx, b); err != nil {
					return interrupted(ctx, err)
				}
			}
			got, err := m.read(ctx)
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
	client  *settle.Client
	workers []string
	last    map[string]*questions.Top // by worker
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

// read returns what has been measured since the last call.
func (m *meter) read(ctx context.Context) (*measurement, error) {
	out := &measurement{At: time.Now().UTC(), Spaces: []load{}, Nodes: []load{}}
	for _, id := range m.workers {
		within, cancel := context.WithTimeout(ctx, 3*time.Second)
		top, err := m.client.Top(within, id, 0)
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // it has left, or is of a version without this
			out.Silent = append(out.Silent, id)
			delete(m.last, id)
			continue
		}
		out.Workers = append(out.Workers, id)
		if before := m.last[id]; before != nil && before.Now.Before(top.Now) {
			out.Seconds = top.Now.Sub(before.Now).Seconds()
			out.Spaces = append(out.Spaces, differences(id, before.Spaces, top.Spaces, out.Seconds)...)
			out.Nodes = append(out.Nodes, differences(id, before.Nodes, top.Nodes, out.Seconds)...)
		}
		m.last[id] = top
	}
	return out, nil
}

// differences returns what has been added to counts within some seconds.
func differences(id string, before, after []worker.Usage, seconds float64) (out []load) {
	type key struct {
		space, node string
		born        uint64
	}
	had := make(map[key]worker.Usage, len(before))
	for _, u := range before {
		had[key{u.Space, u.Node, u.Born}] = u
	}
	for _, u := range after {
		was := had[key{u.Space, u.Node, u.Born}] // zero for one that is new
		if u.Runs <= was.Runs {
			continue
		}
		per := func(n uint64) float64 { return float64(n) / seconds }
		out = append(out, load{
			Space: u.Space, Node: u.Node, Handler: u.Handler, Worker: id, Time: (u.Time - was.Time).Seconds() / seconds,
			Runs: per(u.Runs - was.Runs), Wasted: per(u.Wasted - was.Wasted), Errors: per(u.Errors - was.Errors), Bytes: per(u.Bytes - was.Bytes),
		})
	}
	return out
}

// show prints a measurement.
func (c *topCmd) show(io streams, m *measurement) {
	total := load{}
	for _, l := range m.Spaces {
		total.Time, total.Runs, total.Wasted, total.Errors, total.Bytes = total.Time+l.Time, total.Runs+l.Runs, total.Wasted+l.Wasted, total.Errors+l.Errors, total.Bytes+l.Bytes
	}
	m.Spaces, m.Nodes = c.most(m.Spaces), c.most(m.Nodes)
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

// most sorts loads, and keeps the largest.
func (c *topCmd) most(all []load) []load {
	of := map[string]func(*load) float64{
		"time": func(l *load) float64 { return l.Time }, "runs": func(l *load) float64 { return l.Runs },
		"bytes": func(l *load) float64 { return l.Bytes }, "wasted": func(l *load) float64 { return l.Wasted },
	}[c.Sort]
	slices.SortFunc(all, func(a, b load) int {
		return cmp.Or(cmp.Compare(of(&b), of(&a)), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Node, b.Node))
	})
	return all[:min(len(all), c.Limit)]
}

func printLoad(s sheet, m *measurement, total *load) {
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
	table := func(heading []string, all []load, names func(*load) []cell) {
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
	table([]string{"SPACE", "WORKER"}, m.Spaces, func(l *load) []cell { return []cell{{text: l.Space}, {text: l.Worker, code: faint}} })
	fmt.Fprintln(s.out)
	table([]string{"SPACE", "NODE"}, m.Nodes, func(l *load) []cell {
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
