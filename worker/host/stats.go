package host

import (
	"cmp"
	"slices"
)

// Stats describes the present memory and the work of a worker.
type Stats struct {
	// Awake spaces are in memory, or being loaded; Loading of them are being loaded, Resting
	// have no work and may leave.
	Awake, Loading, Resting int
	// Waiting spaces wait for their turn to be loaded.
	Waiting int
	// Abandoned counts goroutines in application code that was given up and has not returned.
	Abandoned  int
	Partitions []PartitionStats
}

// PartitionStats are the statistics of one partition.
type PartitionStats struct {
	Partition int
	// Awake spaces are in memory or being loaded. Dormant ones are not, and are known to have
	// events: they wait for their turn, or have no program. The worker has no state of any
	// other space.
	Awake, Dormant int
	// Observed spaces have an observer.
	Observed int
	// Events were read from the lane and are not handled yet.
	Events int
	// Read is the lane sequence up to which events were read, Saved the last saved sequence up to which
	// they were handled and saved: the next owner begins there.
	Read, Saved uint64
	// Activations and Evictions count how often a space was loaded and evicted since the partition joined.
	Activations, Evictions uint64
}

// Awake returns the number of spaces that are in memory or being loaded.
func (w *Worker) Awake() int {
	hosts, _, _, _ := w.residency.counts()
	return hosts
}

// Stats returns the worker's statistics, by partition. Its cost grows with the number of
// loaded spaces.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	parts := make([]*servedPartition, 0, len(w.partitions)+len(w.leaving))
	for _, p := range w.partitions { // any order: sorted below
		parts = append(parts, p)
	}
	w.mu.Unlock()
	var s Stats
	s.Awake, s.Loading, s.Resting, s.Waiting = w.residency.counts()
	s.Abandoned = w.counters.abandoned.Now()
	for _, p := range parts {
		s.Partitions = append(s.Partitions, p.stats())
	}
	slices.SortFunc(s.Partitions, func(a, b PartitionStats) int { return cmp.Compare(a.Partition, b.Partition) })
	return s
}

func (p *servedPartition) stats() PartitionStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PartitionStats{
		Partition: p.number, Awake: len(p.hosts), Dormant: len(p.asleep), Observed: len(p.leases.of),
		Read: p.read, Saved: p.saved, Activations: p.tenure.activations, Evictions: p.tenure.evictions,
	}
	for _, h := range p.hosts { // any order: a sum
		s.Events += h.inbox.waiting()
	}
	return s
}

// Counts returns the counters.
func (w *Worker) Counts() Counts {
	return w.counters.read()
}
