package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
)

// Programs change at a step of a worker: when a certain request leaves it, arrives, or is answered,
// another edition is deployed, and that worker learns of it at once.

var (
	deploySteps     = []string{"append", "append", "save", "load", "read-log", "read-lane", "head", "send", "save-position"}
	moreDeploySteps = []string{"load-position", "load-mark", "load-item", "due", "lane-end", "announce", "purge-log", "purge-state", "find-event", "log-tail", "observe", "ask"}
)

// seldomDeployStep is a step that need not occur: a worker requests an event only to report a stuck
// space.
const seldomDeployStep = "find-event"

func (p *plan) deploySteps() {
	if !p.has("versions") {
		return
	}
	at, most := p.stepsOfDeploys(), 5
	if p.isNewest() {
		most = 12
	}
	for i := range p.times("steps", most) {
		c := keyed(p.seed, "deploy at a step", i)
		p.add(item{
			at: p.when(c), do: "deploy-at", who: oneOf(c, "w1", "w1", "w2", "w3"), lane: c.below(4),
			label: oneOf(c, at...), moment: c.below(3),
		})
	}
}

// stepsOfDeploys returns the labels of the requests at which a program may be deployed.
func (p *plan) stepsOfDeploys() []string {
	if p.isNewest() {
		return slices.Concat(deploySteps, moreDeploySteps)
	}
	return deploySteps
}

// moments are the names of the moments of a request at which a process can crash or receive a
// deployment.
var moments = []string{"leaves", "has arrived", "is answered"}

func deployedAt(label, moment string) string {
	return "programs deployed at: " + label + ", when it " + moment
}

// deployAt makes the armed deployment, if this is its step. w.mu is held.
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

// TestDeploySteps_AreAllThatProcessesCrashAt: the newest plans deploy at every step at which they let a
// worker crash. Older plans deploy at fewer steps, so that their stories do not change. Coordinators are
// not affected, since they run no program.
func TestDeploySteps_AreAllThatProcessesCrashAt(t *testing.T) {
	if none := (&plan{seed: firstNewer}).stepsOfDeploys(); slices.Contains(none, "load-position") {
		t.Errorf("an older plan deploys at %v", none)
	}
	newest := (&plan{seed: firstNewest}).stepsOfDeploys()
	for _, label := range steps {
		if !slices.Contains(newest, label) {
			t.Errorf("no program is deployed at %s", label)
		}
	}
	expected := slices.Concat(sometimesNewest, seldomNewest())
	for _, label := range newest {
		if what := "programs deployed at: " + label; label != seldomDeployStep && !slices.Contains(expected, what) {
			t.Errorf("no run has to have %s", what)
		}
	}
}
