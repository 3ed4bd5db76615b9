package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
)

// sheet writes text for people, in colour if the output is a terminal.
type sheet struct {
	out   io.Writer
	color bool
	// width is the number of columns of the terminal, 0 if out is none and lines may have any length.
	width int
}

func (s sheet) paint(code, text string) string {
	if !s.color || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Colour codes of terminals.
const (
	bold, faint, red, green, yellow = "1", "2", "31", "32", "33"
)

// cell is a text and its colour. right aligns it to the right, for numbers.
type cell struct {
	text, code string
	right      bool
}

func number[N int | uint64](n N) cell {
	c := cell{text: display.Grouped(uint64(n)), right: true}
	if n == 0 {
		c.code = faint
	}
	return c
}

// below indents a cell that is printed below its line.
const below = "    "

// table prints rows below a heading, in columns as wide as their widest cell. If the terminal is too
// narrow, each cell of the last column is printed below its line.
func (s sheet) table(heading []string, rows [][]cell) {
	width := make([]int, len(heading))
	sum := 2 * (len(heading) - 1)
	for i, h := range heading {
		width[i] = utf8.RuneCountInString(h)
		for _, r := range rows {
			width[i] = max(width[i], utf8.RuneCountInString(r[i].text))
		}
		sum += width[i]
	}
	shown := len(heading)
	if s.width > 0 && sum > s.width {
		shown--
	}
	line := make([]cell, len(heading))
	for i, h := range heading {
		line[i] = cell{text: h, code: faint, right: len(rows) > 0 && rows[0][i].right}
	}
	for _, r := range append([][]cell{line}, rows...) {
		var b strings.Builder
		for i, c := range r[:shown] {
			fill := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text))
			text := s.paint(c.code, c.text)
			switch {
			case c.right:
				b.WriteString(fill + text)
			case i < len(r)-1:
				b.WriteString(text + fill)
			default:
				b.WriteString(text)
			}
			if i < len(r)-1 {
				b.WriteString("  ")
			}
		}
		fmt.Fprintln(s.out, strings.TrimRight(b.String(), " "))
		for _, c := range r[shown:] {
			if c.text != "" && c.text != "-" && c.text != heading[shown] {
				fmt.Fprintln(s.out, below+s.paint(c.code, c.text))
			}
		}
	}
}

var stateColors = map[fleet.State]string{fleet.Here: green, fleet.Leaving: yellow, fleet.Silent: red, fleet.Gone: red}

// printFleet prints the members, the partitions, the stuck spaces and the problems.
func printFleet(s sheet, f *fleet.Fleet, prefix string, width int) {
	fmt.Fprintf(s.out, "%s  %s, %s, %s\n\n", s.paint(bold, prefix), display.Count(len(f.Workers), "worker"),
		display.Count(len(f.Coordinators), "coordinator"), display.Count(len(f.Partitions), "partition"))
	wide := width >= 110
	if len(f.Workers) > 0 {
		printWorkers(s, f, wide)
		fmt.Fprintln(s.out)
	}
	if len(f.Coordinators) > 0 {
		printCoordinators(s, f, wide)
		fmt.Fprintln(s.out)
	}
	printPartitions(s, f, wide)
	if names := normal(f); len(names) > 0 {
		fmt.Fprintln(s.out, s.paint(faint, "Normal while events arrive, unless a number keeps growing: "+strings.Join(names, ", ")))
	}
	if len(f.Stuck) > 0 {
		fmt.Fprintln(s.out)
		printStuck(s, f)
	}
	if troubles := problems(f); len(troubles) > 0 {
		fmt.Fprintln(s.out)
		for _, t := range troubles {
			fmt.Fprintln(s.out, s.paint(yellow, "! ")+t)
		}
	}
}

