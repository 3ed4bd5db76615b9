package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	planned "github.com/settlehq/settle/schedule"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
	"github.com/settlehq/settle/workflow/compile"
)

// Workflows: clients start runs, signal, cancel, retry and reset them, and set schedules; the runs call actions and start
// other runs, in their own and in other spaces. The log is read as if there were no package runs (clerk): the events that a space has
// handled are the inputs of a run in memory, and every document must be what that run says.

// firstWithRuns to lastWithRuns are the seeds whose plans have workflows, and may have all other faults.
const (
	firstWithRuns = 60_000_000
	lastWithRuns  = 79_999_999
)

func (p *plan) hasRuns() bool {
	return p.seed >= firstWithRuns && p.seed <= lastWithRuns || p.isLatest()
}

// chooseRuns turns workflows on. In some seeds there are runs whose calls wait for room, for which messages must be large.
func (p *plan) chooseRuns() {
	if !p.hasRuns() {
		return
	}
	p.faults = append(p.faults, "workflows")
	if keyed(p.seed, "wide").below(8) == 0 {
		p.faults = append(slices.DeleteFunc(p.faults, func(f string) bool { return f == "oversize" }), "wide")
	}
}

// maxPayload is the size of the largest message.
func (p *plan) maxPayload() int {
	if p.has("wide") {
		return 1 << 20
	}
	return 64 << 10
}

// chainLimit is how long chains of events may become in a simulation: shorter than those of its streams, and long enough for
// runs that start others.
func (p *plan) chainLimit() int {
	switch b := p.boundsOf(); {
	case p.has("workflows") && (b.Starts < 10 || b.StartBytes < 1000):
		return 600 // steps that start one call each follow each other; they begin a new chain from 500 on
	case p.has("workflows"):
		return 40
	}
	return maxChain
}

// workflows are the workflows of the programs. "odd" exists in odd editions only, and EDITION is that of the program.
var workflows = map[string]string{
	// sequences, a loop, a fan-out over functions, retries with a pause, a timeout for each attempt, a sleep
	"mixed": `
def part(x):
    first = retry(act(at = "part", x = x), attempts = 3, backoff = "60ms", factor = 2, on = ["A", "Base"])
    act(at = "more", x = x)
    return first

def run(n):
    list = [EDITION]
    for i in range(n):
        v = attempt(timeout(act(at = "loop", x = i), "150ms"))
        if v.failed("TimeoutError"):
            sleep("40ms")
            continue
        if v.failed():
            list.append(-1)
        else:
            list.append(v.value)
    parts = parallel([part(i) for i in range(n)], on_error = "collect")
    for p in parts:
        list.append(p if type(p) == "int" else -2)
    return list
`,
	// compensation
	"saga": `
def run(n):
    edition = EDITION
    for i in range(n):
        compensate(retry(undo(x = i), attempts = 3, backoff = "30ms"))
        act(at = "do", x = i)
    both = parallel(act(at = "both", x = 0), act(at = "both", x = 1))
    return [n, both[0], both[1]]
`,
	// signals
	"approval": `
def run(n):
    first = wait("go")
    second = attempt(wait("go", timeout = "600ms"))
    if second.ok:
        return [first, second.value]
    act(at = "late", x = EDITION)
    third = attempt(wait("stop", timeout = "300ms"))
    return [first, third.ok]
`,
	// calls whose arguments are so large that two of a run, and four of a space, are made at the same time; in one case the
	// first failure ends the others, those that wait as well
	"wide": `
def strict(n):
    pad = "x" * 60000
    return parallel([act(at = "wide", x = i, pad = pad) for i in range(n + 2)])

def run(n):
    if n == 2:
        v = attempt(strict(n))
        act(at = "then", x = n)
        return v.value if v.ok else [-3]
    pad = "x" * 60000
    parts = parallel([act(at = "wide", x = i, pad = pad) for i in range(n + 2)], on_error = "collect")
    list = []
    for p in parts:
        list.append(p if type(p) == "int" else -2)
    return list
`,
	// signals that are so large that the run is stored as a snapshot
	"digest": `
def run(n):
    size = 0
    for i in range(n):
        v = attempt(wait("part", timeout = "500ms"))
        size += len(v.value) if v.ok else 0
        attempt(act(at = "digest", x = i))
    return size
`,
	// children, in this space and another one, one after the other and at the same time, with an ID that is given, and one
	// that does not end in time
	"family": `
def run(n, to):
    list = []
    for i in range(n):
        v = attempt(retry(child("leaf", {"n": i + 1}, space = to), attempts = 2, backoff = "20ms"))
        list.append(v.value if v.ok else -1)
    both = parallel(child("leaf", {"n": n}), child("leaf", {"n": 5 if n == 2 else 3}, space = to, id = "shared"), on_error = "collect")
    for b in both:
        list.append(b if type(b) == "int" else -2)
    late = attempt(timeout(child("slow", {"n": 1}, space = to), "300ms"))
    odd = attempt(child("odd", {"n": 1}, space = to))
    return [list, late.ok, odd.ok]
`,
	"grand": `
def run(n, to):
    v = attempt(retry(child("family", {"n": n, "to": to}, space = to), attempts = 2, backoff = "50ms"))
    act(at = "grand", x = n)
    return v.ok
`,
	"leaf": `
def run(n):
    if n % 2 == 0:
        return n
    act(at = "leaf", x = n)
    return n
`,
	"slow":    "def run(n):\n    hold(at = \"slow\", x = n)\n    return n\n",
	"sleeper": "def run(n):\n    sleep(\"400d\")\n    return n\n",
	"note":    "def run(n):\n    return n\n",
	"tick": `
def run(ms):
    v = attempt(act(at = "tick", x = EDITION))
    sleep(ms / 1000.0)
    return v.ok
`,
	"odd": "def run(n):\n    return n + 100\n",
}

