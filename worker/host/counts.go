package host

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/runlimit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

// Counts counts what a worker has written to the log.
type Counts struct {
	// Commits that were accepted, takeovers included.
	Commits uint64
	// Receipts in them, and those of them whose outcome is not "handled".
	Receipts, Failed uint64
	// Ended are the receipts by outcome.
	Ended [len(model.Outcomes)]uint64
	// Refused appends: another runtime had appended first.
	Refused uint64
	// Activations and Evictions count how often a space was loaded and evicted.
	Activations, Evictions uint64
}

type counters struct {
	commits, receipts, failed, refused atomic.Uint64
	activations, evictions             atomic.Uint64
	ended                              [len(model.Outcomes)]atomic.Uint64
	// byRule and byContent count the events of clients that were refused before their handler.
	byRule, byContent atomic.Uint64
	abandoned         runlimit.Abandoned
	backlog           atomic.Int64 // bytes of the events that wait for their spaces
	missed            missedLog
	disallowed        disallowedLog
	// denied has the events that no rule allows and whose space exists: each ends as refused.
	denied disallowedLog
	// unstored has the events that the gateway has refused, and unstoredSeq is the number of them.
	unstored    disallowedLog
	unstoredSeq atomic.Uint64
}

func (c *counters) read() Counts {
	counts := Counts{
		Commits: c.commits.Load(), Receipts: c.receipts.Load(), Failed: c.failed.Load(), Refused: c.refused.Load(),
		Activations: c.activations.Load(), Evictions: c.evictions.Load(),
	}
	for i := range c.ended {
		counts.Ended[i] = c.ended[i].Load()
	}
	return counts
}

// committed counts a commit, and reports whether it has ended an event.
func (c *counters) committed(commit *model.Commit) (ended bool) {
	c.commits.Add(1)
	for i := range commit.Txs {
		if r := commit.Txs[i].Receipt; r != nil {
			c.receipts.Add(1)
			if at := slices.Index(model.Outcomes[:], r.Outcome); at >= 0 {
				c.ended[at].Add(1)
			}
			if r.Outcome != model.Handled && r.Outcome != model.Rejected {
				c.failed.Add(1)
			}
			ended = true
		}
	}
	return ended
}

// missedLog holds the last of a worker.
type missedLog struct {
	mu  sync.Mutex
	all []status.Missed
}

func (l *missedLog) note(name string, m Missed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(was status.Missed) bool { return was.Space == name && was.Cron == m.Cron })
	l.all = append(l.all, status.Missed{Space: name, Cron: m.Cron, Times: m.Times, At: time.UnixMilli(m.At).UTC()})
	if len(l.all) > maxLoads {
		l.all = l.all[1:]
	}
}

func (l *missedLog) newest() []status.Missed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

const (
	// maxLoads is how many spaces of each kind are named.
	maxLoads = 5
	// lateAfter is how long a timer may be due before it counts as late.
	lateAfter = time.Second
)
