// Package runsearch searches for runs of workflows in many spaces at a time.
package runsearch

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

// atATime is how many spaces are read at a time.
const atATime = 16

// Find returns a page of the runs that a search finds in spaces. read reads a document as the log has it.
func Find(ctx context.Context, s *runs.Search, spaces []string, read func(ctx context.Context, space, doc string) (model.Value, error)) (*runs.FoundPage, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	list, err := s.Select(spaces)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	found := make(map[string]*runs.Page, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atATime)
	for _, space := range list {
		g.Go(func() error {
			f, err := s.In(space)
			if err != nil {
				return err
			}
			p, err := runs.Find(f, func(doc string) (model.Value, error) { return read(ctx, space, doc) })
			if err != nil {
				return fmt.Errorf("search in space %s: %w", space, err)
			}
			mu.Lock()
			defer mu.Unlock()
			found[space] = p
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return s.Page(found), nil
}
