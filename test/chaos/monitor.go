//go:build unix

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/test/chaos/history"
)

// monitor tails the logs during a run, to report its progress. It checks nothing.
type monitor struct {
	b *bus.Bus

	mu      sync.Mutex
	handled int
	// due is the number of receipts that the log itself requires: of sent events, and of notices.
	due     int
	letters int
	commits int
	heard   time.Time
	problem error
}

// follow follows a partition until ctx ends.
func (m *monitor) follow(ctx context.Context, partition int) {
	after := uint64(0)
	for ctx.Err() == nil {
		err := m.b.FollowLog(ctx, partition, after, func(e model.LogEntry) {
			after = e.Seq
			m.take(e)
		})
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, model.ErrRewound) { // power failures remove counted entries; later ones count again
			var last uint64
			if last, err = m.end(ctx, partition); err == nil {
				after = last
			}
		}
		m.mu.Lock()
		m.problem = err
		m.mu.Unlock()
		_ = pause.For(ctx, time.Second)
	}
}

// end returns the last sequence of the log of a partition.
func (m *monitor) end(ctx context.Context, partition int) (uint64, error) {
	stream, err := m.b.JetStream().Stream(ctx, logName(partition))
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.LastSeq, nil
}

func (m *monitor) take(e model.LogEntry) {
	c, err := model.DecodeCommit(e.Data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.problem = err
		return
	}
	m.commits++
	m.heard = time.Now()
	for i := range c.Txs {
		tx := &c.Txs[i]
		m.due -= len(tx.Cancels)
		if stream, ok := receipts.Stream(tx.By); ok && tx.Receipt != nil && counts(stream, tx.Receipt) {
			m.handled++
			if stream == history.Work {
				m.due++ // the task ends
			}
			if tx.Receipt.Outcome != model.Handled {
				m.letters++
			}
		}
		if history.Ends(tx) {
			continue // counted with the task
		}
		m.due += len(tx.Sends)
		for k := range tx.Sends {
			if tx.Sends[k].Stream == history.Nowhere {
				m.due++
			}
		}
	}
}

// counts reports whether a receipt was due: the end of a task may be reported more than once, and only
// the first report counts.
func counts(stream string, rc *model.Receipt) bool {
	return stream != history.Job || rc.Result.Get("ignored").IsAbsent()
}

// progress returns the current progress.
type progress struct{ handled, due, letters, commits int }

func (m *monitor) now() (progress, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return progress{m.handled, m.due, m.letters, m.commits}, m.problem
}

// silence returns the time since the last entry of the logs.
func (m *monitor) silence() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heard.IsZero() {
		return 0
	}
	return time.Since(m.heard)
}