func printWorkers(s sheet, f *fleet.Fleet, wide bool) {
	waiting := "WAITING"
	if wide {
		waiting = "EVENTS WAITING"
	}
	heading := []string{"WORKER", "STATE", "UP", "PARTITIONS", "AWAKE", waiting, "HANDLED", "APPENDS REFUSED"}
	labelled := wide && slices.ContainsFunc(f.Workers, func(m fleet.Member) bool { return m.Program != "" })
	if labelled {
		heading = append(heading, "PROGRAM")
	}
	if wide {
		heading = append(heading, "WEIGHT", "VERSION", "HOST")
	}
	left := map[string][]int{} // partitions of workers that do not answer, until another takes them over
	for _, h := range f.Hanging() {
		left[h.Worker] = h.Left
	}
	var rows [][]cell
	for _, m := range f.Workers {
		row := []cell{{text: m.ID, code: bold}, {text: string(m.State), code: stateColors[m.State]}, {text: up(f.At, m)}, {text: ranges(m, left[m.ID])}}
		if g := m.Figures; g != nil {
			waiting := 0
			for _, p := range g.Partitions {
				waiting += p.Events
			}
			row = append(row, number(g.Awake), number(waiting), number(g.Receipts-min(g.Failed, g.Receipts)), number(g.Refused))
		} else {
			none := cell{text: "-", code: faint, right: true}
			row = append(row, none, none, none, none)
		}
		if labelled {
			row = append(row, cell{text: cmp.Or(m.Program, "-")})
		}
		if wide {
			row = append(row, cell{text: strconv.FormatFloat(m.Weight, 'g', 3, 64), right: true}, cell{text: m.Version, code: faint}, cell{text: m.Host, code: faint})
		}
		rows = append(rows, row)
	}
	s.table(heading, rows)
}

func printCoordinators(s sheet, f *fleet.Fleet, wide bool) {
	heading := []string{"COORDINATOR", "STATE", "UP", "BEHIND"}
	if wide {
		heading = append(heading, "VERSION", "HOST")
	}
	var rows [][]cell
	for _, m := range f.Coordinators {
		row := []cell{{text: m.ID, code: bold}, {text: string(m.State), code: stateColors[m.State]}, {text: up(f.At, m)}, number(m.Unreleased)}
		if wide {
			row = append(row, cell{text: m.Version, code: faint}, cell{text: m.Host, code: faint})
		}
		rows = append(rows, row)
	}
	s.table(heading, rows)
}

func printPartitions(s sheet, f *fleet.Fleet, wide bool) {
	heading := []string{"PARTITION", "SERVED BY", "UNHANDLED", "OLDEST", "UNRELEASED", "UNSAVED"}
	if wide {
		heading = append(heading, "TAKEOVER TOOK")
	}
	blamed := slices.ContainsFunc(f.Partitions, mostlyOne)
	if blamed {
		heading = append(heading, "MOST OF SPACE")
	}
	var rows [][]cell
	for _, p := range f.Partitions {
		by := cell{text: strings.Join(p.Served, ", ")}
		switch {
		case len(p.Served) == 0 && len(p.Silent) > 0:
			by = cell{text: strings.Join(p.Silent, ", ") + " does not answer", code: red}
		case len(p.Served) == 0 && p.Owner == "":
			by = cell{text: "no worker", code: red}
		case len(p.Served) == 0:
			by = cell{text: "no worker yet, next: " + p.Owner, code: yellow}
		case !slices.Contains(p.Served, p.Owner):
			by = cell{text: by.text + ", moves to " + p.Owner, code: yellow}
		}
		oldest := cell{text: "-", code: faint, right: true}
		if !p.Oldest.IsZero() {
			oldest = cell{text: brief(f.At.Sub(p.Oldest)), right: true}
		}
		row := []cell{{text: strconv.Itoa(p.Number), right: true}, by, number(p.Events), oldest, number(p.Unreleased), number(p.Unsaved)}
		if p.Unread != "" {
			unknown := cell{text: "?", code: red, right: true}
			row[2], row[3], row[4] = unknown, unknown, unknown
		}
		if wide {
			row = append(row, cell{text: brief(p.Took), code: faint, right: true})
		}
		if blamed {
			most := cell{text: "-", code: faint}
			if mostlyOne(p) {
				most = cell{text: p.Busiest + " (" + display.Grouped(p.BusiestEvents) + ")", code: yellow}
			}
			row = append(row, most)
		}
		rows = append(rows, row)
	}
	s.table(heading, rows)
}

