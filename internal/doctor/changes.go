package doctor

import (
	"fmt"
	"regexp"
	"time"
)

// Change is a finding that is new or gone, or the notice that all is well.
type Change struct {
	At     time.Time `json:"at"`
	Change string    `json:"change"` // new, gone or well
	// Level, Check and the other fields are those of the finding, as it was last reported.
	Finding
}

// The kinds of change.
const (
	changeNew  = "new"
	changeGone = "gone"
	changeWell = "well"
)

// String returns a line for people.
func (c Change) String() string {
	line := c.At.Format(time.TimeOnly) + "  " + fmt.Sprintf("%-5s", c.Change)
	if c.Change == changeWell {
		return line + signs[OK] + " all is well"
	}
	return line + signs[c.Level] + " " + c.Check + ": " + c.Found
}

// Changes compares successive reports. The zero value has seen none.
type Changes struct {
	seen  bool
	level Level
	last  []Finding
}

// Since returns the changes since the previous report: new findings first, then those that are gone. A
// finding that differs only in figures is the same. For the first report, it returns every finding that
// is not well.
func (c *Changes) Since(r *Report) (out []Change) {
	var now []Finding
	left := map[string][]Finding{}
	for _, f := range c.last {
		left[f.key()] = append(left[f.key()], f)
	}
	for _, f := range r.Findings {
		if f.Level == OK {
			continue
		}
		now = append(now, f)
		if same := left[f.key()]; len(same) > 0 {
			left[f.key()] = same[1:]
			continue
		}
		out = append(out, Change{Change: changeNew, Finding: f})
	}
	for _, f := range c.last {
		if same := left[f.key()]; len(same) > 0 && same[0] == f {
			left[f.key()] = same[1:]
			out = append(out, Change{Change: changeGone, Finding: f})
		}
	}
	if r.Level == OK && (!c.seen || c.level != OK) {
		out = append(out, Change{Change: changeWell, Finding: Finding{Check: "all", Found: "all is well"}})
	}
	c.seen, c.level, c.last = true, r.Level, now
	return out
}

// figure matches the parts of a finding that change between reports: numbers, sizes, spans.
var figure = regexp.MustCompile(`\b[0-9][0-9a-zµ.,:]*`)

// key returns a key that stays the same when the finding is reported again.
func (f *Finding) key() string {
	return f.Level.String() + "|" + f.Check + "|" + figure.ReplaceAllString(f.Found, "#")
}

// Unreachable returns the report on a deployment that could not be examined.
func Unreachable(err error) *Report {
	return &Report{Level: Failure, Findings: []Finding{{
		Failure, CheckServers, "nothing could be reached: " + err.Error(), "Nothing is known of the deployment.", "Check the address, and that a server runs there.",
	}}}
}
