package coordinator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

// errReadable ends a follow because a commit can be read that could not, or an operator has decided about it: what stands
// behind it is released from there.
var errReadable = errors.New("a commit in quarantine is decided")

// quarantine holds the spaces whose logs have a commit that cannot be read. What they send from there on is not released, and
// the position stays before it; other spaces are released (docs/adr/0041). It belongs to one follow of a log.
type quarantine struct {
	mu    sync.Mutex
	first map[string]unread // of each space
}

// unread is a commit that cannot be read, and why.
type unread struct {
	model.LogEntry
	why error
}

// has reports whether a space is in quarantine.
func (q *quarantine) has(space string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, is := q.first[space]
	return is
}

func (q *quarantine) add(e unread) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == nil {
		q.first = map[string]unread{}
	}
	q.first[e.Space] = e
}

func (q *quarantine) all() (list []unread) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.first { // any order: each on its own
		list = append(list, e)
	}
	return list
}

// setAside puts the space of an entry into quarantine. The entry counts as being released until this follow has ended.
func (t *tail) setAside(p *progress, q *quarantine, e model.LogEntry, why error) {
	p.begin(e.Seq)
	q.add(unread{e, why})
	t.report(unread{e, why})
}

// report logs a commit that cannot be read, at growing intervals.
func (t *tail) report(e unread) {
	t.c.faults.Error("a commit cannot be read: what its space sends is set aside, and other spaces go on", e.Space,
		"space", e.Space, "partition", t.partition, "sequence", e.Seq, "error", e.why, "remedy", "settle quarantine")
}

// The pauses between two looks whether a commit in quarantine has been decided.
const (
	leastLook = time.Second
	mostLook  = 10 * time.Second
)

// awaitDecision calls decided when a commit in quarantine can be read, or an operator has decided about it.
func (t *tail) awaitDecision(ctx context.Context, q *quarantine, decided func()) {
	for wait := leastLook; ctx.Err() == nil; wait = min(2*wait, mostLook) {
		_ = pause.For(ctx, wait)
		for _, e := range q.all() {
			if stand, err := history.StandIn(ctx, t.c.bus, &e.LogEntry); stand != nil && err == nil {
				decided()
				return
			}
			if ctx.Err() == nil {
				t.report(e)
			}
		}
	}
}
