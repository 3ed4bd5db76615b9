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

// errReadable ends a subscription because a commit has become readable, or an operator has decided on it:
// what follows it is released from there.
var errReadable = errors.New("a commit in quarantine is decided")

// quarantine holds the spaces whose logs have a commit that cannot be decoded. Their later sends are not
// released, and the position stays before the commit; other spaces are released (docs/adr/0041). It belongs
// to one subscription to a log.
type quarantine struct {
	mu    sync.Mutex
	first map[string]unread // by space
}

// unread is a commit that cannot be decoded, and why.
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

// setAside puts the space of an entry into quarantine. The entry counts as in flight until this subscription
// has ended.
func (t *tail) setAside(p *progress, q *quarantine, e model.LogEntry, why error) {
	p.begin(e.Seq)
	q.add(unread{e, why})
	t.report(unread{e, why})
}

// report logs a commit that cannot be decoded, at growing intervals.
func (t *tail) report(e unread) {
	t.c.faults.Error("a commit cannot be read: the sends of its space are set aside, other spaces continue", e.Space,
		"space", e.Space, "partition", t.partition, "sequence", e.Seq, "error", e.why, "remedy", "settle quarantine")
}

// The pauses between two checks whether a commit in quarantine has been decided.
const (
	leastLook = time.Second
	mostLook  = 10 * time.Second
)

// awaitDecision calls decided when a commit in quarantine can be decoded, or an operator has decided on it.
func (t *tail) awaitDecision(ctx context.Context, q *quarantine, decided func()) {
	for wait := leastLook; ctx.Err() == nil; wait = min(2*wait, mostLook) {
		_ = pause.For(ctx, wait)
		for _, e := range q.all() {
			if stand, err := history.Substitute(ctx, t.c.bus, &e.LogEntry); stand != nil && err == nil {
				decided()
				return
			}
			if ctx.Err() == nil {
				t.report(e)
			}
		}
	}
}
