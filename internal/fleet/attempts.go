package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
	"github.com/settlehq/settle/status"
)

// attemptsWithin is how many of the last log entries of a partition are searched for records of attempts.
const attemptsWithin = 128

// endedProcess reports whether a worker of the partition may have ended without leaving: there is no other reason
// to read its log.
func (f *Fleet) endedProcess(p *Partition) bool {
	return len(p.Served) == 0 || slices.ContainsFunc(f.Workers, func(m Member) bool {
		return m.State == Gone || slices.Contains(p.Served, m.ID) && f.At.Sub(m.Since) < youngWorker
	})
}

// lostAttempt is the last recorded attempt in a space.
type lostAttempt struct {
	*model.Trying
	stored time.Time
}

// lostAttempts returns the events at which processes have ended, from the attempts recorded in the log. A worker
// that ends with each attempt is seldom running to be queried. A log that cannot be read yields none: the figures are for
// people.
func (p *Partition) lostAttempts(ctx context.Context, b Bus) (out []Stuck) {
	tail, err := b.LogTail(ctx, p.Number, attemptsWithin)
	if err != nil {
		return nil
	}
	last := map[string]lostAttempt{}
	for i := range tail {
		space := tail[i].Space
		c, err := model.DecodeCommit(tail[i].Data)
		if err != nil {
			continue // of a newer version
		}
		if c.Trying != nil {
			last[space] = lostAttempt{c.Trying, tail[i].Stored}
		}
		for k := range c.Txs {
			if t, tx := last[space].Trying, &c.Txs[k]; t != nil && tx.Receipt != nil && tx.Receipt.Event == t.Event && tx.By == t.By {
				delete(last, space)
			}
		}
	}
	for space, t := range last { // any order: the caller sorts them
		if t.Back {
			continue
		}
		stream, is := receipts.Stream(t.By)
		n := t.Tries
		if !is || n < 2 && len(p.Served) > 0 {
			continue // it is the first attempt that is recorded, and may be under way
		}
		s := Stuck{Worker: p.Owner, Stuck: status.Stuck{
			Space: space, Partition: p.Number, Stream: stream, Event: t.Event, Since: t.stored.UTC(), Cause: status.CauseLost,
			Reason: fmt.Sprintf("attempt %d has begun, and its worker does not run any more", n),
		}}
		before := "the one before it"
		if n > 2 {
			before = fmt.Sprintf("the %d before it", n-1)
		}
		if n > 1 {
			s.Reason = fmt.Sprintf("attempt %d has begun, and %s never returned: the process ended, or the handler was given up", n, before)
		}
		if s.Worker == "" {
			s.Worker = "no worker"
		}
		out = append(out, s)
	}
	return out
}
