package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/worker"
)

// firstNewer to lastNewer are the seeds whose plans may also have the faults of newerFaults, firstNewest
// to lastNewest those that may also have newestFaults. Those from firstLatest to lastLatest may have everything. The plans and
// stories of older seeds do not change when faults are added.
const (
	firstNewer  = 10_000_000
	lastNewer   = 29_999_999
	firstNewest = 40_000_000
	lastNewest  = 59_999_999
	firstLatest = 80_000_000
	lastLatest  = 99_999_999
)

// newerFaults are faults and actions that only the newer plans have. Each has a file.
var newerFaults = []string{"errors", "consumers", "early", "asleep", "dues", "queries", "letters", "trees", "cancels", "steps"}

// newestFaults are those that were added last.
var newestFaults = []string{"hangs"}

// everyFault returns the faults that a plan may have.
func everyFault() []string {
	return slices.Concat(allFaults, newerFaults, newestFaults, []string{"workflows", "wide"})
}

func (p *plan) isNewer() bool { return p.seed >= firstNewer && p.seed <= lastNewer || p.isNewest() }

func (p *plan) isNewest() bool { return p.seed >= firstNewest && p.seed <= lastNewest || p.hasRuns() }

func (p *plan) isLatest() bool { return p.seed >= firstLatest && p.seed <= lastLatest }

// chooseNewer turns a random part of the newer faults on.
func (p *plan) chooseNewer() {
	if !p.isNewer() {
		return
	}
	faults := newerFaults
	if p.isNewest() {
		faults = slices.Concat(newerFaults, newestFaults)
	}
	for _, f := range faults {
		if keyed(p.seed, "newer", f).below(3) > 0 {
			p.faults = append(p.faults, f)
		}
	}
	p.chooseHangs()
	if p.has("asleep") {
		p.idle = keyed(p.seed, "asleep").between(5*time.Millisecond, 150*time.Millisecond)
	}
}

// addNewer adds the items that the newer faults consist of.
func (p *plan) addNewer() {
	p.runPlan()
	p.early()
	p.asleep()
	p.dues()
	p.hang()
	p.queries()
	p.letters()
	p.listings()
	p.trees()
	p.cancels()
	p.deploySteps()
	p.rebuilds()
	p.deadlines()
}

// anyUser returns a random user.
func anyUser(c *chance) string { return fmt.Sprint("u", 1+c.below(users)) }

// times returns the number of items of a fault, from 1 to n; 0 if it is off.
func (p *plan) times(fault string, n int) int {
	if !p.has(fault) {
		return 0
	}
	return 1 + keyed(p.seed, "times", fault).below(n)
}

// sentEvents returns, once each, the undelayed events that clients send, of streams for which a client
// may wait.
func (p *plan) sentEvents() (list []item) {
	known := map[eventKey]bool{}
	for _, it := range p.items {
		sent := it.do == "queue" || it.do == "send" || it.do == "call" || it.do == "astray"
		if sent && it.due == 0 && it.stream != "huge" && !known[it.key()] {
			known[it.key()] = true
			list = append(list, it)
		}
	}
	return list
}

// consumerMeets decides whether a delivery of a consumer meets a fault.
func (n *wire) consumerMeets(fault string, d membus.Delivery) bool {
	o := &n.w.plan.options
	if d.Seq == 0 || !o.has("consumers") {
		return false
	}
	if healed, _, _ := n.state(d.Op); healed {
		return false
	}
	met := keyed(n.w.plan.seed, "consumer", fault, n.p.name, d.Label, d.Space, d.Key, d.Nth, d.Seq, d.Try).permille(o.wild)
	if met {
		n.w.count("deliveries of consumers: " + fault)
	}
	return met
}

// Doubled reports whether a delivery comes twice.
func (n *wire) Doubled(d membus.Delivery) bool { return n.consumerMeets("doubled", d) }

