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

// returns runs actions for spaces of a partition after pauses. When a read fails that several spaces have
// waited for, their pauses end at one instant, and a worker may have room for only some of them. Actions that
// are due at one instant run in the order of the names of the spaces, so that a run can be repeated.
type returns struct {
	mu   sync.Mutex // guards list
	list []*comeback
	one  sync.Mutex // held while an action runs: one at a time
}

// comeback is an action for a space at a time.
type comeback struct {
	at    time.Time
	space string
	do    func()
}

// after waits for d, or until ctx ends, and then runs do, or a due action of a space that precedes this one.
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

// next removes and returns the first remaining action. There is one for each caller.
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
