package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

type key struct {
	shape  *shape
	engine *contender
}

// table has all measurements.
type table struct {
	shapes  []*shape
	engines []*contender
	results map[key]result
	errs    map[key]error
}

func (t *table) failed(s *shape, c *contender) bool { return t.errs[key{s, c}] != nil }

func (t *table) add(s *shape, c *contender, r result, err error) {
	if t.results == nil {
		t.results, t.errs = map[key]result{}, map[key]error{}
	}
	k := key{s, c}
	if err != nil {
		delete(t.results, k)
		t.errs[k] = err
		return
	}
	t.results[k] = t.results[k].better(r, s.expected())
}

// expected returns the number of runs per update that the contract allows.
func (s *shape) expected() float64 { return float64(s.runs) / float64(s.updates) }

// differs reports whether the engine ran its bodies more or less often than expected.
func (s *shape) differs(r result) bool {
	return math.Abs(r.runs-s.expected()) > 1e-6*s.expected()
}

// verdict returns an error if any result violated the contract.
func (t *table) verdict() error {
	var errs []error
	for _, s := range t.shapes {
		for _, c := range t.engines {
			k := key{s, c}
			if err := t.errs[k]; err != nil {
				errs = append(errs, fmt.Errorf("%s on %s: %w", s.name, c.name, err))
			}
			if r, ok := t.results[k]; ok && s.differs(r) && c.excuse(s) == "" {
				errs = append(errs, fmt.Errorf("%s on %s: %.4g runs per update instead of %.4g", s.name, c.name, r.runs, s.expected()))
			}
		}
	}
	return errors.Join(errs...)
}

// groups are in printing order.
var groups = []struct{ name, title, unit string }{
	{"standard", "Standard shapes", "update"},
	{"dynamic", "Dynamic graphs", "write"},
	{"tree", "Sums of 2^k sources", "write"},
	{"create", "Creation of effects, with their first run", "effect"},
}

func (t *table) print(out io.Writer) {
	for _, g := range groups {
		var in []*shape
		for _, s := range t.shapes {
			if s.group == g.name {
				in = append(in, s)
			}
		}
		if len(in) == 0 {
			continue
		}
		fmt.Fprintf(out, "## %s\n", g.title)
		if g.name != "create" {
			t.section(out, in, g.unit, "ns per run", func(r result) float64 { return r.ns / r.runs }, false)
		}
		t.section(out, in, g.unit, "ns per "+g.unit, func(r result) float64 { return r.ns }, true)
		if g.name == "create" {
			t.section(out, in, g.unit, "allocations per effect", func(r result) float64 { return r.allocs }, false)
			t.section(out, in, g.unit, "bytes allocated per effect", func(r result) float64 { return r.bytes }, false)
		} else {
			t.section(out, in, g.unit, "allocations per run", func(r result) float64 { return r.allocs / r.runs }, false)
			t.section(out, in, g.unit, "bytes allocated per run", func(r result) float64 { return r.bytes / r.runs }, false)
		}
		t.counts(out, in, g.unit)
	}
	t.remarks(out)
}

// ratios are columns that compare two engines, if both were measured.
var ratios = [][2]string{
	{"settle", "go-incr"}, {"settle", "alien"}, {"settle", "floor"}, {"settle+log", "settle"},
}

