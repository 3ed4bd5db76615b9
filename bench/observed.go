package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/settlehq/settle/bench/events"
	"github.com/settlehq/settle/bench/harness"
)

// observed measures what metrics and traces cost, beside none, and prints a table.
func observed(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench observed", flag.ContinueOnError)
	rounds := flags.Int("rounds", 31, "how often each is measured")
	n := flags.Int64("events", 20_000, "how many events a round has")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "settle-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // best effort: it is a temporary directory
	program, err := natsServer(ctx, os.Stderr)
	if err != nil {
		return err
	}
	at := &harness.Site{Name: "observed", Dir: filepath.Join(dir, "site")}
	if at.Servers, err = harness.StartServers(ctx, program, at.Dir, 1, false); err != nil {
		return err
	}
	defer at.Servers.Stop()
	before := harness.Load()
	all, err := events.Observe(ctx, at, *rounds, *n, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d rounds of %d events, load average %.1f at the start and %.1f at the end\n\n", *rounds, *n, before, harness.Load())
	fmt.Fprintln(out, "| observed | CPU of the worker, µs an event | of all processes | worker, beside off: median (quartiles) | all processes, beside off | quietest rounds, worker | all processes | allocations | bytes to the server |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, o := range all {
		fmt.Fprintf(out, "| %s | %.1f | %.1f | %s | %s | %s | %s | %.1f | %.0f |\n", o.Name, medianOf(o.Rounds, ofWorker), medianOf(o.Rounds, ofAll),
			beside(o.Rounds, all[0].Rounds, ofWorker), beside(o.Rounds, all[0].Rounds, ofAll),
			quietest(o.Rounds, all[0].Rounds, ofWorker), quietest(o.Rounds, all[0].Rounds, ofAll), medianOf(o.Rounds, allocs), medianOf(o.Rounds, func(r *harness.Round) float64 { return r.BytesIn }))
	}
	return nil
}

func ofWorker(r *harness.Round) float64 { return r.CPU - r.Client - r.Servers }

func ofAll(r *harness.Round) float64 { return r.CPU }

func allocs(r *harness.Round) float64 { return *r.Allocs }

// medianOf returns that of a figure.
func medianOf(rounds []*harness.Round, of func(*harness.Round) float64) float64 {
	var list []float64
	for _, r := range rounds {
		list = append(list, of(r))
	}
	return middle(list)
}

// beside compares a figure with that of the base in the same round.
func beside(rounds, base []*harness.Round, of func(*harness.Round) float64) string {
	ratios := make([]float64, len(rounds))
	for i := range rounds {
		ratios[i] = (of(rounds[i])/of(base[i]) - 1) * 100
	}
	slices.Sort(ratios)
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", ratios[len(ratios)/2], ratios[len(ratios)/4], ratios[len(ratios)*3/4])
}

// quietest compares the means of a figure in the fifth of the rounds in which it is least, with that of the base. Other work on the machine only adds to
// the processor time of an event (it takes the caches, and interrupts batches): these rounds have least of it.
func quietest(rounds, base []*harness.Round, of func(*harness.Round) float64) string {
	least := func(rounds []*harness.Round) float64 {
		list := make([]float64, len(rounds))
		for i, r := range rounds {
			list[i] = of(r)
		}
		slices.Sort(list)
		list = list[:max(1, len(list)/5)]
		sum := 0.0
		for _, v := range list {
			sum += v
		}
		return sum / float64(len(list))
	}
	mine, other := least(rounds), least(base)
	return fmt.Sprintf("%.1f µs, %+.1f %%", mine, (mine/other-1)*100)
}
