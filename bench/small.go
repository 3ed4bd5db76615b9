package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/bench/events"
	"github.com/settlehq/settle/bench/harness"
	"github.com/settlehq/settle/bench/workflows"
)

// counts are what a unit of work takes: messages, bytes, fsyncs, allocations. They do not depend on the machine, as
// everything is done one at a time, and nothing is sent at intervals.
type counts map[string]map[string]float64

// tolerance is how much a count may grow over the recorded one.
const tolerance = 1.10

// tries is how often a measurement with a count that is too large is repeated. What happens beside the work, such as a
// reconnection, only adds, so the smallest counts are compared. With as many, the median is recorded.
const tries = 4

// small measures counts, and compares them with the recorded ones.
func small(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench small", flag.ContinueOnError)
	record := flags.Bool("record", false, "record the counts, and compare nothing")
	file := flags.String("json", countsFile, "the file of recorded counts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	recorded, err := readCounts(*file)
	if err != nil && !*record {
		return err
	}
	if *record {
		recorded = nil
	}
	got, err := count(ctx, recorded)
	if err != nil {
		return err
	}
	if *record {
		return writeCounts(*file, got)
	}
	return compare(out, recorded, got)
}

func readCounts(file string) (c counts, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return c, json.Unmarshal(data, &c)
}

func writeCounts(file string, c counts) error {
	data, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// compare prints all counts, and returns an error if one has grown.
func compare(out io.Writer, recorded, got counts) error {
	var grown []string
	for _, work := range slices.Sorted(maps.Keys(recorded)) {
		for _, what := range slices.Sorted(maps.Keys(recorded[work])) {
			was := recorded[work][what]
			is, measured := got[work][what]
			switch {
			case !measured:
				fmt.Fprintf(out, "%-50s %-10s %9.4g  not counted here\n", work, what, was)
				continue
			case above(what, was, is):
				grown = append(grown, fmt.Sprintf("%s: %.4g %s instead of %.4g", work, is, what, was))
			}
			fmt.Fprintf(out, "%-50s %-10s %9.4g %9.4g\n", work, what, was, is)
		}
	}
	if len(grown) > 0 {
		return fmt.Errorf("per unit, more than a tenth above bench/counts.json (`make bench-record` records new counts, if the growth is worth it):\n  %s", strings.Join(grown, "\n  "))
	}
	return nil
}

// slack is what a count may grow by besides: a stray message, or an allocation of the runtime, over all units.
var slack = map[string]float64{"allocs": 1, "in_bytes": 5, "out_bytes": 5, "in_msgs": 0.05, "out_msgs": 0.05, "fsyncs": 0.05}

// above reports whether a count has grown by more than a tenth, and by more than the slack.
func above(what string, was, is float64) bool { return is > was*tolerance+slack[what] }

// count measures. Works whose counts are above the recorded ones are measured again.
func count(ctx context.Context, recorded counts) (counts, error) {
	dir, err := os.MkdirTemp("", "settle-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // best effort: it is a temporary directory
	program, err := natsServer(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	at := &harness.Site{Name: "counts", Always: true, Quiet: true, Dir: filepath.Join(dir, "site")}
	if at.Servers, err = harness.StartServers(ctx, program, at.Dir, 1, true); err != nil {
		return nil, err
	}
	defer at.Servers.Stop()
	if err := harness.CanCountFsyncs(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fsyncs are not counted:", err)
	}
	got := counts{}
	run := time.Now().Unix() % 1_000_000
	for _, w := range works() {
		var all []map[string]float64
		for try := 0; try < tries && (recorded == nil || try == 0 || grew(recorded[w.name], got[w.name])); try++ {
			run++
			r, err := w.measure(ctx, at, fmt.Sprintf("r%d", run))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			all = append(all, countsOf(r))
			if got[w.name] = merge(all, slices.Min[[]float64]); recorded == nil {
				got[w.name] = merge(all, middle)
			}
		}
	}
	return got, nil
}

func grew(was, is map[string]float64) bool {
	for what, v := range is {
		if old, known := was[what]; known && above(what, old, v) {
			return true
		}
	}
	return false
}

// countsOf returns the counts of a round.
func countsOf(r *harness.Round) map[string]float64 {
	c := map[string]float64{"in_msgs": r.MsgsIn, "out_msgs": r.MsgsOut, "in_bytes": r.BytesIn, "out_bytes": r.BytesOut}
	if r.Fsyncs != nil {
		c["fsyncs"] = *r.Fsyncs
	}
	if r.Allocs != nil {
		c["allocs"] = *r.Allocs
	}
	return c
}

// merge picks each count from those of several rounds.
func merge(rounds []map[string]float64, pick func([]float64) float64) map[string]float64 {
	lists, picked := map[string][]float64{}, map[string]float64{}
	for _, c := range rounds {
		for what, v := range c {
			lists[what] = append(lists[what], v)
		}
	}
	for what, list := range lists {
		picked[what] = pick(list)
	}
	return picked
}

// middle returns the median, the larger one of two.
func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// work is something of which the counts are known. What others cost is not ours to keep small, so `make bench` alone counts it.
type work struct {
	name    string
	measure func(ctx context.Context, at *harness.Site, run string) (*harness.Round, error)
}

func works() (list []work) {
	for _, engine := range []string{"Settle", "ordered"} {
		for _, s := range events.Small() {
			if !s.On(engine) {
				continue
			}
			list = append(list, work{engine + ": " + s.Name, func(ctx context.Context, at *harness.Site, run string) (*harness.Round, error) {
				return s.Measure(ctx, engine, at, run)
			}})
		}
	}
	for _, engine := range []string{"Settle", "Settle, performers"} {
		list = append(list, work{engine + ": actions in sequence", func(ctx context.Context, at *harness.Site, run string) (*harness.Round, error) {
			return workflows.Small(ctx, engine, at, run)
		}})
	}
	return list
}
