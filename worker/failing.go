package worker

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker/tasks"
)

// failing are the actions of the spaces of a worker whose tasks fail: those with a task that is tried again and again, and those with tasks
// that were given up. The calls of workflows that are given up are none of them: the workflow decides what follows, and its run shows it.
type failing struct {
	mu sync.Mutex
	by map[actionOf]*status.FailingAction
}

type actionOf struct{ space, action string }

const (
	// maxFailing is how many of them a worker reports, and keptFailing how many it remembers.
	maxFailing, keptFailing = 20, 256
	// repeatedly is how many attempts at a task have failed when it is reported: a single one may fail for a moment.
	repeatedly = 3
)

// ended records how an attempt has ended.
func (f *failing) ended(space string, end *tasks.End) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := actionOf{space, end.Action}
	is := f.by[at]
	givesUp := end.How == tasks.Failed && !end.Discarded
	switch {
	case end.How == tasks.Again || givesUp:
	case is != nil && is.GivenUp == 0: // a task is done, or its workflow knows
		delete(f.by, at)
		return
	default:
		return
	}
	now := time.Now().UTC()
	if is == nil {
		f.makeRoom()
		is = &status.FailingAction{Space: space, Action: end.Action, Since: now}
		f.by[at] = is
	}
	if givesUp {
		is.GivenUp++
	} else if is.GivenUp > 0 {
		return // what was given up is worse, and stays named for a while
	}
	is.Key, is.Attempts, is.Error, is.Handled, is.At = end.Key, end.Attempts, end.Error, end.Handled, now
}

// makeRoom forgets the action whose tasks have not failed for longest, if there are too many.
func (f *failing) makeRoom() {
	if f.by == nil {
		f.by = map[actionOf]*status.FailingAction{}
	}
	if len(f.by) >= keptFailing {
		delete(f.by, slices.MinFunc(slices.Collect(maps.Keys(f.by)), func(a, b actionOf) int { return f.by[a].At.Compare(f.by[b].At) }))
	}
}

// left forgets the tasks of a space that are tried again: another worker does that now.
func (f *failing) left(space string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.by, func(at actionOf, is *status.FailingAction) bool { return at.space == space && is.GivenUp == 0 })
}

// describe adds those that have failed last to the figures of the worker.
func (f *failing) describe(to *status.Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, is := range f.by { // any order: sorted below
		if is.GivenUp > 0 || is.Attempts >= repeatedly {
			to.Failing = append(to.Failing, *is)
		}
	}
	slices.SortFunc(to.Failing, func(a, b status.FailingAction) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Action, b.Action))
	})
	to.FailingCount = len(to.Failing)
	to.Failing = to.Failing[:min(len(to.Failing), maxFailing)]
}
