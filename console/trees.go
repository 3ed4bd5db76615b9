package console

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/history"
)

// trees has the trees of events that were read last, by the rights of their visitors: the forms of one tree, such as the waterfall and the graph,
// are pages of their own, and share one reading.
type trees struct {
	mu  sync.Mutex
	all map[treeKey]*sharedTree
	// patience is how long a tree is read before less of it is.
	patience time.Duration
	// reads counts the readings.
	reads atomic.Uint64
}

type treeKey struct {
	visitor string
	ref     history.EventRef
}

// mostTrees bounds the trees that are kept, and treeKept is how long one is kept after its last use.
const mostTrees, treeKept = 32, 30 * time.Second

// sharedTree is the tree of an event.
type sharedTree struct {
	// busy has one place: the reader that reads. It guards the rest, but for used.
	busy chan struct{}
	data *eventData // without rows; nil if it was not read
	at   time.Time
	took time.Duration
	most int // events that are read

	used time.Time // guarded by trees.mu
}

// of returns the entry of a tree.
func (t *trees) of(key treeKey) *sharedTree {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	s := t.all[key]
	if s == nil {
		t.makeRoom(now)
		s = &sharedTree{busy: make(chan struct{}, 1), most: treeEvents}
		if t.all == nil {
			t.all = map[treeKey]*sharedTree{}
		}
		t.all[key] = s
	}
	s.used = now
	return s
}

// makeRoom forgets trees that are not used, and the one that has not been used for longest if there are too many.
func (t *trees) makeRoom(now time.Time) {
	var keys []treeKey
	for key, s := range t.all { // any order
		if now.Sub(s.used) > treeKept {
			delete(t.all, key)
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) >= mostTrees {
		delete(t.all, slices.MinFunc(keys, func(a, b treeKey) int { return t.all[a].used.Compare(t.all[b].used) }))
	}
}

// stale forgets all trees: an action has changed something.
func (t *trees) stale() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.all)
}

// get returns the tree, as it was not longer ago than age, or reads it.
func (s *sharedTree) get(ctx context.Context, read func(context.Context, *sharedTree) (*eventData, error)) (*eventData, error) {
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.busy }()
	if s.data != nil {
		if time.Since(s.at) < s.age() {
			return s.data, nil
		}
	}
	at := time.Now()
	d, err := read(ctx, s)
	if err == nil {
		s.data, s.at, s.took = d, time.Now(), time.Since(at)
	}
	return d, err
}

// age is how old what was read may be: some seconds if the tree has settled, or takes long to read, and a moment if only a part of it was read, for
// there may be time for more now.
func (s *sharedTree) age() time.Duration {
	switch {
	case s.data.Tree.More && s.data.Tree.Events < treeEvents:
		return fresh
	case s.data.Tree.Settled && !s.data.Tree.More:
		return settledAge
	}
	return min(max(fresh, s.took), settledAge)
}
