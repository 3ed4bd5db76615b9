package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/lineage"
)

// marks are the symbols for the states of events.
var marks = map[lineage.State]string{
	lineage.Parked: "P", lineage.Queued: ".", lineage.Waiting: "w", lineage.Cancelled: "-", lineage.Handled: "✓",
	lineage.Failed: "✗", lineage.Refused: "✗", lineage.Rejected: "✗", lineage.Expired: "✗", lineage.Dropped: "-", lineage.Forgotten: "?", lineage.Unknown: "!",
}

// printTree prints a tree for people: one line per event, with its error beside
// it, and hints at the end.
//
//	✓ a/order  order-17     handled   2026-11-21 18:48:36.832
//	├─ ✗ b/charge  a:5:3:0  failed    +3ms  no such card
//	└─ . c/ship  a:5:3:1    queued    +1ms  at lane sequence 17
//
// Beyond maxIndent generations a number replaces the indentation: an event of the next
// generation was caused by the event above it.
//
// The time is when the event ended or, if it has not, when its lane got it, counted
// from the time in the first line. full prints every remark completely, on as many lines
// as it has; otherwise a remark that does not fit beside its event is put below.
func printTree(w io.Writer, t *history.Tree, full bool) {
	s, _ := sheetFor(w)
	s.printTree(t, full)
}

func (s sheet) printTree(t *history.Tree, full bool) {
	w := s.out
	for i := len(t.CausedBy) - 1; i >= 0; i-- {
		r := t.CausedBy[i]
		fmt.Fprintf(w, "caused by %s/%s  %s\n", r.Space, r.Stream, r.Event)
	}
	table := &lines{start: shown(t.Root), full: full, screen: s.width}
	if full {
		table.screen = 0
	}
	table.add(t.Root, 0, "", "")
	table.print(w)
	fmt.Fprintf(w, "\n%s\n", summary(t))
	for _, h := range hints(t) {
		fmt.Fprintln(w, "  "+h)
	}
	if table.clipped {
		fmt.Fprintf(w, "  %s stands for the rest of a long text; all of it: %s --full\n", ellipsis, asking(t.Root))
	}
}

// asking returns the command that prints the tree of an event.
func asking(n *history.TreeNode) string {
	if n.Space == "" {
		return "settle tree " + n.Event
	}
	return "settle tree " + n.Event + " --space " + n.Space
}

// lines is a table of four columns.
type lines struct {
	start   time.Time
	full    bool
	screen  int // columns of the terminal, 0 for as many as it takes
	rows    []treeLine
	width   int
	times   int
	clipped bool // a remark is shown in part only
}

// treeLine is the line of an event. Remarks that do not fit are put below.
type treeLine struct{ name, state, at, remark, below string }

// add adds an event of a generation and what it has caused, with what goes before the
// first of its lines, and before the rest.
func (l *lines) add(n *history.TreeNode, generation int, first, rest string) {
	name := fmt.Sprintf("%s%s %s/%s  %s", first, marks[n.State], n.Space, n.Stream, n.Event)
	if n.Space == "" {
		name = fmt.Sprintf("%s%s %s", first, marks[n.State], n.Event)
	}
	at := l.at(n, first == "" && rest == "")
	remarks := l.remarks(n)
	guide := rest
	if generation < maxIndent && (len(n.Caused) > 0 || n.More > 0) {
		guide += "│"
	}
	below := guide + strings.Repeat(" ", 4-utf8.RuneCountInString(guide)+utf8.RuneCountInString(rest))
	l.rows = append(l.rows, treeLine{name, string(n.State), at, remarks[0], below})
	for _, more := range remarks[1:] {
		l.rows = append(l.rows, treeLine{name: guide, remark: more})
	}
	l.width = max(l.width, utf8.RuneCountInString(name))
	if first != "" {
		l.times = max(l.times, len(at))
	}
	for i, c := range n.Caused {
		first, below := guides(rest, generation+1, i == len(n.Caused)-1 && n.More == 0)
		l.add(c, generation+1, first, below)
	}
	if n.More > 0 {
		first, _ := guides(rest, generation+1, true)
		l.rows = append(l.rows, treeLine{name: fmt.Sprintf("%s%s and %d more", first, ellipsis, n.More)})
	}
}