// section prints one figure of every engine.
func (t *table) section(out io.Writer, in []*shape, unit, title string, of func(result) float64, compare bool) {
	head := []string{"shape", "runs/" + unit}
	for _, c := range t.engines {
		head = append(head, c.name)
	}
	var pairs [][2]*contender
	if compare {
		pairs = t.pairs()
	}
	for _, p := range pairs {
		head = append(head, p[0].name+" / "+p[1].name)
	}
	rows := [][]string{head}
	logs := make([]float64, len(pairs))
	counts := make([]int, len(pairs))
	for _, s := range in {
		row := []string{s.name, short(s.expected())}
		for _, c := range t.engines {
			r, ok := t.results[key{s, c}]
			switch {
			case ok:
				row = append(row, short(of(r)))
			case t.failed(s, c):
				row = append(row, "wrong")
			default:
				row = append(row, "-")
			}
		}
		for i, p := range pairs {
			a, ok := t.results[key{s, p[0]}]
			b, too := t.results[key{s, p[1]}]
			if !ok || !too {
				row = append(row, "-")
				continue
			}
			logs[i] += math.Log(of(a) / of(b))
			counts[i]++
			row = append(row, fmt.Sprintf("%.2f", of(a)/of(b)))
		}
		rows = append(rows, row)
	}
	if len(in) > 1 && len(pairs) > 0 {
		row := make([]string, 2+len(t.engines))
		row[0] = "geometric mean"
		for i := range pairs {
			mean := "-"
			if counts[i] > 0 {
				mean = fmt.Sprintf("%.2f", math.Exp(logs[i]/float64(counts[i])))
			}
			row = append(row, mean)
		}
		rows = append(rows, row)
	}
	fmt.Fprintf(out, "\n%s:\n\n", title)
	markdown(out, rows)
}

func (t *table) pairs() [][2]*contender {
	var pairs [][2]*contender
	for _, r := range ratios {
		a := slices.IndexFunc(t.engines, func(c *contender) bool { return c.name == r[0] })
		b := slices.IndexFunc(t.engines, func(c *contender) bool { return c.name == r[1] })
		if a >= 0 && b >= 0 {
			pairs = append(pairs, [2]*contender{t.engines[a], t.engines[b]})
		}
	}
	return pairs
}

// counts prints the run counts that differ from the contract.
func (t *table) counts(out io.Writer, in []*shape, unit string) {
	rows := [][]string{{"shape", "engine", "runs/" + unit, "expected", "why"}}
	for _, s := range in {
		for _, c := range t.engines {
			if r, ok := t.results[key{s, c}]; ok && s.differs(r) {
				why := c.excuse(s)
				if why == "" {
					why = "WRONG"
				}
				rows = append(rows, []string{s.name, c.name, short(r.runs), short(s.expected()), why})
			}
		}
	}
	fmt.Fprintf(out, "\nValues are as they must be, and so are all run counts")
	if len(rows) == 1 {
		fmt.Fprintf(out, ".\n\n")
		return
	}
	fmt.Fprintf(out, " but these:\n\n")
	markdown(out, rows)
	fmt.Fprintln(out)
}

// remarks prints what was left out, and what went wrong.
func (t *table) remarks(out io.Writer) {
	for _, c := range t.engines {
		missing := map[string][]string{}
		for _, s := range t.shapes {
			if why := c.skips(s); why != "" {
				missing[why] = append(missing[why], s.name)
			}
		}
		for _, s := range t.shapes { // in printing order
			why := c.skips(s)
			if names := missing[why]; names != nil {
				fmt.Fprintf(out, "%s is left out of %s: it %s.\n", c.name, strings.Join(names, ", "), why)
				delete(missing, why)
			}
		}
		for _, s := range t.shapes {
			if err := t.errs[key{s, c}]; err != nil {
				fmt.Fprintf(out, "%s on %s: %v.\n", s.name, c.name, err)
			}
		}
	}
}

// markdown prints a Markdown table with aligned columns.
func markdown(out io.Writer, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, field := range row {
			width[i] = max(width[i], len(field), 3)
		}
	}
	for i, row := range rows {
		for j, field := range row {
			if j == 0 {
				fmt.Fprintf(out, "| %-*s ", width[j], field)
			} else {
				fmt.Fprintf(out, "| %*s ", width[j], field)
			}
		}
		fmt.Fprintln(out, "|")
		if i == 0 {
			for j, w := range width {
				if j == 0 {
					fmt.Fprintf(out, "|%s", strings.Repeat("-", w+2))
				} else {
					fmt.Fprintf(out, "|%s:", strings.Repeat("-", w+1))
				}
			}
			fmt.Fprintln(out, "|")
		}
	}
}

// short formats a number with about three digits.
func short(x float64) string {
	switch a := math.Abs(x); {
	case a == math.Trunc(a) && a < 1e6, a >= 100:
		return fmt.Sprintf("%.0f", x)
	case a >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}
