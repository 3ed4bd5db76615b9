package host

import (
	"maps"
	"slices"
	"sync/atomic"
)

// Held is what a worker keeps in memory.
type Held struct {
	Hosts, Asleep, Leases int
	// Inbox is the number of events in the fullest inbox, and Calls and Reads the largest numbers of calls
	// and reads.
	Inbox, Calls, Reads int
	// Backlog is the size in bytes of the events that wait for their spaces.
	Backlog int64
}

// Held counts what the worker keeps.
func (w *Worker) Held() Held {
	all := Held{Backlog: w.counters.backlog.Load()}
	for _, p := range w.parts() {
		p.mu.Lock()
		all.Hosts += len(p.hosts)
		all.Asleep += len(p.asleep)
		all.Leases += p.leases.n
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

// Mirrors asks every host how many documents of other spaces it mirrors.
func (w *Worker) Mirrors() int {
	var n atomic.Int64
	for _, p := range w.parts() {
		for _, h := range p.all() {
			counted := make(chan struct{})
			h.call(func() {
				if h.graph != nil {
					n.Add(int64(len(h.graph.mirrors.all)))
				}
				close(counted)
			})
			select {
			case <-counted:
			case <-h.done:
			}
		}
	}
	return int(n.Load())
}

func (w *Worker) parts() []*servedPartition {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.partitions))
}
