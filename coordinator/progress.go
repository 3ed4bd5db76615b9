package coordinator

import (
	"sync"

	"github.com/settlehq/settle/port"
)

// progress tracks up to which sequence a log is completely released, while releases are answered in any
// order.
type progress struct {
	bus     port.Bus // a session: the progress is valid as long as it is
	renewal uint64   // of laneEnds, likewise
	mu      sync.Mutex
	// last is the last sequence read.
	last uint64
	// open counts the releases in flight per log sequence.
	open map[uint64]int
}

// newProgress returns a progress that starts at a released position.
func newProgress(bus port.Bus, from uint64) *progress {
	return &progress{bus: bus, last: from, open: map[uint64]int{}}
}

// read records that all releases up to seq have been started.
func (p *progress) read(seq uint64) {
	p.mu.Lock()
	p.last = max(p.last, seq)
	p.mu.Unlock()
}

func (p *progress) begin(seq uint64) {
	p.mu.Lock()
	p.open[seq]++
	p.mu.Unlock()
}

func (p *progress) end(seq uint64) {
	p.mu.Lock()
	if p.open[seq]--; p.open[seq] <= 0 {
		delete(p.open, seq)
	}
	p.mu.Unlock()
}

// done returns the sequence up to which everything is released.
func (p *progress) done() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := p.last
	for seq := range p.open { // any order: only the minimum is kept
		done = min(done, seq-1)
	}
	return done
}
