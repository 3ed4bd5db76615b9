package redraw

import (
	"slices"
	"strings"
	"testing"
)

// paper is a terminal: it understands what a Screen writes.
type paper struct {
	columns int
	rows    [][]rune
	at, row int
	writes  int
}

func (p *paper) Write(data []byte) (int, error) {
	p.writes++
	for text := []rune(string(data)); len(text) > 0; {
		if text[0] == '\x1b' {
			end := slices.IndexFunc(text[2:], func(r rune) bool { return r >= '@' })
			p.control(string(text[2:2+end]), text[2+end])
			text = text[3+end:]
			continue
		}
		p.put(text[0])
		text = text[1:]
	}
	return len(data), nil
}

func (p *paper) line() *[]rune {
	for len(p.rows) <= p.row {
		p.rows = append(p.rows, nil)
	}
	return &p.rows[p.row]
}

func (p *paper) control(_ string, final rune) {
	switch final {
	case 'A':
		p.row--
	case 'K':
		*p.line() = (*p.line())[:min(p.at, len(*p.line()))]
	case 'J':
		p.control("", 'K')
		p.rows = p.rows[:p.row+1]
	}
}

func (p *paper) put(r rune) {
	switch {
	case r == '\r':
		p.at = 0
		return
	case r == '\n':
		p.at = 0
		p.row++
		return
	case p.at == p.columns:
		p.at = 0
		p.row++
	}
	l := p.line()
	for len(*l) <= p.at {
		*l = append(*l, ' ')
	}
	(*l)[p.at] = r
	p.at++
}

func (p *paper) text() string {
	var list []string
	for _, r := range p.rows {
		list = append(list, string(r))
	}
	return strings.TrimRight(strings.Join(list, "\n"), "\n")
}

func TestScreen_DrawsInPlace(t *testing.T) {
	t.Parallel()
	p := &paper{columns: 10}
	_, _ = p.Write([]byte("$ watch\n"))
	s := &Screen{out: p, size: func() (int, int, error) { return p.columns, 5, nil }}
	s.Begin()
	for _, c := range []struct{ frame, want string }{
		{"one\ntwo\nthree", "one\ntwo\nthree"},
		{"\x1b[31mo\x1b[0m\ntwo", "o\ntwo"},
		{"a line that is too long\nx", "a line th\nx"},
		{"1\n2\n3\n4\n5\n6", "1\n2\n3\n4"}, // the last row remains for the cursor
	} {
		s.Draw(strings.Split(c.frame, "\n"))
		if got := p.text(); got != "$ watch\n"+c.want {
			t.Errorf("%q shows\n%s", c.frame, got)
		}
	}
	s.End()
	if got := p.text(); got != "$ watch" {
		t.Errorf("it leaves\n%s", got)
	}
}

func TestScreen_TheSameFrameIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	p := &paper{columns: 80}
	s := &Screen{out: p, size: func() (int, int, error) { return 80, 24, nil }}
	for range 5 {
		s.Draw([]string{"same"})
	}
	if p.writes != 1 {
		t.Errorf("%d writes", p.writes)
	}
}

func TestCut_ColoursTakeNoColumnsAndAreSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{
		{"\x1b[31mab\x1b[0mcd", 3, "\x1b[31mab\x1b[0mc\x1b[0m"},
		{"é✗ab", 3, "é✗a\x1b[0m"},
		{"ab", 2, "ab"},
		{"ab\x1b[3", 9, "ab"},
	} {
		if got := Cut(c.line, c.columns); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.line, got, c.want)
		}
	}
}

func TestGauge_ToAnEighthOfAColumn(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]string{-1: "    ", 0: "    ", 0.5: "██  ", 0.78: "███▏", 1: "████", 7: "████"} {
		if got := Gauge(share, 4); got != want {
			t.Errorf("%v is %q, want %q", share, got, want)
		}
	}
}
