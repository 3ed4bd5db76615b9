package coordinator

import (
	"sync"
	"time"

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
	// open has the releases in flight per log sequence.
	open map[uint64]releases
}

// releases are those of one commit that are in flight, and when the first of them began.
type releases struct {
	n     int
	since time.Time
}

// newProgress returns a progress that starts at a released position.
func newProgress(bus port.Bus, from uint64) *progress {
	return &progress{bus: bus, last: from, open: map[uint64]releases{}}
}

// read records that all releases up to seq have been started.
func (p *progress) read(seq uint64) {
	p.mu.Lock()
	p.last = max(p.last, seq)
	p.mu.Unlock()
}

func (p *progress) begin(seq uint64) {
	p.mu.Lock()
	r := p.open[seq]
	if r.n++; r.n == 1 {
		r.since = time.Now()
	}
	p.open[seq] = r
	p.mu.Unlock()
}

func (p *progress) end(seq uint64) {
	p.mu.Lock()
	r := p.open[seq]
	if r.n--; r.n <= 0 {
		delete(p.open, seq)
	} else {
		p.open[seq] = r
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

// unreleased returns the number of commits that were read and are not completely released, and when the oldest release
// in flight began, the zero time if there is none.
func (p *progress) unreleased() (commits int, oldest time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.open { // any order: only the minimum is kept
		if oldest.IsZero() || r.since.Before(oldest) {
			oldest = r.since
		}
	}
	return len(p.open), oldest
}