// retained is how many runs of a workflow are kept.
var retained = map[string]int{"note": 2}

// catalog has the workflows of each edition. They are made once for all seeds.
var catalog struct {
	sync.Mutex
	of map[int]map[string]*workflow.Program
	in map[int]map[string]*workflow.Graph
}

// graphs returns the graphs of the workflows of an edition.
func (p *plan) graphs(edition int) map[string]*workflow.Graph {
	p.definitions(edition)
	catalog.Lock()
	defer catalog.Unlock()
	return catalog.in[edition]
}

// definitions returns the workflows of an edition.
func (p *plan) definitions(edition int) map[string]*workflow.Program {
	catalog.Lock()
	defer catalog.Unlock()
	if catalog.of[edition] == nil {
		if catalog.of == nil {
			catalog.of, catalog.in = map[int]map[string]*workflow.Program{}, map[int]map[string]*workflow.Graph{}
		}
		catalog.of[edition], catalog.in[edition] = map[string]*workflow.Program{}, map[string]*workflow.Graph{}
		for name, src := range workflows { // any order: each on its own
			if name == "odd" && !isOdd(edition) {
				continue
			}
			src = strings.ReplaceAll(src, "EDITION", strconv.Itoa(edition))
			src = "act = action(\"act\")\nundo = action(\"undo\")\nhold = action(\"hold\")\n" + src + fmt.Sprintf("\nworkflow(%q, run)\n", name)
			g, err := compile.Compile(name+".star", []byte(src))
			var made *workflow.Program
			if err == nil {
				made, err = workflow.Prepare(g)
			}
			if err != nil {
				panic(err)
			}
			catalog.of[edition][name], catalog.in[edition][name] = made, g
		}
	}
	return catalog.of[edition]
}

// addRuns gives a program its workflows.
func (w *world) addRuns(p0 *process, p *space.Program, of string, edition int) error {
	if !w.plan.has("workflows") {
		return nil
	}
	set, err := w.setOf(edition)
	if err != nil {
		return err
	}
	return errors.Join(w.addDeeds(p0, p, of, set), set.Register(p))
}

// setOf returns the workflows of an edition. They are made once for all programs: what is remembered of runs is in the spaces.
func (w *world) setOf(edition int) (*runs.Set, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if set := w.sets[edition]; set != nil {
		return set, nil
	}
	set := runs.New()
	set.Bound(w.plan.boundsOf())
	graphs := w.plan.graphs(edition)
	for _, name := range slices.Sorted(maps.Keys(graphs)) {
		if _, err := set.Add(graphs[name], nil); err != nil {
			return nil, err
		}
		if keep := retained[name]; keep > 0 {
			if err := set.Keep(name, runs.Retention{Runs: keep}); err != nil {
				return nil, err
			}
		}
	}
	w.sets[edition] = set
	return set, nil
}

// runPlan draws the events about runs.
func (p *plan) runPlan() {
	if !p.has("workflows") {
		return
	}
	n := 3 + keyed(p.seed, "times", "runs").below(5)
	for i := range n {
		c := keyed(p.seed, "run", i)
		p.addRun(c, fmt.Sprint("r", i+1), oneOf(c, "mixed", "mixed", "saga", "saga", "approval", "approval", "family", "family", "grand", "slow", "leaf", "odd", "sleeper"))
	}
	if c := keyed(p.seed, "notes"); c.below(3) == 0 { // more than are retained, in one space
		in := p.anySpace(c)
		for i := range 4 {
			c := keyed(p.seed, "note", i)
			p.add(p.ofRun(c, p.when(c), in, runs.StreamStart, fmt.Sprint("note", i+1), `"workflow":"note","args":{"n":%d}`, i))
		}
	}
	p.addWide(keyed(p.seed, "wide runs"))
	p.addDigest(keyed(p.seed, "digest"))
	for i := range keyed(p.seed, "times", "schedules").below(3) {
		p.addSchedule(keyed(p.seed, "schedule", i), fmt.Sprint("every", i+1))
	}
	if c := keyed(p.seed, "forged"); c.below(4) == 0 { // few, so that the other seeds keep their stories
		p.forge(c)
	}
}

