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

	"github.com/settlehq/settle/internal/fleet"
)

// sheet writes text for people, in colour where that can be.
type sheet struct {
	out   io.Writer
	color bool
	// width is that of the terminal, 0 if out is none: then lines may be as long as they like.
	width int
}

func (s sheet) paint(code, text string) string {
	if !s.color || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Colours, as the terminal has them.
const (
	bold, faint, red, green, yellow = "1", "2", "31", "32", "33"
)

// cell is a text and its colour; right says that it is a number.
type cell struct {
	text, code string
	right      bool
}

func number[N int | uint64](n N) cell {
	c := cell{text: grouped(uint64(n)), right: true}
	if n == 0 {
		c.code = faint
	}
	return c
}

func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// below stands before what is put below a line.
const below = "    "

// table prints rows below a heading, in columns that are as wide as they need to be. If that is more
// than the terminal is, the last column is put below each line.
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

// printFleet prints everything: the members, the partitions, and what is wrong.
func printFleet(s sheet, f *fleet.Fleet, prefix string, width int) {
	fmt.Fprintf(s.out, "%s  %s, %s, %s\n\n", s.paint(bold, prefix), plural(len(f.Workers), "worker"),
		plural(len(f.Coordinators), "coordinator"), plural(len(f.Partitions), "partition"))
	wide := width >= 100
	if len(f.Workers) > 0 {
		printWorkers(s, f, wide)
		fmt.Fprintln(s.out)
	}
	if len(f.Coordinators) > 0 {
		printCoordinators(s, f, wide)
		fmt.Fprintln(s.out)
	}
	printPartitions(s, f, wide)
	if len(f.Stuck) > 0 {
		fmt.Fprintln(s.out)
		printStuck(s, f)
	}
	if troubles := troubles(f); len(troubles) > 0 {
		fmt.Fprintln(s.out)
		for _, t := range troubles {
			fmt.Fprintln(s.out, s.paint(yellow, "! ")+t)
		}
	}
}

func printWorkers(s sheet, f *fleet.Fleet, wide bool) {
	heading := []string{"WORKER", "STATE", "UP", "PARTITIONS", "AWAKE", "WAITING", "HANDLED", "REFUSED"}
	labelled := wide && slices.ContainsFunc(f.Workers, func(m fleet.Member) bool { return m.Program != "" })
	if labelled {
		heading = append(heading, "PROGRAM")
	}
	if wide {
		heading = append(heading, "WEIGHT", "VERSION", "HOST")
	}
	left := map[string][]int{} // of workers that do not answer: what no other has taken over yet
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
			row = append(row, number(g.Awake), number(waiting), number(g.Receipts), number(g.Refused))
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
			by = cell{text: "nobody", code: red}
		case len(p.Served) == 0:
			by = cell{text: "nobody yet, " + p.Owner + " is to", code: yellow}
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
				most = cell{text: p.Busiest + " (" + grouped(p.BusiestEvents) + ")", code: yellow}
			}
			row = append(row, most)
		}
		rows = append(rows, row)
	}
	s.table(heading, rows)
}

// fewEvents are usual: they are being handled, or their position is not saved yet.
const fewEvents = 10

// mostlyOne reports whether most of the events that wait in a partition are of one space.
func mostlyOne(p fleet.Partition) bool {
	return p.Events >= fewEvents && p.BusiestEvents > p.Events/2
}

// printStuck names the spaces that stand still.
func printStuck(s sheet, f *fleet.Fleet) {
	rows := make([][]cell, len(f.Stuck))
	for i := range f.Stuck {
		t := &f.Stuck[i]
		event := "-"
		if t.Event != "" {
			event = t.Stream + "/" + t.Event
		}
		rows[i] = []cell{{text: t.Space, code: bold}, {text: event}, {text: brief(f.At.Sub(t.Since)), code: yellow, right: true}, {text: t.Worker}, {text: t.Why}}
	}
	s.table([]string{"STUCK SPACE", "EVENT", "FOR", "WORKER", "WHY"}, rows)
	if more := f.StuckCount - len(f.Stuck); more > 0 {
		fmt.Fprintf(s.out, "and %d more: these are the oldest\n", more)
	}
}