// checkNewer is checkOp for an operation of the newer kinds, or one that failed with an error of the store; it
// returns false for others.
func (w *world) checkNewer(o *op) bool {
	newer := map[string]func(*op){
		"query": w.checkQuery, "redrive": w.checkLetter, "dismiss": w.checkLetter, "letters": w.checkListed,
		"tree": w.checkTree, "wait-tree": w.checkTree, "cancel": w.checkCancel, "skip": w.checkCancel, "spare": w.checkCancel,
	}[o.do]
	gone := o.p.died > 0 && (o.ended == 0 || o.ended >= o.p.died)
	switch {
	case o.times == 1 && errors.Is(o.err, errStore):
		w.count("clients that got an error of the store")
	case newer == nil:
		return false
	case o.times > 1:
		w.violate("answers", "%s was answered %d times", o, o.times)
	case gone || o.times == 0 && o.isPatient():
	case o.times == 0:
		w.violate("answers", "%s was never answered", o)
	case o.do == "query" && o.err != nil:
		w.count("queries without an answer")
	default:
		newer(o)
	}
	return true
}

// isPatient reports whether an operation waits for an event that may never be sent.
func (o *op) isPatient() bool { return o.do == "await" || o.do == "wait-tree" }

// letterCount returns how many dead letters there are, without the notes about them.
func (w *world) letterCount() (n int) {
	for _, d := range w.server.ReadDead("", 0, 1<<30) {
		if !d.IsNote() {
			n++
		}
	}
	return n
}

// mayStartAgain reports whether the start of a worker has failed because of the store. A worker that cannot ask
// whether its former incarnation lives, or is cut off, waits for an announcement of it, and ends if there is
// one: an announcement may come that late from a consumer that has lost a delivery.
func (w *world) mayStartAgain(err error) bool {
	var taken *worker.TakenError
	return errors.Is(err, errStore) || errors.As(err, &taken) && w.plan.isNewer()
}

// again ends a process that could not start because of the store, and starts it again.
func (w *world) again(p *process, why string) {
	w.count("processes that could not start for an error of the store")
	w.kill(p, why)
	i := item{who: p.who}
	i.at = w.story.now() + keyed(w.plan.seed, "supervisor", p.name).between(100*time.Millisecond, time.Second)
	time.AfterFunc(i.at-w.story.now(), func() { w.restart(i) })
}

// watchAgain continues a watch that the store has ended, as an application does.
func (w *world) watchAgain(p *process, i item, o *watch) {
	w.count("watches that ended with an error of the store")
	w.mu.Lock()
	over := o.over || p.died > 0 || w.over
	o.over = true
	w.mu.Unlock()
	if over {
		return
	}
	w.pass(p.ctx, keyed(w.plan.seed, "watch again", p.name, i.space, i.doc, int(w.story.now())).between(time.Millisecond, 100*time.Millisecond))
	if i.span > 0 {
		i.span = max(i.at+i.span-w.story.now(), time.Millisecond)
		i.at = w.story.now()
	}
	if p.ctx.Err() == nil {
		w.watch(p, i)
	}
}

// seedRanges returns n seeds: those from the flag -first on, or one with workflows for each ten others, of which three fifths
// are older ones, a fifth newer ones and a fifth the newest. Half of those with workflows are the latest.
func seedRanges(n uint64) []seedRange {
	if *firstFlag > 0 {
		return []seedRange{{*firstFlag, n}}
	}
	withRuns := n / 11
	newer := (n - withRuns) / 5
	return []seedRange{{1, n - withRuns - 2*newer}, {firstNewer, newer}, {firstNewest, newer}, {firstWithRuns, withRuns / 2}, {firstLatest, withRuns - withRuns/2}}
}

// parts returns the seeds that TestSeeds runs, for two processes.
func parts() []part {
	var first, second part
	for _, r := range seedRanges(*seedsFlag) {
		half := r.Seeds / 2
		first.Ranges = append(first.Ranges, seedRange{r.First, half})
		second.Ranges = append(second.Ranges, seedRange{r.First + half, r.Seeds - half})
	}
	return []part{first, second}
}

