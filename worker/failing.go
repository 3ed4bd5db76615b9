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
	by map[actionOf]*failingAction
}

type actionOf struct{ space, action string }

// failingAction is an action, as the worker reports it once tasks were given up. Before that, it has the tasks that are tried again, by key.
type failingAction struct {
	status.FailingAction
	tried map[string]trial
}

// trial is a task that is tried again.
type trial struct {
	attempts int
	err      string
	at       time.Time
}

const (
	// maxFailing is how many of them a worker reports, and keptFailing how many it remembers.
	maxFailing, keptFailing = 20, 256
	// keptTrials is how many tasks of an action that are tried again it remembers.
	keptTrials = 32
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
	if end.How != tasks.Again && !givesUp { // the task is done, or its workflow knows
		if is != nil {
			delete(is.tried, end.Key)
			if len(is.tried) == 0 && is.GivenUp == 0 {
				delete(f.by, at)
			}
		}
		return
	}
	now := time.Now().UTC()
	if is == nil {
		f.makeRoom()
		is = &failingAction{FailingAction: status.FailingAction{Space: space, Action: end.Action, Since: now}, tried: map[string]trial{}}
		f.by[at] = is
	}
	is.Handled = end.Handled
	if !givesUp {
		is.try(end.Key, trial{end.Attempts, end.Error, now})
		return
	}
	delete(is.tried, end.Key)
	is.GivenUp++
	is.Key, is.Attempts, is.Error, is.At = end.Key, end.Attempts, end.Error, now
}

// try records a failed attempt at a task that is tried again. If there are too many, those with fewest attempts are forgotten.
func (a *failingAction) try(key string, t trial) {
	if _, known := a.tried[key]; !known && len(a.tried) >= keptTrials {
		least := ""
		for k, other := range a.tried { // any order: one of those with fewest
			if least == "" || other.attempts < a.tried[least].attempts {
				least = k
			}
		}
		if a.tried[least].attempts > t.attempts {
			return
		}
		delete(a.tried, least)
	}
	a.tried[key] = t
}

// shown returns the action as it is reported: with the task that was given up last, or else the one that was tried most often.
func (a *failingAction) shown() status.FailingAction {
	is := a.FailingAction
	if is.GivenUp > 0 {
		return is // what was given up is worse, and stays named for a while
	}
	for key, t := range a.tried { // any order: the most attempts, then the latest, then the first key
		if cmp.Or(cmp.Compare(t.attempts, is.Attempts), t.at.Compare(is.At), cmp.Compare(is.Key, key)) > 0 {
			is.Key, is.Attempts, is.Error, is.At = key, t.attempts, t.err, t.at
		}
	}
	return is
}

// makeRoom forgets the action whose tasks have not failed for longest, if there are too many.
func (f *failing) makeRoom() {
	if f.by == nil {
		f.by = map[actionOf]*failingAction{}
	}
	if len(f.by) >= keptFailing {
		delete(f.by, slices.MinFunc(slices.Collect(maps.Keys(f.by)), func(a, b actionOf) int { return f.by[a].shown().At.Compare(f.by[b].shown().At) }))
	}
}

// left forgets the tasks of a space that are tried again: another worker does that now.
func (f *failing) left(space string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.by, func(at actionOf, is *failingAction) bool {
		if at.space == space {
			clear(is.tried)
		}
		return at.space == space && is.GivenUp == 0
	})
}

// describe adds those that have failed last to the figures of the worker.
func (f *failing) describe(to *status.Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, is := range f.by { // any order: sorted below
		if shown := is.shown(); shown.GivenUp > 0 || shown.Attempts >= repeatedly {
			to.Failing = append(to.Failing, shown)
		}
	}
	slices.SortFunc(to.Failing, func(a, b status.FailingAction) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Action, b.Action))
	})
	to.FailingCount = len(to.Failing)
	to.Failing = to.Failing[:min(len(to.Failing), maxFailing)]
}