// clockOff is from when on a worker's clock is told of.
const clockOff = time.Second

// troubles are what somebody should look at, and what to do.
func troubles(f *fleet.Fleet) (out []string) {
	if len(f.Staying()) == 0 {
		out = append(out, "no worker is here: events wait in their lanes. Start one: spaceworker")
	}
	coordinators := 0
	for _, c := range f.Coordinators {
		if c.State == fleet.Here {
			coordinators++
		}
	}
	if coordinators == 0 {
		out = append(out, "no coordinator is here: what spaces send to each other waits. Start one: coordinator")
	}
	if hosts := f.Programs(); len(hosts) > 1 {
		out = append(out, "workers of different programs: "+strings.Join(hosts, ", ")+". Events that a worker's program has no handler for are refused for good. Give each program a deployment (--prefix) of its own")
	}
	hanging := map[string]string{}
	for _, h := range f.Hanging() {
		hanging[h.Worker] = h.String()
	}
	by, texts := fleet.RewindText(f.Rewinds)
	for i := range by {
		out = append(out, fmt.Sprintf("the store has gone back, as %s noticed %s. What was stored last is lost; senders that have the events can send them again. `settle doctor --acknowledge` ends this", by[i], texts[i]))
	}
	for _, m := range slices.Concat(f.Workers, f.Coordinators) {
		switch {
		case m.State == fleet.Silent && m.Coordinates():
			out = append(out, sentences(m.ID+" does not answer: it hangs, or its machine is cut off", "Another coordinator does its work, if there is one"))
		case m.State == fleet.Silent:
			out = append(out, sentences(m.ID+" does not answer: it hangs, or its machine is cut off", hanging[m.ID], "End the process if it does not come back: nothing is lost by that"))
		case m.State == fleet.Gone:
			out = append(out, m.ID+" has ended without leaving. It is listed for an hour after its last word")
		}
		if m.Ahead.Abs() > clockOff {
			out = append(out, fmt.Sprintf("the clock of %s is %s from this machine's: timers are due by the workers' clocks. Let every machine keep time (chrony, systemd-timesyncd)", m.ID, m.Ahead.Abs().Round(time.Millisecond)))
		}
		if went := m.WentBack(f.Noted()); went != "" {
			out = append(out, fmt.Sprintf("the store has gone back, as %s noticed %s. What was stored last is lost; senders that have the events can send them again", m.ID, went))
		}
		if m.State == fleet.Here {
			for _, l := range m.Full {
				out = append(out, fmt.Sprintf("the lane of partition %d has no room for what other spaces send, as %s has found since %s; %s, the first one for space %s. Nothing is lost: see storage in settle doctor",
					l.Partition, m.ID, l.Since.Format(time.RFC3339), waiting(l.Waiting), l.Space))
			}
		}
		out = append(out, lossesOf(&m)...)
		out = append(out, loadOf(&m)...)
		if what := m.Denied(); what != "" {
			out = append(out, m.ID+" is denied by the server: "+what+". Give its user the permissions of the role "+m.Kind()+": settle permissions")
		}
		if m.Figures != nil && m.Figures.Unstored != "" {
			out = append(out, "the store has no room, or fails, as "+m.ID+" finds: "+m.Figures.Unstored+". What it has done waits. Free the disk and restart the NATS server, or raise the limit")
		}
	}
	if binaries := f.Binaries(); len(binaries) > 1 {
		out = append(out, "workers of different program files: "+strings.Join(binaries, ", ")+". That is right during an upgrade")
	}
	for _, p := range f.Partitions {
		if p.Unread != "" {
			out = append(out, fmt.Sprintf("partition %d cannot be read: %s; `settle doctor` says what to do", p.Number, p.Unread))
		}
		if len(p.Served) > 1 {
			out = append(out, fmt.Sprintf("partition %d is served by %s at once: one of them does not know yet that the other has it, as for a moment after it was stopped or cut off. Nothing is lost; the appends of one are refused", p.Number, strings.Join(p.Served, " and ")))
		}
	}
	return out
}

// waiting says how many events wait.
func waiting(n int) string {
	if n == 1 {
		return "1 event waits"
	}
	return fmt.Sprintf("%d events wait", n)
}

