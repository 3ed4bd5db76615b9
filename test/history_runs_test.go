package test

import (
	"testing"

	"github.com/settlehq/settle"
)

const historySeed = 1

// Clients send, resend, call, wait, look up and read concurrently, and some of them crash.
func TestHistory_ConcurrentClients_SeeOneLaneAndOneReceiptPerEvent(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		base.Programs, base.Workers = settle.Always(tally()), 2
		newRush(t, deploy(t, base), historySeed).run(6, 50)
	})
}

// The same while workers die and others take over.
func TestHistory_WorkersThatDie_AreNotSeen(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		base.Programs, base.Workers = settle.Always(tally()), 2
		r := newRush(t, deploy(t, base), historySeed)
		r.disturb = r.killWorkers
		r.run(6, 50)
	})
}

// The same while the streams get other leaders, and workers die.
func TestHistory_LeadersThatStepDown_CostNoEventAndNoOrder(t *testing.T) {
	t.Parallel()
	base := onCluster(t)
	base.Programs, base.Workers = settle.Always(tally()), 2
	r := newRush(t, deploy(t, base), historySeed)
	r.past, r.disturb = true, r.deposeLeaders
	r.run(6, 50)
}

// The same with three runtimes in each space, all of which handle its events, and some of which die.
func TestHistory_RuntimesThatShareASpace_AreNotSeen(t *testing.T) {
	t.Parallel()
	onBothServers(t, func(t *testing.T, base settle.Config) {
		base.Programs, base.Workers = settle.Always(tally()), 2
		r := newRush(t, deploy(t, base), historySeed)
		for _, space := range r.spaces {
			stays, dies := r.attach("stays", space), r.attach("dies", space)
			t.Cleanup(func() { stop(t, stays.Close) })
			t.Cleanup(dies.Kill)
			r.mortal = append(r.mortal, dies)
		}
		r.disturb = func(n int64) {
			r.killWorkers(n)
			if n := int(n); n <= len(r.mortal) {
				r.mortal[n-1].Kill()
			}
		}
		r.run(6, 50)
	})
}
