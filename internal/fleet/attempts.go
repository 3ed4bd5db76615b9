package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/worker"
)

// logTailer is a bus that reads the end of a partition's log.
type logTailer interface {
	LogTail(ctx context.Context, partition, n int) ([]model.LogEntry, error)
}

// attemptsWithin is how many of the last log entries of a partition are searched for records of attempts.
const attemptsWithin = 128

// endedProcess reports whether a worker may have ended without leaving in a partition: nothing else is a reason
// to read its log.
func (f *Fleet) endedProcess(p *Partition) bool {
	return len(p.Served) == 0 || slices.ContainsFunc(f.Workers, func(m Member) bool {
		return m.State == Gone || slices.Contains(p.Served, m.ID) && f.At.Sub(m.Since) < youngWorker
	})
}

// lostAttempts finds the events at which processes have ended, as the log has recorded their attempts. A worker
// that ends with each attempt is seldom there to be asked. What cannot be read is not known: the figures are for
// people.
func (p *Partition) lostAttempts(ctx context.Context, b Bus) (out []Stuck) {
	bus, can := b.(logTailer)
	if !can {
		return nil
	}
	tail, err := bus.LogTail(ctx, p.Number, attemptsWithin)
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, e := range slices.Backward(tail) { // the last commit of each space says what it is at
		if seen[e.Space] {
			continue
		}
		seen[e.Space] = true
		c, err := model.DecodeCommit(e.Data)
		if err != nil || c.Trying == nil || c.Trying.Back {
			continue
		}
		stream, is := receipts.Stream(c.Trying.By)
		n := c.Trying.Tries
		if !is || n < 2 && len(p.Served) > 0 {
			continue // it is the first attempt that is recorded, and may be under way
		}
		s := Stuck{Worker: p.Owner, Stuck: worker.Stuck{
			Space: e.Space, Partition: p.Number, Stream: stream, Event: c.Trying.Event, Since: e.Stored.UTC(), Cause: worker.CauseLost,
			Why: fmt.Sprintf("attempt %d has begun, and its worker is not here any more", n),
		}}
		switch before := "the one before it"; {
		case n > 2:
			before = fmt.Sprintf("the %d before it", n-1)
			fallthrough
		case n == 2:
			s.Why = fmt.Sprintf("attempt %d has begun, and %s never came back: the process ended, or the handler was given up", n, before)
		}
		if s.Worker == "" {
			s.Worker = "no worker"
		}
		out = append(out, s)
	}
	return out
}
