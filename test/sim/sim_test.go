package sim

import (
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/settlehq/settle/internal/raced"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "the seed that TestSeed runs")
	shrunkFlag = flag.Bool("shrunk", false, "TestSeed first makes the plan of a failing seed smaller")
	allFlag    = flag.Bool("all", false, "the minutes tell of announcements, pings and leases, too")
	seedsFlag  = flag.Uint64("seeds", defaultSeeds(), "how many seeds TestSeeds runs")
	firstFlag  = flag.Uint64("first", 0, "the first of them; 0: older and newer ones, see seedRanges")
	digestFlag = flag.String("digests", "", "a file into which TestSeeds writes the digest of each seed's story, to compare two versions of the code")
)

// defaultSeeds take less than two minutes of a processor.
func defaultSeeds() uint64 {
	if few {
		return 176
	}
	return 1155
}

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1) // see collect
	goleak.VerifyTestMain(m)
}

// result is the result of a seed.
type result struct {
	hash    uint64
	commits uint64
	wrong   []violation
	counts  map[string]int
	minutes string
	steps   int
}

// simulate runs a plan.
func simulate(t *testing.T, p *plan, verbose bool) (r result) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p, verbose)
		w.run()
		r = result{hash: w.story.sum(), commits: w.commits, wrong: w.wrong, counts: w.counts, minutes: w.story.text(), steps: w.story.steps}
	})
	return r
}

// TestSeed runs the one seed of the flag -seed; with -v it shows the minutes.
func TestSeed(t *testing.T) {
	p := newPlan(*seedFlag)
	t.Log(p.options.String())
	r := simulate(t, p, false)
	if len(r.wrong) > 0 && *shrunkFlag {
		p = (&shrinker{t: t, check: r.wrong[0].check, limit: shrinkRuns}).shrink(p)
	}
	if testing.Verbose() {
		r = simulate(t, p, true)
		fmt.Fprint(os.Stdout, r.minutes)
	}
	for _, v := range r.wrong {
		t.Error(v)
	}
	t.Logf("%d steps, hash %x", r.steps, r.hash)
}

// TestSeeds runs the number of seeds in the flag -seeds.
func TestSeeds(t *testing.T) {
	if text := os.Getenv(partEnv); text != "" {
		runPart(t, text)
		return
	}
	began := time.Now()
	var sum outcomes
	sum.Counts = map[string]int{}
	seeds := parts()
	digests, commits := map[uint64]string{}, map[uint64]uint64{}
	for i := range seeds {
		seeds[i].Hashes = *digestFlag != ""
	}
	for _, out := range inChildren(t, seeds...) {
		maps.Copy(digests, out.Hashes)
		maps.Copy(commits, out.Commits)
		sum.Seeds += out.Seeds
		sum.Steps += out.Steps
		sum.Failed += out.Failed
		for what, n := range out.Counts { // any order: sums
			sum.Counts[what] += n
		}
		for _, r := range out.Reports {
			t.Error(r)
		}
	}
	if *digestFlag != "" {
		writeDigests(t, *digestFlag, digests, commits)
	}
	t.Logf("%d seeds, %d failed, %d steps, %v", sum.Seeds, sum.Failed, sum.Steps, time.Since(began).Round(time.Second))
	expected := sometimes
	if hasSome(seeds, (*plan).isNewer) {
		expected = slices.Concat(expected, sometimesNewer)
	}
	if hasSome(seeds, (*plan).isNewest) {
		expected = slices.Concat(expected, sometimesNewest)
		if sum.Seeds >= many && *firstFlag > 0 {
			expected = slices.Concat(expected, seldomNewest())
		}
	}
	if hasSome(seeds, func(p *plan) bool { return !p.hasRuns() }) { // with runs, chains may be longer than those of the plans
		expected = slices.Concat(expected, []string{"chains that came to their end"})
	}
	if hasSome(seeds, (*plan).hasRuns) {
		expected = slices.Concat(expected, sometimesRuns)
		if sum.Seeds >= many && *firstFlag > 0 {
			expected = slices.Concat(expected, seldomRuns)
		}
	}
	if hasSome(seeds, (*plan).isLatest) {
		expected = slices.Concat(expected, sometimesLatest)
	}
	for _, what := range expected {
		if sum.Seeds >= 1000 && sum.Counts[what] == 0 {
			t.Errorf("no %s in %d seeds: the run proves nothing", what, sum.Seeds)
		}
	}
	for _, what := range sorted(sum.Counts) {
		t.Logf("%9d %s", sum.Counts[what], what)
	}
}

