// Command peers runs the usual shapes of reactive benchmarks on Settle's scheduler and on other engines, side
// by side in one process. README.md has the results and their interpretation.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// enough is the duration above which a measurement is not repeated in the next round.
const enough = 3 * time.Second

func run(args []string, out, progress io.Writer) error {
	var all, usual []string
	for _, c := range contenders {
		all = append(all, c.name)
		if !c.extra {
			usual = append(usual, c.name)
		}
	}
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	pattern := flags.String("shapes", "", "only the shapes and groups (standard, dynamic, tree, create) that this regular expression matches")
	engines := flags.String("engines", strings.Join(usual, ","), "these engines, in this order, of "+strings.Join(all, ", "))
	rounds := flags.Int("rounds", 3, "how often to measure; the best counts")
	each := flags.Duration("time", 50*time.Millisecond, "about how long to measure a shape on an engine in a round")
	cpu := flags.Bool("cpu", false, "CPU time of the process instead of time, for a machine that is not idle")
	large := flags.Bool("large", false, "the tree of two million nodes too, which takes some gigabytes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return err
	}
	clock = wallTime
	if *cpu {
		clock = cpuTime
	}
	t := &table{}
	for _, name := range strings.Split(*engines, ",") {
		c, err := contenderNamed(strings.TrimSpace(name))
		if err != nil {
			return fmt.Errorf("%w; there are %s", err, strings.Join(all, ", "))
		}
		t.engines = append(t.engines, c)
	}
	for _, s := range shapes {
		if (wanted.MatchString(s.name) || wanted.MatchString(s.group)) && (*large || s.name != "tree20") {
			t.shapes = append(t.shapes, s)
		}
	}
	slow := map[key]bool{}
	for round := range *rounds {
		for _, s := range t.shapes {
			fmt.Fprintf(progress, "\rround %d of %d: %-24s", round+1, *rounds, s.name)
			for i := range t.engines {
				// Rounds begin with different engines, so that none always follows the same one.
				c := t.engines[(i+round)%len(t.engines)]
				if c.skips(s) != "" || t.failed(s, c) || slow[key{s, c}] {
					continue
				}
				began := time.Now()
				r, err := measure(c, s, *each)
				t.add(s, c, r, err)
				slow[key{s, c}] = time.Since(began) > enough
			}
		}
	}
	fmt.Fprintf(progress, "\r%60s\r", "")
	t.print(out)
	return t.verdict()
}