// hasSome reports whether any of the seeds satisfies a condition.
func hasSome(parts []part, are func(*plan) bool) bool {
	return slices.ContainsFunc(parts, func(p part) bool {
		return slices.ContainsFunc(p.all(), func(seed uint64) bool { return are(&plan{seed: seed}) })
	})
}

// sometimesNewer is what must happen in some of the newer seeds of a run.
var sometimesNewer = []string{
	"clients that got an error of the store",
	"dead letters dismissed",
	"dead letters sent again: handled",
	"deliveries of consumers: doubled",
	"deliveries of consumers: dropped",
	"due items of applications while an owner saved",
	"cancelled events: cancelled",
	"cancelled events: expired",
	"cancelled events: failed",
	"cancelled events: handled",
	"positions that came far too early",
	"processes that could not start for an error of the store",
	"queries of spaces that did not exist",
	"programs deployed at a step",
	"queries over refusals",
	"queries that were answered",
	"spaces with a timer that were woken for a task",
	"store errors: announce",
	"store errors: bury",
	"store errors: call-roll",
	"store errors: due",
	"store errors: find-dead",
	"store errors: find-event",
	"store errors: find-events",
	"store errors: follow-lane",
	"store errors: follow-leases",
	"store errors: follow-log",
	"store errors: follow-members",
	"store errors: follow-rolls",
	"store errors: follow-space",
	"store errors: head",
	"store errors: lane-end",
	"store errors: lane-event",
	"store errors: load",
	"store errors: load-item",
	"store errors: load-part",
	"store errors: load-position",
	"store errors: log-spaces",
	"store errors: log-state",
	"store errors: log-tail",
	"store errors: observe",
	"store errors: ping",
	"store errors: purge-lane",
	"store errors: purge-log",
	"store errors: read-lane",
	"store errors: read-log",
	"store errors: save",
	"store errors: save-position",
	"store errors: serve",
	"trees that were read",
	"trees that were waited for",
	"watches that ended with an error of the store",
}

// sometimesNewest is what must happen in some of the newest seeds of a run.
var sometimesNewest = []string{
	"applications whose handler was abandoned",
	"applications whose attachment was given up",
	"code that heeded its context",
	"code that hung when its process died",
	"code that never returned",
	"code that returned after it was given up",
	"code that returned between its limit and being given up",
	"code that took its time, and returned within its limit",
	"code that used its transaction after it was given up",
	"dead letters gone through",
	"events that failed as their handler returned too late",
	"events that failed as their handler was given up",
	"events that waited behind one whose handler was given up",
	"events whose handler was given up: cancelled",
	"events whose handler was given up: expired",
	"events whose handler was given up: failed",
	"events whose handler was given up: handled",
	"evictions while code hangs that was given up",
	"given up: handlers",
	"given up: slow",
	"given up: slow-sink",
	"handlers that read what a node that rests came to last",
	"programs deployed at: append",
	"programs deployed at: head",
	"programs deployed at: load",
	"programs deployed at: read-lane",
	"programs deployed at: read-log",
	"programs deployed at: save",
	"programs deployed at: save-position",
	"programs deployed at: send",
	"store errors: answer-pings",
	"store errors: ask",
	"store errors: load-ahead",
	"store errors: position-stored",
	"store errors: save-ahead",
	"takeovers by another process than that in which code hangs",
	"takeovers by the process in which code hangs",
	"transactions of applications while code hangs in the owner",
}

// many is the number of newest seeds from which on even rare faults must occur.
const many = 10_000

// seldomNewest returns what must occur in that many newest seeds, including each step at which a program
// is deployed.
func seldomNewest() []string {
	list := []string{
		"dead letters that were listed as dismissed",
		"dead letters that were listed as sent again",
		"store errors: get-dead",
		"store errors: list-dead",
		"store errors: load-mark",
		"store errors: purge-state",
		"store errors: read-dead",
	}
	for _, label := range moreDeploySteps {
		if label != seldomDeployStep {
			list = append(list, "programs deployed at: "+label)
		}
	}
	for _, label := range slices.Compact(slices.Clone(deploySteps)) {
		for _, moment := range moments {
			list = append(list, deployedAt(label, moment))
		}
	}
	return list
}
