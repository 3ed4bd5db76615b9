package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// With the fault "versions", programs have editions, which are deployed one after the other and sometimes
// again: each worker learns of that at another time, so for a while there are several. Their handlers have
// different results, and some exist in odd editions only. One computation has different results, and another
// exists in odd editions only: in even ones a handler writes the document.
//
// Derived values are the same in all editions where applications are attached, or a worker is a hermit. An
// application keeps its first edition, and two runtimes with different derivations of one document would
// overwrite each other without end. A hermit that takes a space over and dies leaves its edition's derived
// values: the owner has nothing to append, so it learns of that with the next event, and not within the bound
// on rest (docs/adr/0026).

// edited is a transaction of a program of an edition.
type edited struct {
	*space.Tx
	k int
}

func (e edited) Edition() int { return e.k }

func (o *oracle) Edition() int { return o.edition }

// deployments adds the items that change the edition, and events whose handlers depend on it.
func (p *plan) deployments() {
	if !p.has("versions") {
		return
	}
	user := func(c *chance) string { return fmt.Sprint("u", 1+c.below(users)) }
	for i := range 1 + keyed(p.seed, "times", "versions").below(6) {
		c := keyed(p.seed, "deploy", i)
		p.add(item{at: p.when(c), do: "deploy", who: "registry", moment: c.below(4)})
	}
	for i := range 4 + keyed(p.seed, "times", "editions").below(8) {
		c := keyed(p.seed, "edition", i)
		p.add(item{
			at: p.when(c), do: oneOf(c, "queue", "send", "call"), who: user(c), space: p.anySpace(c),
			stream: oneOf(c, "edition", "edition", "odd"), id: fmt.Sprint("k", i+1),
		})
	}
	for i := range 1 + keyed(p.seed, "times", "editions watched").below(3) {
		c := keyed(p.seed, "edition watched", i)
		p.add(item{at: p.when(c), do: "watch", who: user(c), space: p.anySpace(c), doc: oneOf(c, "extra", "level", "double")})
	}
}

// derives reports whether editions differ in their derived values.
func (p *plan) derives() bool { return p.has("versions") && !p.has("attached") }

func isOdd(edition int) bool { return edition%2 == 1 }

// version returns the name of an edition in the log.
func (p *plan) version(edition int) string {
	if !p.has("versions") {
		return ""
	}
	return "v" + strconv.Itoa(edition)
}

// nodeVersion is that of a computation: the same if the code is.
func (p *plan) nodeVersion(doc string, edition int) string {
	switch {
	case !p.has("versions"):
		return ""
	case p.derives() && (doc == "level" || doc == "extra"):
		return p.version(edition)
	}
	return "same"
}

// derived lists the computations of an edition, in an order in which each comes after what it
// reads.
func (p *plan) derived(edition int) []string {
	list := slices.Clone(derived)
	if p.derives() && isOdd(edition) {
		list = append([]string{"extra"}, list...)
	}
	if p.has("tasks") {
		list = append(list, "price")
	}
	if p.forgets() {
		list = append(list, copied)
	}
	return list
}

// computation returns the function that derives a document in an edition, nil if there is none.
func (p *plan) computation(doc string, edition int) func(v view) model.Value {
	switch {
	case p.derives() && doc == "level":
		return func(v view) model.Value {
			if level, ok := computations[doc](v).AsInt(); ok {
				return model.Int(level + 1000*int64(v.Edition()))
			}
			return computations[doc](v)
		}
	case doc == "extra" && p.derives() && isOdd(edition):
		return func(v view) model.Value {
			n, _ := v.Get("n").AsInt()
			return model.Int(n + int64(v.Edition()))
		}
	}
	return computations[doc]
}

// handler returns the handler of a stream in an edition, nil if there is none.
func (p *plan) handler(stream string, edition int) func(v view, ev *model.Event) (model.Value, error) {
	switch {
	case stream == "edition":
		return func(v view, _ *model.Event) (model.Value, error) {
			v.Set("edition", v.Edition())
			if p.derives() && !isOdd(v.Edition()) {
				v.Set("extra", -v.Edition())
			}
			return count(v, 1), nil
		}
	case stream == "odd" && isOdd(edition):
		return func(v view, _ *model.Event) (model.Value, error) { return count(v, 1), nil }
	case ofTasks[stream] != nil && p.has("tasks"):
		return ofTasks[stream]
	case onTime[stream] != nil:
		return onTime[stream]
	case ofForgotten[stream] != nil && p.forgets():
		return ofForgotten[stream]
	case ofEarly[stream] != nil && p.has("early"):
		return ofEarly[stream]
	case ofAsleep[stream] != nil && p.has("asleep") && p.has("tasks"):
		return ofAsleep[stream]
	case ofDeadlines[stream] != nil && p.isLatest() && p.has("tasks"):
		return ofDeadlines[stream]
	case ofHangs[stream] != nil && p.has("hangs"):
		return ofHangs[stream]
	}
	return handlers[stream]
}

// deploy announces an edition to the workers, which learn of it at different times.
func (w *world) deploy(i item) {
	w.mu.Lock()
	w.edition = i.moment
	w.mu.Unlock()
	for _, p := range w.alive() {
		w.hearSoon(p)
	}
}