// addWide draws runs of one space at the same time, whose calls wait for room. What has taken the room ends in all ways.
func (p *plan) addWide(c *chance) {
	if !p.has("wide") {
		return
	}
	in, begin := p.anySpace(c), p.when(c)*2/3
	for i := range 3 + c.below(2) {
		run, at := fmt.Sprint("wide", i+1), begin+c.between(0, 200*time.Millisecond)
		start := fmt.Sprintf(`"workflow":"wide","args":{"n":%d}`, c.below(3))
		if c.below(3) > 0 {
			start += fmt.Sprintf(`,"deadline":%.3f`, c.between(50*time.Millisecond, 800*time.Millisecond).Seconds())
		}
		p.add(p.ofRun(c, at, in, runs.StreamStart, run, "%s", start))
		if c.below(4) == 0 {
			p.add(p.ofRun(c, at+c.between(0, time.Second), in, runs.StreamCancel, run, ""))
		}
		if c.below(4) == 0 {
			p.add(p.ofRun(c, at+c.between(0, time.Second), in, oneOf(c, runs.StreamRetry, runs.StreamReset), run, `"step":1`))
		}
	}
}

// partBytes is the size of the parts of which a digest is made.
const partBytes = 20_000

// addDigest draws a run with so large signals that the space stores it as a snapshot.
func (p *plan) addDigest(c *chance) {
	if !p.has("wide") {
		return
	}
	in, begin := p.anySpace(c), p.when(c)*2/3
	p.add(p.ofRun(c, begin, in, runs.StreamStart, "digest1", `"workflow":"digest","args":{"n":%d}`, 3+c.below(5)))
	soon := func() time.Duration { return begin + c.between(0, 1500*time.Millisecond) }
	part := strings.Repeat("x", partBytes)
	for range 4 + c.below(6) {
		p.add(p.ofRun(c, soon(), in, runs.StreamSignal, "digest1", `"signal":"part","value":%q`, part))
	}
	if c.below(2) == 0 {
		p.add(p.ofRun(c, soon()+c.between(0, time.Second), in, runs.StreamReset, "digest1", `"step":%d`, 1+c.below(8)))
	}
	if c.below(3) == 0 {
		p.add(p.ofRun(c, soon()+c.between(0, time.Second), in, runs.StreamCancel, "digest1", ""))
		p.add(p.ofRun(c, soon()+c.between(0, time.Second), in, runs.StreamRetry, "digest1", ""))
	}
}

// ofRun returns an event about a run; its ID is in the payload.
func (p *plan) ofRun(c *chance, at time.Duration, in, stream, run, fields string, args ...any) item {
	payload := fmt.Sprintf(`"run":%q`, run)
	if fields != "" {
		payload += "," + fmt.Sprintf(fields, args...)
	}
	return p.asked(c, item{at: max(at, 0), space: in, stream: stream, payload: payload})
}

// asked completes an event, whose sender may read the answer.
func (p *plan) asked(c *chance, it item) item {
	if c.below(2) == 0 {
		it.payload += `,"answer":true`
	}
	it.payload = "{" + it.payload + "}"
	it.do, it.who = oneOf(c, "queue", "send", "call"), anyUser(c)
	p.runEvents++
	it.id = fmt.Sprint("q", p.runEvents)
	return it
}