// fewEvents is a normal number of unhandled events: they are being handled, or their position is
// not saved yet.
const fewEvents = 10

// mostlyOne reports whether most of the unhandled events of a partition belong to one space.
func mostlyOne(p fleet.Partition) bool {
	return p.Events >= fewEvents && p.BusiestEvents > p.Events/2
}

// normal returns the names of the columns with a backlog that is expected under load.
func normal(f *fleet.Fleet) (names []string) {
	var behind, events, unreleased, unsaved bool
	for _, c := range f.Coordinators {
		behind = behind || c.Unreleased > 0
	}
	for _, p := range f.Partitions {
		events, unreleased, unsaved = events || p.Events > 0, unreleased || p.Unreleased > 0, unsaved || p.Unsaved > 0
	}
	for _, column := range []struct {
		name  string
		shown bool
	}{{"BEHIND", behind}, {"UNHANDLED", events}, {"UNRELEASED", unreleased}, {"UNSAVED", unsaved}} {
		if column.shown {
			names = append(names, column.name)
		}
	}
	return names
}

// printStuck lists the spaces that make no progress.
func printStuck(s sheet, f *fleet.Fleet) {
	rows := make([][]cell, len(f.Stuck))
	for i := range f.Stuck {
		t := &f.Stuck[i]
		event := "-"
		if t.Event != "" {
			event = t.Stream + "/" + t.Event
		}
		rows[i] = []cell{{text: t.Space, code: bold}, {text: event}, {text: brief(f.At.Sub(t.Since)), code: yellow, right: true}, {text: t.Worker}, {text: t.Reason}}
	}
	s.table([]string{"STUCK SPACE", "EVENT", "FOR", "WORKER", "WHY"}, rows)
	if more := f.StuckCount - len(f.Stuck); more > 0 {
		fmt.Fprintf(s.out, "and %d more: these are the oldest\n", more)
	}
}

// clockOff is the difference between clocks above which a worker is reported.
const clockOff = time.Second

// maxDisallowed is how many principals, spaces and streams with events that no rule allows are named.
const maxDisallowed = 5