func (w *world) hearSoon(p *process) {
	w.mu.Lock()
	is := p.worker != nil
	w.mu.Unlock()
	if is {
		at := w.story.now()
		time.AfterFunc(keyed(w.plan.seed, "hears", p.name, int(at)).between(1, 400*time.Millisecond), func() { w.hear(p) })
	}
}

// hear makes a worker check for deployments.
func (w *world) hear(p *process) {
	w.mu.Lock()
	now := w.edition
	news := p.worker != nil && p.up && !w.over && p.edition != now
	p.edition = now
	w.mu.Unlock()
	if news {
		w.story.note(p.name, "hears of edition %d", now)
		w.count("workers that heard of another version")
		p.worker.Refresh()
	}
}

// beginsWith returns the edition that a worker knows when it starts, which may be an older one.
func (w *world) beginsWith(p *process) {
	w.mu.Lock()
	p.edition = w.edition
	late := w.plan.has("versions") && !w.healed && keyed(w.plan.seed, "begins", p.name).below(3) == 0
	if late {
		p.edition = keyed(w.plan.seed, "begins with", p.name).below(4)
	}
	w.mu.Unlock()
	if late {
		w.hearSoon(p)
	}
}

func (w *world) editionOf(p *process) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return p.edition
}

// orphaned reports whether an edition has no program for a space: its events wait until another has.
func (w *world) orphaned(of string, edition int) bool {
	w.mu.Lock()
	healed := w.healed
	w.mu.Unlock()
	if healed || !w.plan.has("versions") || keyed(w.plan.seed, "orphans").below(2) == 0 || keyed(w.plan.seed, "orphan", of, edition).below(3) > 0 {
		return false
	}
	w.count("programs that were missing")
	return true
}

// editions are the editions of the runtimes of a space, according to its log.
type editions map[string]int

// take records the program that a commit names, and returns its edition.
func (e editions) take(f *fold, c *model.Commit) int {
	epoch := c.Epoch
	if c.Takeover || c.Join {
		epoch = f.seq
	}
	key := c.Runtime + " " + strconv.FormatUint(epoch, 10)
	if c.Program != "" {
		k, err := strconv.Atoi(c.Program[1:])
		if err != nil {
			f.wrong("versions", "a commit is of version %s", c.Program)
		}
		if !c.Takeover && !c.Join {
			f.w.count("changes of program in the log")
		}
		e[key] = k
	}
	if _, known := e[key]; !known && f.w.plan.has("versions") && !isCanceller(c.Runtime) {
		f.wrong("versions", "no commit of %s says of which version it is", key)
	}
	return e[key]
}

// upgrade deploys one more edition when everything is at rest, and waits for rest again: nodes with the
// same code and the same inputs must not run.
func (w *world) upgrade() (rest bool) {
	if !w.plan.has("versions") {
		return true
	}
	w.until(w.story.now() + model.LeaseTTL) // until all leases have arrived
	w.story.note("PLAN", "one more edition")
	before := w.standing()
	w.mu.Lock()
	w.edition++
	w.mu.Unlock()
	for _, p := range w.alive() {
		w.hear(p)
	}
	if !w.rest() {
		return false
	}
	w.checkUpgrade(before)
	return true
}

// standing is a snapshot of the run counts and of the logs.
type standing struct {
	runs    map[*process]map[worker.RunKey]uint64
	refused map[*process]uint64
	epochs  map[string]uint64
	changes map[string]int // of n, from and x
	doubles int
}

func (w *world) standing() standing {
	s := standing{
		runs: map[*process]map[worker.RunKey]uint64{}, refused: map[*process]uint64{},
		epochs: map[string]uint64{}, changes: map[string]int{},
	}
	for _, p := range w.alive() {
		if p.worker != nil {
			s.runs[p], s.refused[p] = p.worker.Runs(), p.worker.Counts().Refused
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.folds { // any order: each on its own
		s.epochs[f.space] = f.epoch
		for _, doc := range []string{"n", "from", "x", "edition"} {
			s.changes[f.space] += len(f.history[doc])
		}
		s.doubles += len(f.history["double"])
	}
	return s
}

func (w *world) checkUpgrade(before standing) {
	after := w.standing()
	for p, runs := range after.runs { // any order: each on its own
		for k, n := range runs { // any order: each on its own
			ran := n - before.runs[p][k]
			if ran == 0 || before.runs[p][k] == 0 || before.epochs[k.Space] != after.epochs[k.Space] || before.changes[k.Space] != after.changes[k.Space] || before.refused[p] != after.refused[p] {
				continue
			}
			w.count("runs for the sake of a version")
			if w.rested[space.Ref{Space: k.Space, Doc: k.Node}] {
				continue // it may run again at any time
			}
			same := k.Node == "double" || k.Node == "dormant" || k.Node == "abroad" && before.doubles == after.doubles || !w.plan.derives()
			if most := uint64(1); same || k.Node != "both" && ran > most {
				w.violate("reruns", "%s of space %s ran %d times because of a version of the program that changes nothing for it", k.Node, k.Space, ran)
			}
		}
	}
}
