package sim

import (
	"slices"
	"time"

	"github.com/settlehq/settle/bus/membus"
)

// Programs change at a step of a worker: when a request of a kind leaves it, has arrived, or is
// answered, another edition is deployed, and that worker hears of it at once.

var (
	deploySteps     = []string{"append", "append", "save", "load", "read-log", "read-lane", "head", "send", "save-position"}
	moreDeploySteps = []string{"load-position", "load-mark", "load-item", "due", "lane-end", "announce", "purge-log", "purge-state", "find-event", "log-tail", "observe", "ask"}
)

func (p *plan) deploySteps() {
	if !p.has("versions") {
		return
	}
	at := deploySteps
	if p.isNewest() {
		at = slices.Concat(deploySteps, moreDeploySteps)
	}
	for i := range p.times("steps", 5) {
		c := keyed(p.seed, "deploy at a step", i)
		p.add(item{
			at: p.when(c), do: "deploy-at", who: oneOf(c, "w1", "w1", "w2", "w3"), lane: c.below(4),
			label: oneOf(c, at...), moment: c.below(3),
		})
	}
}

// deployAt deploys what is armed, if this is the step for it. w.mu is held.
func (w *world) deployAt(p *process, s membus.Step) {
	d := p.deploys
	if d == nil || d.label != s.Label || membus.Moment(d.moment) != s.Moment || w.healed {
		return
	}
	p.deploys = nil
	w.count("programs deployed at a step")
	w.count("programs deployed at: " + s.Label + " " + []string{"leaves", "has arrived", "is answered"}[s.Moment])
	time.AfterFunc(331, func() { // a moment later, see wire.Step
		w.deploy(item{moment: d.lane})
		w.hear(p)
	})
}
