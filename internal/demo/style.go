package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/redraw"
)

// style colours text, or leaves it unchanged.
type style bool

func (s style) paint(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) faint(text string) string  { return s.paint("2", text) }
func (s style) red(text string) string    { return s.paint("31", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }
func (s style) cyan(text string) string   { return s.paint("36", text) }

// styleFor enables colours for a terminal, unless NO_COLOR is set (https://no-color.org).
func styleFor(w io.Writer) style { return style(redraw.Colours(w)) }

// count formats a number and its noun: "1 worker", "2 workers".
func count[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return display.Grouped(n) + " " + noun + "es"
	}
	return display.Grouped(n) + " " + noun + "s"
}

// percent formats a share: 86.5 %.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