// problems returns the problems that an operator should look at, with the remedy.
func problems(f *fleet.Fleet) (out []string) {
	if len(f.Staying()) == 0 {
		out = append(out, "no worker runs: events wait in their lanes. Start one: spaceworker")
	}
	coordinators := 0
	for _, c := range f.Coordinators {
		if c.State == fleet.Here {
			coordinators++
		}
	}
	if coordinators == 0 {
		out = append(out, "no coordinator runs: events between spaces wait. Start one: coordinator")
	}
	if hosts := f.Programs(); len(hosts) > 1 {
		out = append(out, "workers of different programs: "+strings.Join(hosts, ", ")+". Events that a worker's program has no handler for are refused for good. Give each program a deployment (--prefix) of its own")
	}
	for i, d := range f.Disallowed(f.At.Add(-fleet.DisallowedFor)) {
		if i == maxDisallowed {
			out = append(out, "more events were passed over; --json has them, and so has the page of settings of the console")
			break
		}
		out = append(out, fmt.Sprintf("%s to space %s: %s. If they are meant to be allowed: settle allow", cmp.Or(d.Principal, "a client without a principal"), d.Space, fleet.DisallowedText(&d)))
	}
	hanging := map[string]string{}
	for _, h := range f.Hanging() {
		hanging[h.Worker] = h.String()
	}
	by, texts := fleet.RewindText(f.Rewinds)
	for i := range by {
		out = append(out, fmt.Sprintf("the store has gone back to an earlier state; %s noticed it %s. The newest messages are lost; senders that have the events can send them again. `settle doctor --acknowledge` ends this report", by[i], texts[i]))
	}
	for _, m := range slices.Concat(f.Workers, f.Coordinators) {
		switch {
		case m.State == fleet.Silent && m.Coordinates():
			out = append(out, sentences(m.ID+" does not answer: it hangs, or its machine is cut off", "Another coordinator does its work, if there is one"))
		case m.State == fleet.Silent:
			out = append(out, sentences(m.ID+" does not answer: it hangs, or its machine is cut off", hanging[m.ID], "If it does not recover, end the process: nothing is lost"))
		case m.State == fleet.Gone:
			out = append(out, m.ID+" has ended without leaving. It is listed for an hour after its last announcement")
		}
		if m.Ahead.Abs() > clockOff {
			out = append(out, fmt.Sprintf("the clock of %s differs from this machine's by %s: timers are due by the workers' clocks. Synchronise the clocks (chrony, systemd-timesyncd)", m.ID, m.Ahead.Abs().Round(time.Millisecond)))
		}
		if went := m.WentBack(f.Noted()); went != "" {
			out = append(out, fmt.Sprintf("the store has gone back to an earlier state; %s noticed it %s. The newest messages are lost; senders that have the events can send them again", m.ID, went))
		}
		if m.State == fleet.Here {
			for _, l := range m.Full {
				out = append(out, fmt.Sprintf("the lane of partition %d has no room for events from other spaces; %s reports this since %s; %s, the first one for space %s. Nothing is lost: see storage in settle doctor",
					l.Partition, m.ID, l.Since.Format(time.RFC3339), waiting(l.Waiting), l.Space))
			}
		}
		out = append(out, lossesOf(&m)...)
		out = append(out, loadOf(&m)...)
		if what := m.Denied(); what != "" {
			out = append(out, m.ID+" is denied by the server: "+what+". Give its user the permissions of the role "+m.Kind()+": settle permissions")
		}
		if m.Figures != nil && m.Figures.Unstored != "" {
			out = append(out, "the store has no room, or fails; "+m.ID+" reports: "+m.Figures.Unstored+". Its commits wait. Free the disk and restart the NATS server, or raise the limit")
		}
	}
	if binaries := f.Binaries(); len(binaries) > 1 {
		out = append(out, "workers of different program files: "+strings.Join(binaries, ", ")+". This is normal during an upgrade")
	}
	for _, p := range f.Partitions {
		if p.Unread != "" {
			out = append(out, fmt.Sprintf("partition %d cannot be read: %s; `settle doctor` says what to do", p.Number, p.Unread))
		}
		if len(p.Served) > 1 {
			out = append(out, fmt.Sprintf("partition %d is served by %s at once: one of them has not noticed yet that the other has taken over, as for a moment after a pause or a disconnection. Nothing is lost; the appends of one are refused", p.Number, strings.Join(p.Served, " and ")))
		}
	}
	return out
}

// waiting returns a number of waiting events in words.
func waiting(n int) string {
	if n == 1 {
		return "1 event waits"
	}
	return fmt.Sprintf("%d events wait", n)
}

// sentences joins sentences, and omits empty ones.
func sentences(all ...string) string {
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	for i, s := range all[1:] {
		first, rest := utf8.DecodeRuneInString(s)
		all[i+1] = string(unicode.ToUpper(first)) + s[rest:]
	}
	return strings.Join(all, ". ")
}

// loadOf returns the signs of overload of a worker.
func loadOf(m *fleet.Member) (out []string) {
	f := m.Figures
	if f == nil {
		return nil
	}
	if f.Queued > 0 {
		out = append(out, fmt.Sprintf("%s wait to be loaded by %s, next: %s; %d are in memory", display.Count(f.Queued, "space"), m.ID, strings.Join(f.Next, ", "), f.Awake))
	}
	if f.Abandoned > 0 {
		out = append(out, fmt.Sprintf("%s in handlers or nodes of %s were given up and have not returned: each holds memory, and a processor while it computes", display.Count(f.Abandoned, "goroutine"), m.ID))
	}
	for _, l := range f.Late {
		out = append(out, fmt.Sprintf("timers of space %s are late on %s: the first of %s was due at %s", l.Space, m.ID, display.Count(l.Waiting, "event"), l.Since.Format(time.RFC3339)))
	}
	if more := f.LateCount - len(f.Late); more > 0 {
		out = append(out, fmt.Sprintf("timers of %s more are late on %s", display.Count(more, "space"), m.ID))
	}
	for _, l := range f.Missed {
		out = append(out, fmt.Sprintf("job %s of space %s has skipped %s after the one of %s, as %s reports: no worker ran then", l.Cron, l.Space, display.Count(l.Times, "time"), l.At.Format(time.RFC3339), m.ID))
	}
	if w := &f.Watches; w.Limit > 0 && w.Open >= w.Limit {
		out = append(out, fmt.Sprintf("%s serves %d watches, which is its limit, %d of them of %s/%s; it has refused %d", m.ID, w.Open, w.Most, w.Space, w.Document, w.Refused))
	}
	for i := range f.Failing {
		if a := &f.Failing[i]; a.GivenUp == 0 || !a.Handled && time.Since(a.At) < fleet.FailingFor {
			out = append(out, fmt.Sprintf("space %s on %s: %s", a.Space, m.ID, fleet.FailingText(a)))
		}
	}
	for _, text := range f.Unrunnable {
		out = append(out, "a deployed version cannot run on "+m.ID+": "+text)
	}
	return out
}

