package console

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// series is a line of a chart. Points that are not known are NaN, and leave a gap.
type series struct {
	Name, Class string
	Points      []float64
}

// chart is a picture of the last minutes, an hour at most.
type chart struct {
	Label  string
	Series []series
	// Span is the number of points that the width stands for.
	Span int
	// Text formats a value.
	Text func(float64) string
	// Note is what the reader must know of the numbers.
	Note string
	// More is set if the fleet has more about it: what takes time.
	More bool
}

const chartWidth, chartHeight = 600, 120

// spanOf returns the number of points that a chart of n points has room for: ten minutes, and then the next whole five, up to an hour.
func spanOf(n int) int {
	const five = int(5 * time.Minute / sampling)
	return min(remembered, max(2*five, (n+five-1)/five*five))
}

// Since is the label of the left edge.
func (c *chart) Since() string {
	if d := time.Duration(c.Span) * sampling; d < time.Hour {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return "1 h"
}

// Top returns the value at the upper edge.
func (c *chart) top() float64 {
	top := 0.0
	for _, s := range c.Series {
		for _, v := range s.Points {
			if !math.IsNaN(v) {
				top = math.Max(top, v)
			}
		}
	}
	return roundUp(top)
}

// roundUp returns the next number of the form 1, 2 or 5 times a power of ten.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5, 10} {
		if v <= f*unit {
			return f * unit
		}
	}
	return 10 * unit
}

// Empty reports whether there is nothing to draw.
func (c *chart) Empty() bool {
	for _, s := range c.Series {
		for _, v := range s.Points {
			if !math.IsNaN(v) {
				return false
			}
		}
	}
	return true
}

// Now returns the newest known value of a series as text.
func (c *chart) Now(i int) string {
	p := c.Series[i].Points
	for k := len(p) - 1; k >= 0 && k >= len(p)-3; k-- {
		if !math.IsNaN(p[k]) {
			return c.Text(p[k])
		}
	}
	return "–"
}

// Most returns the largest value of a series as text.
func (c *chart) Most(i int) string {
	most := math.NaN()
	for _, v := range c.Series[i].Points {
		if !math.IsNaN(v) && (math.IsNaN(most) || v > most) {
			most = v
		}
	}
	if math.IsNaN(most) {
		return "–"
	}
	return c.Text(most)
}

// TopText is the label of the upper edge.
func (c *chart) TopText() string { return c.Text(c.top()) }

// SVG returns the drawing: lines from zero, one path each.
func (c *chart) SVG() template.HTML {
	top := c.top()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(c.describe()))
	for _, y := range []int{0, chartHeight / 2, chartHeight} {
		fmt.Fprintf(&b, `<line class="grid" x1="0" x2="%d" y1="%d" y2="%d"/>`, chartWidth, y, y)
	}
	for i, s := range c.Series {
		if line, area := pathsOf(s.Points, top, c.Span); line != "" {
			if i == 0 {
				fmt.Fprintf(&b, `<path class="area %s" d="%s"/>`, s.Class, area)
			}
			fmt.Fprintf(&b, `<path class="line %s" d="%s"/>`, s.Class, line)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers, and an escaped text
}

func (c *chart) describe() string {
	parts := []string{c.Label + " over the last " + c.Since()}
	for i := range c.Series {
		parts = append(parts, fmt.Sprintf("%s: now %s, at most %s", c.Series[i].Name, c.Now(i), c.Most(i)))
	}
	return strings.Join(parts, "; ")
}

// pathsOf returns the line through the points, and the area below it.
func pathsOf(points []float64, top float64, span int) (line, area string) {
	var l, a strings.Builder
	x := func(i int) float64 { return float64(i) * chartWidth / float64(max(1, span-1)) }
	shift := span - len(points) // the newest point is at the right edge
	begun, last := false, 0.0
	for i, v := range points {
		if math.IsNaN(v) {
			if begun {
				fmt.Fprintf(&a, "L%.1f %dZ", last, chartHeight)
			}
			begun = false
			continue
		}
		at, y := x(i+shift), chartHeight-v/top*(chartHeight-4)
		if !begun {
			fmt.Fprintf(&l, "M%.1f %.1f", at, y)
			fmt.Fprintf(&a, "M%.1f %dL%.1f %.1f", at, chartHeight, at, y)
			if i+1 == len(points) || math.IsNaN(points[i+1]) { // a point alone is a dash, to the left: the first one is at the right edge
				fmt.Fprintf(&l, "h-4")
			}
		} else {
			fmt.Fprintf(&l, "L%.1f %.1f", at, y)
			fmt.Fprintf(&a, "L%.1f %.1f", at, y)
		}
		begun, last = true, at
	}
	if begun {
		fmt.Fprintf(&a, "L%.1f %dZ", last, chartHeight)
	}
	return l.String(), a.String()
}

// millis is a duration as a number of a chart, NaN for none.
func millis(d time.Duration, known bool) float64 {
	if !known {
		return math.NaN()
	}
	return float64(d) / float64(time.Millisecond)
}
