package sim

// A server that is killed restores from its files what purged markers of deleted documents had replaced.

func (p *plan) rebuilds() {
	if !p.hasRuns() || p.history == 0 {
		return
	}
	c := keyed(p.seed, "rebuilds")
	for range c.below(6) {
		p.add(item{at: p.chaos/4 + c.between(0, p.chaos), do: "rebuild", who: "store"})
	}
}

// rebuild has the server of all partitions be killed, and start again.
func (w *world) rebuild() {
	for part := range w.plan.partitions {
		for range w.server.RebuildState(part) {
			w.count("documents that a killed server has restored")
		}
	}
}