// addRun draws the start of a run, and what clients do to it.
func (p *plan) addRun(c *chance, run, workflow string) {
	in, at := p.anySpace(c), p.when(c)*2/3
	n := c.below(4)
	args := fmt.Sprintf(`{"n":%d}`, n)
	if workflow == "family" || workflow == "grand" {
		args = fmt.Sprintf(`{"n":%d,"to":%q}`, n%3, p.anySpace(c))
	}
	start := fmt.Sprintf(`"workflow":%q,"args":%s`, workflow, args)
	if c.below(4) == 0 {
		start += fmt.Sprintf(`,"deadline":%.3f`, c.between(200*time.Millisecond, 3*time.Second).Seconds())
	}
	p.add(p.ofRun(c, at, in, runs.StreamStart, run, "%s", start))
	latest := keyed(p.seed, "latest", run).below(3) > 0
	soon := func() time.Duration { return at + c.between(-100*time.Millisecond, 1500*time.Millisecond) }
	if c.below(3) == 0 { // twice, perhaps as another run
		p.add(p.ofRun(c, soon(), in, runs.StreamStart, run, `"workflow":%q,"args":%s`, workflow, oneOf(c, args, args, `{"n":77}`)))
	}
	if workflow == "approval" || c.below(10) == 0 {
		for i := range c.below(5) {
			p.add(p.ofRun(c, soon(), in, runs.StreamSignal, run, `"signal":%q,"value":%d`, oneOf(c, "go", "go", "go", "stop"), 1000+i))
		}
	}
	if c.below(3) == 0 || workflow == "slow" {
		p.add(p.ofRun(c, soon(), in, runs.StreamCancel, run, `"at_once":%v`, c.below(4) == 0))
		if c.below(3) == 0 {
			p.add(p.ofRun(c, soon(), in, runs.StreamCancel, run, `"at_once":true`))
		}
	}
	if c.below(2) == 0 {
		p.add(p.ofRun(c, soon()+c.between(0, time.Second), in, runs.StreamRetry, run, `"latest":%v`, latest))
	}
	if c.below(4) == 0 {
		p.add(p.ofRun(c, soon(), in, runs.StreamReset, run, `"latest":%v,"step":%d`, latest, 1+c.below(6)))
	}
	if c.below(4) == 0 {
		p.add(item{at: soon(), do: "watch", who: anyUser(c), space: in, doc: runs.Doc(run)})
	}
	if c.below(6) == 0 && p.has("crash") {
		p.add(item{at: soon(), do: "crash", who: oneOf(c, "w1", "w2", "w3"), label: oneOf(c, "append", "append", "send", "save"), moment: c.below(3)})
	}
}

// scheduleEvery is the interval of the schedules, in milliseconds.
const scheduleEvery = 1000

// scheduleEnd is when they end: soon, so that there is rest. The bubble of a run begins in 2000.
func scheduleEnd(p *plan) time.Time {
	return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC).Add(p.chaos.Truncate(time.Second) + 2*time.Second)
}

// addSchedule draws a schedule, and what clients do to it. Its jitter keeps spaces from being due in one instant.
func (p *plan) addSchedule(c *chance, name string) {
	in, at := p.anySpace(c), p.when(c)/2
	set := func(at time.Duration) {
		rule := oneOf(c, planned.Skip, planned.Queue, planned.Cancel, planned.Allow)
		ms := c.below(1500)
		p.add(p.asked(c, item{at: at, space: in, stream: runs.StreamScheduleSet, payload: fmt.Sprintf(
			`"schedule":%q,"workflow":"tick","every":"1s","jitter":"700ms","end":%q,"overlap":%q,"args":{"ms":%d}`, name, scheduleEnd(p).Format(time.RFC3339), rule, ms)}))
	}
	set(at)
	for range c.below(5) {
		at := at + c.between(-50*time.Millisecond, 3*time.Second)
		stream := oneOf(c, runs.StreamScheduleTrigger, runs.StreamScheduleTrigger, runs.StreamSchedulePause, runs.StreamScheduleResume, runs.StreamScheduleDelete, "")
		if stream == "" {
			set(at)
			continue
		}
		p.add(p.asked(c, item{at: max(at, 0), space: in, stream: stream, payload: fmt.Sprintf(`"schedule":%q`, name)}))
	}
}

// unfinished returns why the runs of a space are not at rest, "" if they are. A task whose end an operator has cancelled waits until
// that is redriven.
func (k *clerk) unfinished() string {
	for action, t := range k.tasks() {
		if t.Unhandled {
			continue
		}
		return fmt.Sprintf("action %s of space %s is pending for %s", action, k.f.space, t.Key)
	}
	return ""
}

// withoutRuns returns a transaction without what package runs has done in it.
func (f *fold) withoutRuns(tx *model.Tx, after map[string]model.Value) (*model.Tx, map[string]model.Value) {
	own := *tx
	own.Sends = slices.DeleteFunc(slices.Clone(tx.Sends), func(s model.Send) bool { return runStreams[s.Stream] != nil })
	own.Cancels = slices.DeleteFunc(slices.Clone(tx.Cancels), func(x model.Cancel) bool {
		w := f.agenda.bySlot[x.Slot]
		return w != nil && isRunTimer(w.Timer)
	})
	rest := maps.Clone(after)
	maps.DeleteFunc(rest, func(doc string, _ model.Value) bool { return isRunDoc(doc) })
	return &own, rest
}
