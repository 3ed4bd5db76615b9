package worker

import (
	"cmp"
	"slices"
)

// Stats is what a worker has in memory and has done, as of now.
type Stats struct {
	// Awake spaces are in memory, or being loaded; Loading of them are the latter, Resting
	// have nothing to do and may leave.
	Awake, Loading, Resting int
	// Waiting spaces are to be loaded when it is their turn.
	Waiting int
	// Abandoned goroutines are in code of the application that was given up and has not returned.
	Abandoned  int
	Partitions []PartitionStats
}

// PartitionStats is the part of a partition in Stats.
type PartitionStats struct {
	Partition int
	// Awake spaces are in memory or being loaded, Dormant ones are known to have events
	// and are not: they wait for their turn, or have no program. Of all other spaces the
	// worker knows nothing.
	Awake, Dormant int
	// Observed spaces have somebody who observes them.
	Observed int
	// Events were read from the lane and are not handled yet.
	Events int
	// Read is the lane sequence up to which events were read, Saved the one up to which
	// they were handled and saved, as it was noted last: the next owner begins there.
	Read, Saved uint64
	// Activations and Evictions are how often a space was loaded, and has left memory for
	// want of anything to do, since the partition joined.
	Activations, Evictions uint64
}

// Awake is the number of spaces that are in memory or being loaded.
func (w *Worker) Awake() int {
	w.awake.mu.Lock()
	defer w.awake.mu.Unlock()
	return w.awake.hosts
}

// Stats says what the worker has in memory, by partition. It costs a look at each space
// that is awake.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	parts := make([]*partition, 0, len(w.partitions)+len(w.leaving))
	for _, p := range w.partitions { // any order: sorted below
		parts = append(parts, p)
	}
	w.mu.Unlock()
	s := w.awake.stats()
	s.Abandoned = w.counters.abandoned.Now()
	for _, p := range parts {
		s.Partitions = append(s.Partitions, p.stats())
	}
	slices.SortFunc(s.Partitions, func(a, b PartitionStats) int { return cmp.Compare(a.Partition, b.Partition) })
	return s
}

func (a *awake) stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Stats{Awake: a.hosts, Loading: a.loading, Resting: a.resting.Len(), Waiting: len(a.queue)}
}

func (p *partition) stats() PartitionStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PartitionStats{
		Partition: p.number, Awake: len(p.hosts), Dormant: len(p.asleep), Observed: len(p.leases),
		Read: p.read, Saved: p.saved, Activations: p.activations, Evictions: p.evictions,
	}
	for _, h := range p.hosts { // any order: a sum
		s.Events += h.eventsWaiting()
	}
	return s
}

// eventsWaiting is the number of events that wait for the loop, or in the core.
func (h *host) eventsWaiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.inbox.events) + h.inCore
}