// sentences puts sentences together, without those that are empty.
func sentences(all ...string) string {
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	for i, s := range all[1:] {
		first, rest := utf8.DecodeRuneInString(s)
		all[i+1] = string(unicode.ToUpper(first)) + s[rest:]
	}
	return strings.Join(all, ". ")
}

// loadOf is what a worker has too much of.
func loadOf(m *fleet.Member) (out []string) {
	f := m.Figures
	if f == nil {
		return nil
	}
	if f.Queued > 0 {
		out = append(out, fmt.Sprintf("%s wait to be loaded by %s, the next ones: %s; %d are in memory", plural(f.Queued, "space"), m.ID, strings.Join(f.Next, ", "), f.Awake))
	}
	if f.Abandoned > 0 {
		out = append(out, fmt.Sprintf("%s in handlers or nodes of %s were given up and have not returned: each holds memory, and a processor if it computes", plural(f.Abandoned, "goroutine"), m.ID))
	}
	for _, l := range f.Late {
		out = append(out, fmt.Sprintf("timers of space %s are late on %s: the first of %s that wait was due at %s", l.Space, m.ID, plural(l.Waiting, "event"), l.Since.Format(time.RFC3339)))
	}
	if more := f.LateCount - len(f.Late); more > 0 {
		out = append(out, fmt.Sprintf("timers of %s more are late on %s", plural(more, "space"), m.ID))
	}
	for _, l := range f.Missed {
		out = append(out, fmt.Sprintf("job %s of space %s has passed over %s behind the one of %s, as %s saw: nothing ran then", l.Cron, l.Space, plural(l.Times, "time"), l.At.Format(time.RFC3339), m.ID))
	}
	if w := &f.Watches; w.Limit > 0 && w.Open >= w.Limit {
		out = append(out, fmt.Sprintf("%s answers %d watches, which is as many as it may, %d of them of %s/%s; it has refused %d", m.ID, w.Open, w.Most, w.Space, w.Document, w.Refused))
	}
	for _, text := range f.Unrunnable {
		out = append(out, "a deployed version cannot run on "+m.ID+": "+text)
	}
	return out
}

// lossesOf are the partitions and spaces that a worker refuses.
func lossesOf(m *fleet.Member) (out []string) {
	if m.Figures == nil {
		return nil
	}
	for i := range m.Figures.Losses {
		l := &m.Figures.Losses[i]
		out = append(out, fmt.Sprintf("%s is refused by %s since %s: %s", l.What(), m.ID, l.Since.Format(time.RFC3339), l.Why))
	}
	if more := m.Figures.LossCount - len(m.Figures.Losses); more > 0 {
		out = append(out, fmt.Sprintf("%s refuses %d more: settle accept-loss lists all", m.ID, more))
	}
	return out
}

// printPlace says where a space is, and why.
func printPlace(s sheet, p place) {
	fmt.Fprintf(s.out, "space %s is in partition %d of %d (a hash of its name)\n", s.paint(bold, p.Space), p.Partition, p.Partitions)
	switch {
	case p.Owner == "":
		fmt.Fprintln(s.out, "nobody serves it: no worker is here. Its events wait. Start one: spaceworker")
		return
	case len(p.Served) == 0 && len(p.Silent) > 0:
		fmt.Fprintf(s.out, "%s serves it and does not answer: it hangs, or its machine is cut off. %s takes it over after the member TTL (15 s by default)\n", s.paint(bold, strings.Join(p.Silent, " and ")), s.paint(bold, p.Owner))
	case len(p.Served) == 0:
		fmt.Fprintf(s.out, "nobody serves it yet; %s is to\n", s.paint(bold, p.Owner))
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
			why = cell{text: "scores higher, but has its share of partitions already"}
		case r.Full:
			why = cell{text: "has its share already", code: faint}
		}
		passed = passed || r.Owner
		rows = append(rows, []cell{{text: r.Member, code: bold}, {text: fmt.Sprintf("%.3f", r.Score), right: true}, why})
	}
	s.table([]string{"WORKER", "SCORE", ""}, rows)
}

// ranges writes the partitions of a member: 0 3 5-7. Of one that does not answer, they are those that are left.
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

// brief is a duration in its two largest units at the most.
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

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
