package host

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/internal/pause"
)

// returns are what is to be done for spaces of a partition when a pause is over. When a read fails that several
// spaces have waited for, their pauses end at one instant, and a worker may have room for only some of them.
// What is due at one instant is done in the order of the names of the spaces, so that a run can be repeated.
type returns struct {
	mu   sync.Mutex // guards list
	list []*comeback
	one  sync.Mutex // held while something is done: one space comes back after the other
}

// comeback is what is done for a space at a time.
type comeback struct {
	at    time.Time
	space string
	do    func()
}

// after waits for d, or until ctx ends, and then does do, or what is due by then of a space that precedes this one.
// All callers of one returns pass the same context, and do must not call after.
func (r *returns) after(ctx context.Context, d time.Duration, space string, do func()) {
	r.mu.Lock()
	r.list = append(r.list, &comeback{at: time.Now().Add(d), space: space, do: do})
	r.mu.Unlock()
	_ = pause.For(ctx, d)
	r.one.Lock()
	defer r.one.Unlock()
	r.next().do()
}

// next removes and returns the first of those that are left. There is one for each caller.
func (r *returns) next() *comeback {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := slices.MinFunc(r.list, (*comeback).compare)
	r.list = slices.DeleteFunc(r.list, func(c *comeback) bool { return c == first })
	return first
}

func (c *comeback) compare(o *comeback) int {
	return cmp.Or(c.at.Compare(o.at), strings.Compare(c.space, o.space))
}