// guides returns the prefixes of the lines of an event and of those of the events that it has caused.
func guides(rest string, generation int, last bool) (first, below string) {
	switch {
	case generation > maxIndent:
		return rest + fmt.Sprintf("%d: ", generation), rest
	case last:
		return rest + "└─ ", rest + "   "
	}
	return rest + "├─ ", rest + "│  "
}

func (l *lines) print(w io.Writer) {
	width := min(l.width, maxNameWidth)
	if l.screen > 0 { // a name that is long pushes aside what is on its own line only
		width = min(width, l.screen-12-l.times)
	}
	for _, r := range l.rows {
		pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(r.name)))
		head := fmt.Sprintf("%s%s  %-8s", r.name, pad, r.state)
		fmt.Fprintln(w, l.folded(head, r))
	}
}

// folded returns a line with a head, and lines for the text that does not fit after it.
func (l *lines) folded(head string, r treeLine) string {
	line := strings.TrimRight(fmt.Sprintf("%s  %-*s  %s", head, l.times, r.at, l.short(r.remark, maxRemark)), " ")
	if l.fits(line) {
		return line
	}
	line, below := head+"  "+r.at, r.remark
	if !l.fits(line) {
		line, below = head, strings.TrimSpace(r.at+"  "+r.remark)
	}
	if line = strings.TrimRight(line, " "); below == "" {
		return line
	}
	return line + "\n" + r.below + l.short(below, l.screen-utf8.RuneCountInString(r.below))
}

func (l *lines) fits(line string) bool {
	return l.screen == 0 || utf8.RuneCountInString(line) <= l.screen
}

// short cuts a remark to a number of characters, and records whether it did.
func (l *lines) short(remark string, longest int) string {
	if l.full {
		return remark
	}
	text := clip(remark, max(leastRemark, min(longest, maxRemark)))
	l.clipped = l.clipped || text != remark
	return text
}

// shown returns the time of an event: when it ended or, if it has not, entered its lane.
func shown(n *history.TreeNode) time.Time {
	if n.Ended.IsZero() {
		return n.Sent
	}
	return n.Ended
}

// at returns when an event ended or entered its lane.
func (l *lines) at(n *history.TreeNode, root bool) string {
	at := shown(n)
	switch {
	case at.IsZero():
		return ""
	case root:
		return at.Local().Format("2006-01-02 15:04:05.000")
	}
	return after(at.Sub(l.start))
}

// after returns a duration, rounded for people.
func after(d time.Duration) string {
	if d.Abs() < 10*time.Second {
		return fmt.Sprintf("%+dms", d.Milliseconds())
	}
	if d > 0 {
		return "+" + d.Round(time.Second).String()
	}
	return d.Round(time.Second).String()
}

const (
	// maxNameWidth is the largest width of the first column.
	maxNameWidth = 70
	// maxIndent is the number of generations that are indented.
	maxIndent = 5
	// maxRemark keeps an event on its line; --full has all of it.
	maxRemark = 100
	// leastRemark is the part that is shown on the narrowest terminal.
	leastRemark = 20
	// ellipsis stands for the text that is cut.
	ellipsis = "…"
)

// remarks returns the lines of an event's remark, at least one.
func (l *lines) remarks(n *history.TreeNode) []string {
	text := remark(n)
	if l.full {
		return strings.Split(strings.TrimRight(text, "\n"), "\n")
	}
	return []string{unbroken(withoutCalls(text))}
}

