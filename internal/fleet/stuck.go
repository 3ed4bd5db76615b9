package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/settlehq/settle/status"
)

// MostStuck bounds the spaces of one worker that AllStuck names.
const MostStuck = 20_000

// AllStuck returns all spaces that are stuck, the oldest first: those that f names and, from workers with more of them than they name in their figures,
// the others. A worker that does not answer, or is of an earlier version, has those that it has named.
func (f *Fleet) AllStuck(ctx context.Context, b Bus) []Stuck {
	if f.StuckCount <= len(f.Stuck) {
		return f.Stuck
	}
	lists := make([][]Stuck, len(f.Workers))
	var asking sync.WaitGroup
	for i := range f.Workers {
		m := &f.Workers[i]
		if m.Figures == nil {
			continue
		}
		asking.Go(func() { lists[i] = m.stuck(ctx, b) }) // ends within the patience
	}
	asking.Wait()
	all := slices.Concat(lists...)
	for i := range f.Partitions {
		all = append(all, f.Partitions[i].lost...)
	}
	slices.SortStableFunc(all, func(a, b Stuck) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Space, b.Space)) })
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s Stuck) bool {
		known := seen[s.Space]
		seen[s.Space] = true
		return known
	})
}

// stuck returns the stuck spaces of a worker.
func (m *Member) stuck(ctx context.Context, b Bus) (all []Stuck) {
	named := m.Figures.Stuck
	if m.Figures.StuckCount > len(named) {
		if more, whole := m.stuckPages(ctx, b); whole || len(more) > len(named) {
			named = more
		}
	}
	for i := range named {
		all = append(all, Stuck{named[i], m.ID})
	}
	return all
}

// stuckPages asks a worker for all its stuck spaces. whole reports whether these are all.
func (m *Member) stuckPages(ctx context.Context, b Bus) (all []status.Stuck, whole bool) {
	q := status.StuckQuery{}
	for len(all) < MostStuck {
		within, cancel := context.WithTimeout(ctx, patience)
		question, _ := json.Marshal(status.Question{Stuck: &q}) // of names and a time
		reply, err := b.Ask(within, status.Endpoint(m.ID), question)
		cancel()
		var page status.StuckPage
		if err != nil || json.Unmarshal(reply, &page) != nil || !page.Paged {
			return all, false
		}
		all = append(all, page.Stuck...)
		if !page.More || len(page.Stuck) == 0 {
			return all, true
		}
		last := &page.Stuck[len(page.Stuck)-1]
		q.Since, q.Space = last.Since, last.Space
	}
	return all, false
}
