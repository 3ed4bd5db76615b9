package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// plan is everything that a seed decides in advance.
type plan struct {
	seed uint64
	options
	items []item
	// runEvents counts the events about runs.
	runEvents int
	// calm is set if it has no faults, see newCalmPlan.
	calm bool
}

// options apply to a whole run. A seed turns a random part of the faults off, because one fault may hide
// the effects of another.
type options struct {
	partitions, spaces int
	// chaos is how long faults last.
	chaos time.Duration
	// wire is the typical duration of a request, patience how long its client waits.
	wire, patience time.Duration
	heartbeat, ttl time.Duration
	checkpoint     time.Duration
	// idle and maxAwake are options of the workers: when spaces are unloaded.
	idle      time.Duration
	maxAwake  int
	laneLimit int
	maxGroup  int
	// sink gives the program an effect.
	sink bool
	// history is the number of bytes of commits that are kept although no restart needs them, 0 for all
	// of them.
	history int64
	// wild is the number of requests per thousand that meet each enabled fault.
	wild   int
	faults []string
	delays delays
	hangs  hangs
}

// The faults of the network, and those that are items of a plan.
var allFaults = []string{
	"lost-request", "lost-answer", "copy", "late", "stale",
	"crash", "kill", "pause", "cut", "full", "hermit", "coordinators", "oversize", "leave", "attached", "deadly", "versions", "tasks", "astray",
}

func (o *options) has(fault string) bool { return slices.Contains(o.faults, fault) }

func (o *options) String() string {
	return fmt.Sprintf("%d partitions, %d spaces, chaos for %v, wire %v, patience %v, heartbeat %v, ttl %v, checkpoint %v, idle %v, %d awake, lane limit %d, group limit %d, sink %v, history of %d bytes, %d‰ of requests meet each of: %s; delays %+v, hangs %+v",
		o.partitions, o.spaces, o.chaos, o.wire, o.patience, o.heartbeat, o.ttl, o.checkpoint, o.idle, o.maxAwake, o.laneLimit, o.maxGroup, o.sink, o.history, o.wild, strings.Join(o.faults, " "), o.delays, o.hangs)
}

// item is one action of a plan.
type item struct {
	at time.Duration
	do string
	// The process that acts, or is acted upon.
	who string
	// of events and documents
	space, stream, id, payload, doc string
	// label, moment: a crash is armed, and happens at that step of the process.
	label  string
	moment int
	span   time.Duration
	a, b   bool
	// lane is the partition whose lane a misrouted event is sent to.
	lane int
	// due is the earliest time at which an event may be handled, 0 for at once.
	due time.Duration
	// expires is the time after which it is no longer handled, 0 for never.
	expires time.Duration
}

func (i item) String() string {
	s := fmt.Sprintf("%9v %s %s", i.at.Round(time.Microsecond), i.who, i.do)
	switch i.do {
	case "queue", "send", "call", "await", "raw", "cancel", "tree", "wait-tree":
		s += fmt.Sprintf(" %s/%s/%s %.40s", i.space, i.stream, i.id, i.payload)
	case "astray":
		s += fmt.Sprintf(" %s/%s/%s %.40s to the lane of partition %d", i.space, i.stream, i.id, i.payload, i.lane)
	case "transact":
		s += " " + i.id
	case "start":
		if i.space != "" {
			s += fmt.Sprintf(" attached to %s (handles events: %v)", i.space, i.a)
		}
	case "watch", "get", "observe", "query":
		s += " " + i.space + "/" + i.doc
	case "deploy":
		s += fmt.Sprintf(" edition %d", i.moment)
	case "crash":
		s += fmt.Sprintf(" when its next %s %s", i.label, moments[i.moment])
	case "deploy-at":
		s += fmt.Sprintf(" edition %d when its next %s %s", i.lane, i.label, moments[i.moment])
	case "skip":
		s += " what space " + i.space + " would handle next"
	case "spare":
		s += " the task of space " + i.space + " whose deadline has waited for longest"
	case "cut":
		s += fmt.Sprintf(" off (nothing leaves: %v, nothing comes in: %v)", i.a, i.b)
	}
	if i.due != 0 {
		s += fmt.Sprintf(", not before %v", i.due.Round(time.Microsecond))
	}
	if i.expires != 0 {
		s += fmt.Sprintf(", not after %v", i.expires.Round(time.Microsecond))
	}
	if i.span > 0 {
		s += " for " + i.span.Round(time.Millisecond).String()
	}
	return s
}

// newPlan makes the plan of a seed.
func newPlan(seed uint64) *plan {
	p := &plan{seed: seed}
	p.choose(keyed(seed, "options"))
	p.population()
	p.workload()
	p.trouble()
	p.tasks()
	p.delay()
	p.deployments()
	p.forget()
	p.addNewer()
	slices.SortStableFunc(p.items, func(a, b item) int { return cmp.Compare(a.at, b.at) })
	return p
}

