package sim

// A server that is killed restores from its files what purged markers of deleted documents had replaced.

func (p *plan) reborns() {
	if !p.hasRuns() || p.history == 0 {
		return
	}
	c := keyed(p.seed, "reborns")
	for range c.below(6) {
		p.add(item{at: p.chaos/4 + c.between(0, p.chaos), do: "reborn", who: "store"})
	}
}

// reborn has the server of all partitions be killed, and start again.
func (w *world) reborn() {
	for part := range w.plan.partitions {
		for range w.server.Reborn(part) {
			w.count("documents that a killed server has restored")
		}
	}
}
