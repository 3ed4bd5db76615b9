package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/settlehq/settle/internal/display"
)

// signs begin a line, by level.
var signs = [...]string{"✓", "!", "✗"}

// width is the default width of a terminal.
const width = 80

// Print writes the report for people, at most 80 columns wide unless a word is longer.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	last, worst := "", [len(levelNames)]int{}
	for _, f := range r.Findings {
		worst[f.Level]++
		label := f.Check
		if label == last {
			label = ""
		}
		last = f.Check
		fold(&b, fmt.Sprintf("%s %-14s", signs[f.Level], label), f.Found)
		if f.Reason != "" {
			fold(&b, indent, f.Reason)
		}
		if f.Do != "" {
			fold(&b, indent+" >", f.Do)
		}
	}
	if len(r.Losses) > 0 {
		b.WriteString("\nWhat can be lost\n\n")
		for _, l := range r.Losses {
			fmt.Fprintf(&b, "  %s:\n", l.When)
			fold(&b, "   ", l.Lost)
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %s, %s.\n", worst[OK], display.Count(worst[Warning], "warning"), display.Count(worst[Failure], "failure"))
	_, err := io.WriteString(w, b.String())
	return err
}

var indent = strings.Repeat(" ", 16)

// fold writes text in lines, the first after a label and the others below it.
func fold(b *strings.Builder, label, text string) {
	margin := strings.Repeat(" ", len([]rune(label))+1)
	line := label
	room := false // there is a word on the line
	for _, word := range strings.Fields(text) {
		if room && len([]rune(line))+1+len([]rune(word)) > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = margin[:len(margin)-1]
		}
		line += " " + word
		room = true
	}
	b.WriteString(line + "\n")
}