// writeDigests writes a line for each seed: the seed, the digest of its story, and a sum over what was
// appended. Two versions of the code that behave the same write the same file, but for seeds in which
// transactions of one instant are made in another order: those differ between two runs of one version.
func writeDigests(t *testing.T, path string, digests map[uint64]string, commits map[uint64]uint64) {
	t.Helper()
	var text strings.Builder
	for _, seed := range slices.Sorted(maps.Keys(digests)) {
		fmt.Fprintf(&text, "%d %s %x\n", seed, digests[seed], commits[seed])
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Error(err)
	}
}

func sorted(counts map[string]int) []string {
	var names []string
	for what := range counts { // any order: sorted below
		names = append(names, what)
	}
	slices.Sort(names)
	return names
}

// sometimes lists what must happen in some seeds of a run, or the run has shown nothing.
var sometimes = []string{
	"appends refused after their owner's death",
	"appends sent again",
	"changes of program in the log",
	"appends that landed after their owner's death",
	"attempts at tasks that were cut off",
	"commits in doubt that were in the log",
	"commits of an attached runtime",
	"computations over a deletion that was forgotten",
	"crashes at a step",
	"dead letters",
	"deadly events given up",
	"duplicates of events suppressed",
	"events held for their predecessor",
	"events that went astray",
	"evictions",
	"evictions with an event on its way",
	"events refused by a full lane",
	"events that wait for long",
	"events that waited",
	"events that waited, and were handled by another owner",
	"events that were too large",
	"gaps that were met",
	"jobs that began",
	"missed times of jobs",
	"events that landed after their sender's death",
	"notices of refused events",
	"pauses",
	"processes ended by a handler",
	"programs that were missing",
	"purged logs",
	"purged markers",
	"receipts: failed",
	"receipts: handled",
	"receipts that were forgotten",
	"receipts: refused",
	"refused appends",
	"releases repeated",
	"saves of outdated state refused",
	"saves that landed after their owner's death",
	"runs for the sake of a version",
	"sleeping spaces that were woken for what waits",
	"spaces set aside",
	"stale answers",
	"takeovers",
	"takeovers by a stale owner",
	"takeovers with a commit in flight",
	"tasks that were done again",
	"tasks that were done though cancelled",
	"ends of tasks in the commit of the owner",
	"tasks: cancelled",
	"tasks: done",
	"tasks: failed",
	"timers cancelled",
	"timers replaced",
	"times of jobs",
	"transactions of applications",
	"watches that saw something",
	"workers that heard of another version",
	"zombies refused",
}

// recorded are the seeds that have failed before, each with its fault.
//
//go:embed seeds.txt
var recorded string

func TestRecordedSeeds(t *testing.T) {
	n := 0
	for line := range strings.Lines(recorded) {
		text, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if text == "" || text[0] == '#' {
			continue
		}
		if n++; n%raced.Step(8) != 0 {
			continue
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("seeds.txt: %v", err)
		}
		collect(seed)
		p := newPlan(seed)
		if r := simulate(t, p, false); len(r.wrong) > 0 {
			t.Errorf("the seed of: %s\n%s", strings.TrimSpace(what), report(t, p, &r, shrinkRuns))
		}
	}
}