func (p *plan) choose(c *chance) {
	p.options = options{
		partitions: oneOf(c, 1, 1, 2, 3), spaces: 2 + c.below(4),
		chaos: c.between(2*time.Second, 7*time.Second),
		wire:  c.between(100*time.Microsecond, 4*time.Millisecond), patience: c.between(60*time.Millisecond, 400*time.Millisecond),
		heartbeat: c.between(300*time.Millisecond, 700*time.Millisecond), ttl: c.between(1500*time.Millisecond, 4*time.Second),
		checkpoint: c.between(40*time.Millisecond, 900*time.Millisecond),
		laneLimit:  oneOf(c, 0, 0, 2, 5), maxGroup: oneOf(c, 0, 0, 1, 3), sink: c.below(3) == 0,
		wild: oneOf(c, 5, 20, 60, 120),
	}
	p.history = oneOf[int64](keyed(p.seed, "history"), 0, 1, 500, 3000)
	for _, f := range allFaults {
		if c.below(3) > 0 {
			p.faults = append(p.faults, f)
		}
	}
	e := keyed(p.seed, "eviction")
	p.idle, p.maxAwake = -1, oneOf(e, 0, 0, 1, 2)
	if e.below(3) > 0 {
		p.idle = e.between(5*time.Millisecond, 500*time.Millisecond)
	}
	p.chooseNewer()
	p.chooseRuns()
}

func (p *plan) add(i item) { p.items = append(p.items, i) }

// when returns a moment of the chaos.
func (p *plan) when(c *chance) time.Duration { return c.between(0, p.chaos) }

// spaceName returns the i-th space.
func spaceName(i int) string { return "s" + string(rune('1'+i)) }

func (p *plan) anySpace(c *chance) string { return spaceName(c.below(p.spaces)) }

const (
	users        = 3
	workers      = 3
	coordinators = 2
)

// population draws the processes, and when they start and stop.
func (p *plan) population() {
	c := keyed(p.seed, "population")
	p.add(item{at: c.between(0, 100*time.Millisecond), do: "start", who: "c1"})
	if p.has("coordinators") {
		p.add(item{at: p.when(c) / 2, do: "start", who: "c2"})
	}
	p.add(item{at: c.between(0, 300*time.Millisecond), do: "start", who: "w1"})
	for w := 2; w <= workers; w++ {
		if c.below(3) > 0 {
			p.add(item{at: p.when(c), do: "start", who: fmt.Sprint("w", w)})
		}
	}
	for i := range 2 * keyed(p.seed, "attached").below(2) {
		if c := keyed(p.seed, "attach", i); p.has("attached") {
			p.attach(c, fmt.Sprint("a", i+1))
		}
	}
	if p.has("hermit") {
		for range 1 + c.below(2) {
			p.add(item{at: p.when(c), do: "start", who: "h1"})
		}
	}
}

// attach attaches an application to a space, and adds its transactions.
func (p *plan) attach(c *chance, who string) {
	start := item{at: p.when(c), do: "start", who: who, space: p.anySpace(c), a: c.below(2) == 0}
	p.add(start)
	for i := range 1 + c.below(6) {
		p.add(item{at: start.at + c.between(0, p.chaos/2), do: "transact", who: who, id: fmt.Sprint(who, "t", i+1+c.below(2)*8)})
	}
	if c.below(2) == 0 {
		p.add(item{at: start.at + c.between(0, p.chaos/2), do: "observe", who: who, doc: oneOf(c, "double", "level", "both")})
	}
	switch c.below(4) {
	case 0:
		p.add(item{at: start.at + c.between(0, p.chaos/2), do: "kill", who: who})
	case 1:
		p.add(item{at: start.at + c.between(0, p.chaos/2), do: "leave", who: who})
	case 2:
		p.add(item{at: start.at + c.between(0, p.chaos/2), do: "pause", who: who, span: c.about(p.ttl / 2)})
	}
}

// streams are what clients send, by weight.
var streams = []string{
	"add", "add", "add", "add", "pay", "pay", "chain", "chain", "fan", "fan", "pong", "fail", "panic",
	"flaky", "get", "read", "look", "put", "stray", "nobody", "big", "clear", "raw", "huge", "deadly",
}

// payload returns the payload of an event of a stream.
func (p *plan) payload(c *chance, stream string) string {
	other := p.anySpace(c)
	switch stream {
	case "add", "nobody", "stray":
		return fmt.Sprint(1 + c.below(5))
	case "pay", "pong":
		return fmt.Sprintf(`{"to":%q,"k":%d}`, other, 1+c.below(4))
	case "chain":
		return fmt.Sprint(c.below(5))
	case "flaky":
		return fmt.Sprint(oneOf(c, 1, 2, 3, 9))
	case "deadly":
		return fmt.Sprint(oneOf(c, 1, 2, 9))
	case "raw":
		return `{"what": `
	case "huge":
		return `"` + strings.Repeat("x", 70<<10) + `"`
	case "read", "look":
		return fmt.Sprintf("%q", other)
	case "put":
		return fmt.Sprintf(`{"v":%d}`, c.below(100))
	}
	return ""
}