// remark returns the details of an event beside its state.
func remark(n *history.TreeNode) string {
	var parts []string
	switch n.Kind {
	case "notice":
		parts = append(parts, "(tells the origin)")
	case "redrive":
		parts = append(parts, "(sent again)")
	}
	if n.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("(%d attempts)", n.Attempts))
	}
	switch n.State {
	case lineage.Queued:
		if n.Lane > 0 {
			parts = append(parts, fmt.Sprintf("at lane sequence %d", n.Lane))
		}
	case lineage.Waiting:
		parts = append(parts, "until "+n.Until.Format(time.RFC3339))
	case lineage.Handled:
		if !n.Result.IsAbsent() && !n.Result.IsNull() {
			parts = append(parts, "= "+n.Result.String())
		}
	default:
		parts = append(parts, n.Error)
	}
	return strings.Join(parts, " ")
}

// oneLine makes a text one short line.
func oneLine(text string) string { return clip(unbroken(text), maxRemark) }

func unbroken(text string) string { return strings.Join(strings.Fields(text), " ") }

// clip shortens a text to a number of characters.
func clip(text string, longest int) string {
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	return string(runes[:longest-1]) + ellipsis
}

// summary describes the tree in a sentence.
func summary(t *history.Tree) string {
	var states []string
	for _, s := range []lineage.State{lineage.Handled, lineage.Failed, lineage.Refused, lineage.Rejected, lineage.Expired, lineage.Dropped, lineage.Forgotten, lineage.Cancelled, lineage.Waiting, lineage.Queued, lineage.Parked, lineage.Unknown} {
		if n := t.States[s]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, s))
		}
	}
	end := "settled: nothing of it is open"
	switch {
	case t.More && t.Settled:
		end = "settled; there is more than is shown"
	case t.More:
		end = "there is more than is shown: see --events and --depth"
	case !t.Settled:
		end = "not settled"
	case t.States[lineage.Forgotten] > 0:
		end = "nothing that is known of it is open; what a forgotten event has caused is not known"
	}
	return fmt.Sprintf("%s: %s; %s.", display.Count(t.Events, "event"), strings.Join(states, ", "), end)
}

// maxHints bounds how many events each kind of hint names.
const maxHints = 3

// hints returns what to check next.
func hints(t *history.Tree) []string {
	var list []string
	if t.Unattended {
		list = append(list, "No coordinator answers. Until one runs, parked events stay parked, and failed ones get no dead letter.")
	} else if t.States[lineage.Parked] > 0 {
		list = append(list, "Parked for long? A coordinator puts it into its lane; its log says what keeps it from that.")
	}
	if t.States[lineage.Unknown] > 0 {
		list = append(list, "The streams of unknown events are missing: `settle doctor` names them, and the remedy")
	}
	if t.States[lineage.Queued] > 0 {
		list = append(list, "Queued for long? No worker may be running, or an earlier event takes long.")
	}
	if t.Unattended {
		return list // there may be no dead letter to send again
	}
	failed, refused := first(t, lineage.Failed), first(t, lineage.Refused)
	if len(failed) < min(t.States[lineage.Failed], maxHints) || len(refused) < min(t.States[lineage.Refused], maxHints) {
		list = append(list, fmt.Sprintf("Some of what failed is not shown: see --depth and --events of `%s`, or `settle dead --open`", asking(t.Root)))
	}
	for _, n := range append(failed, refused...) {
		switch {
		case redriven(n):
		case n.More > 0:
			list = append(list, fmt.Sprintf("Whether %s was sent again is not shown: see --depth and --events", n.Event))
		default:
			list = append(list, fmt.Sprintf("When the cause is repaired, send it again: settle redrive %s %s --stream %s", n.Space, n.Event, n.Stream))
		}
	}
	return list
}

func redriven(n *history.TreeNode) bool {
	for _, c := range n.Caused {
		if c.Kind == "redrive" {
			return true
		}
	}
	return false
}

// first returns the first few events in a state.
func first(t *history.Tree, s lineage.State) []*history.TreeNode {
	var list []*history.TreeNode
	var visit func(n *history.TreeNode)
	visit = func(n *history.TreeNode) {
		if n.State == s && len(list) < maxHints {
			list = append(list, n)
		}
		for _, c := range n.Caused {
			visit(c)
		}
	}
	visit(t.Root)
	return list
}
