package coordinator

import (
	"sync"

	"github.com/settlehq/settle/port"
)

// progress knows up to where a log is released completely, while releases are
// answered in any order.
type progress struct {
	bus port.Bus // a session: what is known holds as long as that does
	mu  sync.Mutex
	// last is the last sequence read.
	last uint64
	// open counts the releases under way per log sequence.
	open map[uint64]int
}

// newProgress begins after what is known to be released.
func newProgress(bus port.Bus, from uint64) *progress {
	return &progress{bus: bus, last: from, open: map[uint64]int{}}
}

// read notes that everything up to seq has begun at least.
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

// done is the sequence up to which everything is released.
func (p *progress) done() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := p.last
	for seq := range p.open { // any order: only the minimum is kept
		done = min(done, seq-1)
	}
	return done
}
