package host

import "time"

// duels counts, for each space, how often in a row this worker has taken it over and lost it again without having
// handled an event. Two workers that both believe to own a space take it from each other. An owner whose predecessor
// left an attempt waits before it repeats that (ledger, poisonGuard.stagger), and if each life were shorter than the
// wait, no event would ever be handled. So the pauses before a space is taken over again grow, and with them the lives of
// the other owner.
type duels map[string]int

// ended records how a host has ended, and returns how long the space is left to its other owner; 0 for not longer than
// usual.
func (ds duels) ended(h *host, heartbeat time.Duration) time.Duration {
	if !h.deposed.Load() || h.handled.Load() {
		delete(ds, h.space)
		return 0
	}
	ds[h.space]++
	lost := ds[h.space]
	if lost == 1 {
		return 0
	}
	return min(heartbeat<<min(lost-1, 7), longestRefusal)
}
