package demo

import (
	"context"
	"sync"
	"time"

	"github.com/settlehq/settle/examples/flights"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// logs tracks the progress of a run by following the logs, without asking workers.
type logs struct {
	mu sync.Mutex
	// open holds the parts of each flight without a receipt.
	open map[string]part
	// handled counts departures and arrivals with a receipt.
	handled   int
	total     int
	commits   int
	takeovers int
	owners    map[string]string // the last worker that took over each space
	lastEntry time.Time         // the last entry
	marks     []mark
	changed   chan struct{} // signals a change
}

// part is a set of parts of a flight: departure and arrival.
type part uint8

const (
	departs part = 1 << iota
	arrives
)

// mark is a number of handled events that a caller waits for.
type mark struct {
	at      int
	reached chan struct{}
}

func newLogs(input []flights.Flight, now time.Time) *logs {
	l := &logs{
		open: make(map[string]part, len(input)), total: 2 * len(input),
		owners: map[string]string{}, lastEntry: now, changed: make(chan struct{}, 1),
	}
	for i := range input {
		l.open[input[i].ID] = departs | arrives
	}
	return l
}

// follower is the part of a bus that logs needs.
type follower interface {
	FollowLog(ctx context.Context, partition int, after uint64, deliver func(model.LogEntry)) error
}

// follow reads the log of a partition until ctx ends.
func (l *logs) follow(ctx context.Context, bus follower, partition int) error {
	var broken error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := bus.FollowLog(ctx, partition, 0, func(e model.LogEntry) {
		if err := l.take(e, time.Now()); err != nil {
			broken = err
			cancel()
		}
	})
	if broken != nil {
		return broken
	}
	return err
}

func (l *logs) take(e model.LogEntry, now time.Time) error {
	c, err := model.DecodeCommit(e.Data)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits++
	l.lastEntry = now
	if c.Takeover {
		if _, owned := l.owners[c.Space]; owned {
			l.takeovers++
		}
		l.owners[c.Space] = c.Runtime
	}
	for i := range c.Txs {
		l.count(&c.Txs[i])
	}
	for len(l.marks) > 0 && l.handled >= l.marks[0].at {
		close(l.marks[0].reached)
		l.marks = l.marks[1:]
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return nil
}

// count processes a transaction. Receipts with other outcomes than handled count, too, so that the
// run does not wait for them; the audit reports them.
func (l *logs) count(tx *model.Tx) {
	stream, ok := receipts.Stream(tx.By)
	if !ok || tx.Receipt == nil {
		return
	}
	var p part
	flight := tx.Receipt.Event
	switch stream {
	case flights.StreamDeparture:
		p = departs
	case flights.StreamArrival:
		p = arrives
		flight, _ = tx.Receipt.Result.Get("flight").AsString()
	}
	if l.open[flight]&p == 0 {
		return
	}
	l.handled++
	if l.open[flight] &^= p; l.open[flight] == 0 {
		delete(l.open, flight)
	}
}

// at returns a channel that is closed when n events are handled. Marks must be requested in rising
// order.
func (l *logs) at(n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := mark{n, make(chan struct{})}
	if l.handled >= n {
		close(m.reached)
	} else {
		l.marks = append(l.marks, m)
	}
	return m.reached
}

// done reports whether every departure and arrival has a receipt.
func (l *logs) done() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handled == l.total
}

// quietFor returns how long nothing has entered the logs.
func (l *logs) quietFor(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.lastEntry)
}

// owner returns the last worker that took over a space, "" if none has.
func (l *logs) owner(space string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owners[space]
}

func (l *logs) snapshot(s *Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Handled, s.Commits, s.Takeovers = l.handled, l.commits, l.takeovers
	for i := range s.Airports {
		s.Airports[i].Owner = l.owners[s.Airports[i].Code]
	}
}
