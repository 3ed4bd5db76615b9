package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/redraw"
)

// frame renders the lines of the live screen.
type frame struct {
	style style
	notes []Note
	bar   *progressbar.ProgressBar
}

func (f *frame) begin(total int) {
	f.bar = progressbar.NewOptions(total,
		progressbar.OptionSetWriter(io.Discard), // the frame places it
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(0),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░"}))
	_ = f.bar.RenderBlank() // the output is discarded
}

// render returns the frame of a snapshot, cut to the size of the screen.
func (f *frame) render(now Snapshot, width, height int) []string {
	lines := append(f.table(now), "")
	lines = append(lines, f.status(now)...)
	lines = lines[max(len(lines)-height, 0):] // the status lines are kept longest
	for i := range lines {
		lines[i] = redraw.Cut(lines[i], width)
	}
	return lines
}

const (
	tableHead = "      airport  departures  mean delay  on time                revision  owner"
	tableRow  = " %3s  %-7s  %10s  %10s  %7s  %s  %9s  %s"
)

// table has a row for each watched airport, in a fixed order: ranks change all the time, and moving
// rows cannot be read.
func (f *frame) table(now Snapshot) []string {
	lines := []string{f.style.faint(tableHead)}
	for _, a := range now.Airports {
		if !a.Known {
			lines = append(lines, f.style.faint(fmt.Sprintf(" %3s  %-7s  %10s", "", a.Code, "-")))
			continue
		}
		rank := ""
		if a.Rank > 0 {
			rank = fmt.Sprint(a.Rank)
		}
		lines = append(lines, fmt.Sprintf(tableRow, rank, a.Code, display.Grouped(a.Departures), minutes(a.MeanDelay), percent(a.OnTime),
			f.style.cyan(redraw.Gauge(a.OnTime, 12)), display.Grouped(a.Revision), f.owner(a.Owner, now.Workers)))
	}
	return lines
}

// owner formats a worker's id, in red if it is dead.
func (f *frame) owner(id string, alive []string) string {
	if slices.Contains(alive, id) {
		return id
	}
	return f.style.red(id + " ✗")
}

// status formats the progress and the workers.
func (f *frame) status(now Snapshot) []string {
	label := func(s string) string { return "  " + f.style.faint(fmt.Sprintf("%-9s", s)) + " " }
	_ = f.bar.Set(now.Handled) // the output is discarded
	bar := strings.TrimSpace(f.bar.String())
	if share, blocks, ok := strings.Cut(bar, " "); ok {
		bar = f.style.green(strings.TrimSpace(blocks)) + fmt.Sprintf("  %4s", share)
	}
	how := fmt.Sprintf("%s of %s", display.Grouped(now.Handled), display.Grouped(now.Total))
	if s := now.Elapsed.Seconds(); s > 0 && now.Phase == Running {
		how += f.style.faint(fmt.Sprintf("  %s/s", display.Grouped(int(float64(now.Handled)/s))))
	} else if now.Phase != Running {
		how += f.style.faint("  " + now.Phase.sentence())
	}
	log := fmt.Sprintf("%s, %s", count(now.Commits, "commit"), count(now.Takeovers, "takeover"))
	lines := []string{
		label("handled") + bar + "  " + how,
		label("workers") + fmt.Sprintf("%-34s", strings.Join(now.Workers, " ")) + "    " + f.style.faint(log),
	}
	return append(lines, label("events")+f.events())
}

// events lists recent events, the newest first.
func (f *frame) events() string {
	if len(f.notes) == 0 {
		return f.style.faint("none so far")
	}
	var list []string
	for i := len(f.notes) - 1; i >= 0 && len(list) < 4; i-- {
		n := f.notes[i]
		text := fmt.Sprintf("%s at %.0f %%", n.text(), 100*n.Share)
		switch n.Kind {
		case Killed:
			text = f.style.yellow(text)
		case Warning:
			text = f.style.red(text)
		}
		list = append(list, text)
	}
	return strings.Join(list, f.style.faint(" · "))
}

func minutes(m float64) string { return fmt.Sprintf("%.1f min", m) }
