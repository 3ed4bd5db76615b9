package console

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// searchSpaces returns the space that an address names, or all that the visitor may read.
func (c *Console) searchSpaces(ctx context.Context, q *query) ([]string, error) {
	if space := q.Param("space"); space != "" {
		return []string{space}, refuse(q.visitor.MayReadAll(space))
	}
	names, err := c.shared.Spaces(ctx, 5*time.Second)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, name := range names {
		if q.visitor.MayReadAll(name) == nil {
			list = append(list, name)
		}
	}
	return list, nil
}

// eachSpace calls f for each space, by its number, several at a time, and returns the errors of those that could not be read.
func eachSpace(ctx context.Context, spaces []string, f func(ctx context.Context, i int) error) (unread []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan int)
	for range min(searches, len(spaces)) {
		all.Go(func() { // ends when next is closed
			for i := range next {
				if err := f(ctx, i); err != nil {
					mu.Lock()
					unread = append(unread, fmt.Sprintf("space %s: %v", spaces[i], err))
					mu.Unlock()
				}
			}
		})
	}
	for i := range spaces {
		next <- i
	}
	close(next)
	all.Wait()
	return unread
}

// lately is a set whose members leave after a while.
type lately struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// maxLately bounds a set.
const maxLately = 100_000

func (l *lately) has(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until[key])
}

func (l *lately) add(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil || len(l.until) >= maxLately {
		l.until = map[string]time.Time{}
	}
	l.until[key] = time.Now().Add(withoutRuns)
}
