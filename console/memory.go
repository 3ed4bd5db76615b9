package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/status"
)

const (
	// sampling is the time between two samples, and remembered their number: an hour.
	sampling   = 12 * time.Second
	remembered = 300
	// unvisited is how long samples are taken after the last visit, unless Config.Remember is set.
	unvisited = time.Hour
	// latencySamples bounds the events whose latency a sample has, and tail how many commits of a partition are looked at.
	latencySamples, tail = 40, 8
)

// sample is what a console remembers of one moment.
type sample struct {
	At time.Time
	// Events, Failed and Commits are per second, since the sample before. Known is not set for the first one, and after a worker has started anew.
	Events, Failed, Commits float64
	Known                   bool
	// Waits are the times from the storage of an event to that of the commit with its receipt, of some events, sorted.
	Waits []time.Duration
	// Lag is the number of events that are not known to be handled.
	Lag uint64
}

// memory has the samples of the last hour.
type memory struct {
	c *Console

	mu      sync.Mutex
	running bool
	visit   time.Time
	all     []sample
	counts  map[string]counts // by worker
	seen    map[int]uint64    // by partition: the newest commit that was looked at
	next    int               // the partition whose tail is looked at first
}

// counts are the figures of a worker that only grow.
type counts struct {
	life                     string
	receipts, failed, commit uint64
	at                       time.Time
}

func newMemory(c *Console) *memory {
	return &memory{c: c, counts: map[string]counts{}, seen: map[int]uint64{}}
}

// begin takes samples until the console ends or, without Config.Remember, is no longer visited.
func (m *memory) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		return
	}
	m.running = true
	m.c.tasks.Go(func() { // ends with the console
		for m.wanted() && m.c.ctx.Err() == nil {
			within, cancel := context.WithTimeout(m.c.ctx, readPatience)
			if f, err := m.c.shared.Fleet(within, time.Second); err == nil {
				m.take(within, f)
			}
			cancel()
			if pause.For(m.c.ctx, sampling) != nil {
				return
			}
		}
	})
}

// wanted reports whether samples are to be taken, and notes if not.
func (m *memory) wanted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = m.c.cfg.Remember || time.Since(m.visit) < unvisited
	return m.running
}

// visited notes a visit.
func (m *memory) visited() {
	m.mu.Lock()
	m.visit = time.Now()
	m.mu.Unlock()
	m.begin()
}

// take adds a sample.
func (m *memory) take(ctx context.Context, f *fleet.Fleet) {
	s := sample{At: f.At}
	for i := range f.Partitions {
		s.Lag += f.Partitions[i].Events
	}
	s.Waits = m.waits(ctx, len(f.Partitions))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range f.Workers {
		if fig := f.Workers[i].Figures; fig != nil {
			m.add(&s, fig, f.At)
		}
	}
	if m.all = append(m.all, s); len(m.all) > remembered {
		m.all = slices.Delete(m.all, 0, len(m.all)-remembered)
	}
}

// add adds what a worker has done since its last figures.
func (m *memory) add(s *sample, f *status.Figures, at time.Time) {
	now := counts{f.Life, f.Receipts, f.Failed, f.Commits, at}
	was, known := m.counts[f.Worker]
	m.counts[f.Worker] = now
	if !known || was.life != now.life || !now.at.After(was.at) || now.receipts < was.receipts {
		return
	}
	per := now.at.Sub(was.at).Seconds()
	s.Known = true
	s.Events += float64(now.receipts-was.receipts) / per
	s.Failed += float64(now.failed-was.failed) / per
	s.Commits += float64(now.commit-was.commit) / per
}

// waits measures some of the newest events: from the storage of each in its lane to that of the commit with its receipt, by the server's clock.
func (m *memory) waits(ctx context.Context, partitions int) (out []time.Duration) {
	m.mu.Lock()
	first := m.next
	m.next++
	m.mu.Unlock()
	for i := range partitions {
		p := (first + i) % partitions
		if len(out) >= latencySamples || i >= 16 {
			break
		}
		entries, err := m.c.cfg.Bus.LogTail(ctx, p, tail)
		if err != nil {
			continue
		}
		for _, e := range entries {
			m.mu.Lock()
			old := e.Seq <= m.seen[p]
			m.seen[p] = max(m.seen[p], e.Seq)
			m.mu.Unlock()
			c, err := e.Commit()
			if old || err != nil || time.Since(e.Stored) > 2*sampling {
				continue
			}
			for k := range c.Txs {
				rc := c.Txs[k].Receipt
				if rc == nil || rc.Lane == 0 || rc.Slot != 0 || len(out) >= latencySamples {
					continue
				}
				if msg, there, err := m.c.cfg.Bus.LaneEvent(ctx, p, rc.Lane); err == nil && there && !msg.Stored.IsZero() && !e.Stored.Before(msg.Stored) {
					out = append(out, e.Stored.Sub(msg.Stored))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// samples returns those of the last hour, oldest first.
func (m *memory) samples() []sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// quantile returns a quantile of sorted durations, 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
