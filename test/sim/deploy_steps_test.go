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
	at, most := deploySteps, 5
	if p.isNewest() {
		at, most = slices.Concat(deploySteps, moreDeploySteps), 12
	}
	for i := range p.times("steps", most) {
		c := keyed(p.seed, "deploy at a step", i)
		p.add(item{
			at: p.when(c), do: "deploy-at", who: oneOf(c, "w1", "w1", "w2", "w3"), lane: c.below(4),
			label: oneOf(c, at...), moment: c.below(3),
		})
	}
}

// moments name those of a request at which something is done to its process.
var moments = []string{"leaves", "has arrived", "is answered"}

func deployedAt(label, moment string) string {
	return "programs deployed at: " + label + ", when it " + moment
}

// deployAt deploys what is armed, if this is the step for it. w.mu is held.
func (w *world) deployAt(p *process, s membus.Step) {
	k := slices.IndexFunc(p.deploys, func(d *item) bool { return d.label == s.Label && membus.Moment(d.moment) == s.Moment })
	if k < 0 || w.healed {
		return
	}
	d := p.deploys[k]
	p.deploys = slices.Delete(p.deploys, k, k+1)
	w.count("programs deployed at a step")
	w.count("programs deployed at: " + s.Label)
	w.count(deployedAt(s.Label, moments[s.Moment]))
	time.AfterFunc(331, func() { // a moment later, see wire.Step
		w.deploy(item{moment: d.lane})
		w.hear(p)
	})
}