func (p *plan) workload() {
	n := 8 + keyed(p.seed, "size").below(30)
	for i := range n {
		c := keyed(p.seed, "event", i)
		ev := item{
			at: p.when(c), do: oneOf(c, "queue", "queue", "send", "call", "call"), who: fmt.Sprint("u", 1+c.below(users)),
			space: p.anySpace(c), stream: oneOf(c, streams...), id: fmt.Sprint("e", i+1),
		}
		if c.below(12) == 0 {
			ev.at = p.chaos/3 + time.Duration(i) // many at a time
		}
		if (ev.stream == "big" || ev.stream == "huge") && !p.has("oversize") || ev.stream == "deadly" && !p.has("deadly") {
			ev.stream = "add"
		}
		if ev.stream == "raw" {
			ev.do = "raw"
		}
		ev.payload = p.payload(c, ev.stream)
		if a := keyed(p.seed, "astray", i); p.has("astray") && ev.do != "raw" && a.below(4) == 0 {
			ev.do, ev.lane = "astray", a.below(p.partitions)
		}
		p.add(ev)
		if c.below(6) == 0 && ev.do != "raw" { // the same event again, by any client
			again := ev
			again.at, again.who, again.do = p.when(c), fmt.Sprint("u", 1+c.below(users)), oneOf(c, "send", "call", "await")
			p.add(again)
		}
	}
	for i := range 1 + keyed(p.seed, "watches").below(5) {
		c := keyed(p.seed, "watch", i)
		w := item{
			at: p.when(c), do: "watch", who: fmt.Sprint("u", 1+c.below(users)),
			space: p.anySpace(c), doc: oneOf(c, "n", "double", "double", "level", "abroad", "abroad", "both"),
		}
		if c.below(3) == 0 {
			w.span = p.when(c)
		}
		p.add(w)
	}
	for i := range keyed(p.seed, "gets").below(4) {
		c := keyed(p.seed, "get", i)
		p.add(item{at: p.when(c), do: "get", who: fmt.Sprint("u", 1+c.below(users)), space: p.anySpace(c), doc: "n"})
	}
}

// steps are the steps at which a crash is most interesting.
var steps = []string{"append", "append", "append", "save", "save-position", "load", "read-log", "read-lane", "head", "lane-end", "load-position", "announce", "purge-log", "load-mark"}

func (p *plan) trouble() {
	c := keyed(p.seed, "trouble")
	process := func(c *chance) string {
		return oneOf(c, "w1", "w1", "w2", "w2", "w3", "h1", "c1", "c2")
	}
	times := func(fault string, n int) int {
		if !p.has(fault) {
			return 0
		}
		return keyed(p.seed, "times", fault).below(n + 1)
	}
	_ = c
	back := func(c *chance, who string, at time.Duration) { // it is started again
		if c.below(4) > 0 {
			p.add(item{at: at + c.between(0, time.Second), do: "start", who: who})
		}
	}
	for i := range times("crash", 5) {
		c := keyed(p.seed, "crash", i)
		crash := item{at: p.when(c), do: "crash", who: process(c), label: oneOf(c, steps...), moment: c.below(3)}
		if crash.who[0] == 'c' {
			crash.label = oneOf(c, "send", "send", "save-position", "load-position")
		}
		p.add(crash)
		back(c, crash.who, crash.at)
	}
	for i := range times("kill", 3) {
		c := keyed(p.seed, "kill", i)
		kill := item{at: p.when(c), do: "kill", who: process(c)}
		if c.below(5) == 0 {
			kill.who = fmt.Sprint("u", 1+c.below(users))
		}
		p.add(kill)
		back(c, kill.who, kill.at)
	}
	for i := range times("leave", 2) {
		c := keyed(p.seed, "leave", i)
		leave := item{at: p.when(c), do: "leave", who: process(c)}
		p.add(leave)
		back(c, leave.who, leave.at)
	}
	for i := range times("pause", 3) {
		c := keyed(p.seed, "pause", i)
		p.add(item{at: p.when(c), do: "pause", who: process(c), span: c.about(p.ttl * 2 / 3)})
	}
	for i := range times("cut", 3) {
		c := keyed(p.seed, "cut", i)
		cut := item{at: p.when(c), do: "cut", who: oneOf(c, process(c), fmt.Sprint("u", 1+c.below(users))), span: c.about(p.ttl / 2), a: true, b: true}
		if way := c.below(3); way > 0 {
			cut.a, cut.b = way == 1, way == 2
		}
		p.add(cut)
	}
	for i := range times("full", 2) {
		c := keyed(p.seed, "full", i)
		p.add(item{at: p.when(c), do: oneOf(c, "lanes-full", "store-full"), who: "server", span: c.between(100*time.Millisecond, 1500*time.Millisecond)})
	}
}

// eventKey identifies an event.
type eventKey struct{ space, stream, id string }

func (i item) key() eventKey { return eventKey{i.space, i.stream, i.id} }

func (p *plan) partitionOf(space string) int { return model.PartitionOf(space, p.partitions) }