// lossesOf returns the partitions and spaces that a worker refuses to serve.
func lossesOf(m *fleet.Member) (out []string) {
	if m.Figures == nil {
		return nil
	}
	for i := range m.Figures.Losses {
		l := &m.Figures.Losses[i]
		out = append(out, fmt.Sprintf("%s is refused by %s since %s: %s", l.What(), m.ID, l.Since.Format(time.RFC3339), l.Reason))
	}
	if more := m.Figures.LossCount - len(m.Figures.Losses); more > 0 {
		out = append(out, fmt.Sprintf("%s refuses %d more: settle accept-loss and settle quarantine list all", m.ID, more))
	}
	return out
}

// printPlace prints where a space is served, and why.
func printPlace(s sheet, p place) {
	fmt.Fprintf(s.out, "space %s is in partition %d of %d (a hash of its name)\n", s.paint(bold, p.Space), p.Partition, p.Partitions)
	switch {
	case p.Owner == "":
		fmt.Fprintln(s.out, "no worker runs, so its events wait. Start one: spaceworker")
		return
	case len(p.Served) == 0 && len(p.Silent) > 0:
		fmt.Fprintf(s.out, "%s serves it and does not answer: it hangs, or its machine is cut off. %s takes it over after the member TTL (15 s by default)\n", s.paint(bold, strings.Join(p.Silent, " and ")), s.paint(bold, p.Owner))
	case len(p.Served) == 0:
		fmt.Fprintf(s.out, "no worker serves it yet; next: %s\n", s.paint(bold, p.Owner))
	case !slices.Contains(p.Served, p.Owner):
		fmt.Fprintf(s.out, "%s serves it, and hands it over to %s\n", strings.Join(p.Served, " and "), s.paint(bold, p.Owner))
	default:
		fmt.Fprintf(s.out, "%s serves it\n", s.paint(bold, strings.Join(p.Served, " and ")))
	}
	fmt.Fprintln(s.out)
	var rows [][]cell
	passed := false
	for i, r := range p.Ranking {
		why := cell{text: "would be next", code: faint}
		switch {
		case r.Owner && i == 0:
			why = cell{text: "has the highest score, and room", code: green}
		case r.Owner:
			why = cell{text: "has the highest score of those with room", code: green}
		case r.Full && !passed:
			why = cell{text: "scores higher, but already has its share of partitions"}
		case r.Full:
			why = cell{text: "already has its share", code: faint}
		}
		passed = passed || r.Owner
		rows = append(rows, []cell{{text: r.Member, code: bold}, {text: fmt.Sprintf("%.3f", r.Score), right: true}, why})
	}
	s.table([]string{"WORKER", "SCORE", ""}, rows)
}

// ranges returns the partitions of a member in short form: 0 3 5-7. For a member that does not answer,
// left are those that no other worker has taken over.
func ranges(m fleet.Member, left []int) string {
	holds := m.Holds
	switch m.State {
	case fleet.Silent:
		holds = left
	case fleet.Gone:
		holds = nil
	}
	if len(holds) == 0 {
		return "-"
	}
	return fleet.Ranges(holds)
}

func up(now time.Time, m fleet.Member) string {
	if m.Since.IsZero() || m.State == fleet.Gone {
		return "-"
	}
	return brief(now.Sub(m.Since))
}

// brief returns a duration in at most its two largest units.
func brief(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}
