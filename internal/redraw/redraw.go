// Package redraw draws lines in place on a terminal.
package redraw

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Terminal control sequences. A frame between syncOn and syncOff appears at once on terminals that
// support them; others ignore them.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	syncOn     = "\x1b[?2026h"
	syncOff    = "\x1b[?2026l"
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// Terminal returns the file behind w if that is a terminal with a movable cursor.
func Terminal(w io.Writer) (*os.File, bool) {
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Colours reports whether text for w may have colours: w is such a terminal, and NO_COLOR is not set
// (https://no-color.org).
func Colours(w io.Writer) bool {
	_, ok := Terminal(w)
	return ok && os.Getenv("NO_COLOR") == ""
}

// Screen is an area of lines that is drawn again and again.
type Screen struct {
	out   io.Writer
	size  func() (columns, rows int, err error)
	lines int    // on the screen now
	last  string // the frame that they are
}

// New returns a screen on a terminal, at the line of the cursor.
func New(f *os.File) *Screen {
	return &Screen{out: f, size: func() (int, int, error) { return term.GetSize(int(f.Fd())) }}
}

// Size returns how many columns and rows a frame may have.
func (s *Screen) Size() (columns, rows int) {
	columns, rows, err := s.size()
	if err != nil || columns <= 0 || rows <= 1 {
		columns, rows = 80, 24
	}
	return columns - 1, rows - 1
}

// Begin hides the cursor, until End.
func (s *Screen) Begin() { s.write(hideCursor) }

// Draw draws a frame over the last one, cut to the columns of Size, because a wrapped line would be two. The same frame again
// writes nothing.
func (s *Screen) Draw(lines []string) {
	columns, rows := s.Size()
	lines = lines[:min(len(lines), rows)]
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(Cut(line, columns) + eraseLine + "\n")
	}
	frame := b.String()
	if frame == s.last {
		return
	}
	s.write(syncOn + s.home() + frame + eraseBelow + syncOff)
	s.lines, s.last = len(lines), frame
}

// End removes the lines, and shows the cursor.
func (s *Screen) End() {
	s.write(s.home() + eraseBelow + showCursor)
	s.lines, s.last = 0, ""
}

// home moves the cursor to the first line of the frame.
func (s *Screen) home() string { return "\r" + strings.Repeat("\x1b[A", s.lines) }

func (s *Screen) write(text string) {
	_, _ = io.WriteString(s.out, text) // an error means that the terminal is gone
}

// Cut shortens a line to a number of columns. Colours take none.
func Cut(line string, columns int) string {
	at := 0
	for i := 0; i < len(line); {
		if line[i] == '\x1b' {
			end := strings.IndexByte(line[i:], 'm')
			if end < 0 {
				return line[:i]
			}
			i += end + 1
			continue
		}
		if at == columns {
			return line[:i] + "\x1b[0m"
		}
		_, size := utf8.DecodeRuneInString(line[i:])
		i += size
		at++
	}
	return line
}

// Gauge draws a share as a bar, to an eighth of a column.
func Gauge(share float64, width int) string {
	eighths := min(max(int(share*float64(8*width)+0.5), 0), 8*width)
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar + strings.Repeat(" ", width-(eighths+7)/8)
}
