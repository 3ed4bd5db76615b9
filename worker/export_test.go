package worker

import (
	"maps"
	"slices"
	"sync/atomic"
)

// Held is what a worker keeps in memory, to see that it does not only grow.
type Held struct {
	Hosts, Asleep, Leases int
	// Inbox is the number of events in the fullest inbox.
	Inbox int
	// Calls is the number of calls in the fullest inbox, Reads that of reads.
	Calls, Reads int
}

// Held counts what the worker keeps.
func (w *Worker) Held() Held {
	var all Held
	for _, p := range w.parts() {
		p.mu.Lock()
		all.Hosts += len(p.hosts)
		all.Asleep += len(p.asleep)
		for _, of := range p.leases { // any order: a sum
			all.Leases += len(of)
		}
		p.mu.Unlock()
		for _, h := range p.all() {
			h.inbox.mu.Lock()
			all.Inbox = max(all.Inbox, len(h.inbox.events))
			all.Calls = max(all.Calls, len(h.inbox.calls))
			all.Reads = max(all.Reads, len(h.inbox.reads))
			h.inbox.mu.Unlock()
		}
	}
	return all
}

func (w *Worker) parts() []*servedPartition {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.partitions))
}

// Mirrors asks every host how many documents of other spaces it mirrors.
func (w *Worker) Mirrors() int {
	var n atomic.Int64
	for _, p := range w.parts() {
		for _, h := range p.all() {
			counted := make(chan struct{})
			h.call(func() { n.Add(int64(len(h.mirrors.all))); close(counted) })
			select {
			case <-counted:
			case <-h.done:
			}
		}
	}
	return int(n.Load())
}

// BeforeLeaving has f called when a space is about to leave memory.
func (c *Config) BeforeLeaving(f func()) { c.beforeLeaving = f }

// Backlog is the bytes of the events that wait for their spaces.
func (w *Worker) Backlog() int64 { return w.counters.backlog.Load() }
