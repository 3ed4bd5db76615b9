package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mostTime is the time limit for the tests of a package on a mutant.
const mostTime = 6 * time.Minute

func main() {
	only := flag.String("only", "", "run the mutants whose names begin with one of these, separated by commas, again")
	survivors := flag.Bool("survivors", false, "run survivors again")
	quick := flag.Int("quick", 0, "run only so many of the steps for each mutant; those that pass them stay open for the next run")
	reportOnly := flag.Bool("report", false, "write README.md anew, and run nothing")
	brief := flag.Bool("brief", false, "with -quick: run only the fastest tests of each step")
	tests := flag.String("tests", "", "with -quick: run only the tests of each step whose names match")
	dir := flag.String("dir", filepath.Join(os.TempDir(), "settle-mutants"), "the directory for the copy of the tree")
	limit := flag.Duration("limit", mostTime, "how long the tests of a package may take on a mutant")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c := campaign{root: ".", dir: *dir, limit: *limit, survivors: *survivors, quick: *quick, brief: *brief, tests: *tests, steps: (*mutant).steps}
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	if err := c.run(ctx, !*reportOnly); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// campaign runs mutants, and writes the results. root is the repository.
type campaign struct {
	root, dir string
	limit     time.Duration
	only      []string
	survivors bool
	quick     int
	brief     bool
	tests     string
	steps     func(*mutant) []step
}

func (c *campaign) path(name string) string { return filepath.Join(c.root, "test", "mutants", name) }

func (c *campaign) run(ctx context.Context, tries bool) error {
	list, err := readList(c.path("list"))
	if err != nil {
		return err
	}
	if tries {
		err = c.tryAll(ctx, list)
	}
	results, bad := readResults(c.path("results.txt"))
	if bad != nil {
		return bad
	}
	if bad := writeResults(c.path("results.txt"), list, results); bad != nil {
		return bad
	}
	if bad := os.WriteFile(c.path("README.md"), []byte(report(list, results)), 0o644); bad != nil {
		return bad
	}
	return err
}

// tryAll runs the selected mutants. Each result is written at once, so that the next run continues after
// it.
func (c *campaign) tryAll(ctx context.Context, list []*mutant) error {
	results, err := readResults(c.path("results.txt"))
	if err != nil {
		return err
	}
	var wanted []*mutant
	for _, m := range list {
		if r, tried := results[m.id]; c.wants(m, r, tried) {
			wanted = append(wanted, m)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	slices.SortStableFunc(wanted, func(a, b *mutant) int { return a.order() - b.order() })
	if err := copyTree(ctx, c.root, c.dir); err != nil {
		return err
	}
	t := &tree{dir: c.dir, limit: c.limit, brief: c.brief, tests: c.tests, steps: c.steps, woven: map[string]bool{}, suite: map[string]*suite{}}
	bad, err := t.plant(ctx, wanted)
	if err != nil {
		return err
	}
	for _, r := range bad {
		fmt.Println(r)
		if err := c.note(r); err != nil {
			return err
		}
	}
	for _, m := range wanted {
		if slices.ContainsFunc(bad, func(r result) bool { return r.id == m.id }) {
			continue
		}
		began := time.Now()
		r, err := t.try(ctx, m, c.quick)
		if err != nil {
			return err
		}
		fmt.Printf("%s  (%s) %s\n", time.Since(began).Round(time.Second), m.file, r)
		if err := c.note(r); err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether a mutant is selected.
func (c *campaign) wants(m *mutant, r result, tried bool) bool {
	switch {
	case m.equivalent != "":
		return false
	case len(c.only) > 0:
		for _, prefix := range c.only {
			if strings.HasPrefix(m.id, prefix) {
				return true
			}
		}
		return false
	case c.survivors:
		return tried && (r.verdict == survived || r.verdict == open)
	}
	return !tried || r.sum != m.sum() || r.verdict == doesNotCompile || r.verdict == doesNotApply || r.verdict == open && c.quick == 0
}

func (c *campaign) note(r result) error {
	f, err := os.OpenFile(c.path("results.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, r); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	return f.Close()
}
