//go:build !counts

package events

import (
	"context"
	"errors"
	"sync"
	"time"
)

func init() { others = []Engine{goWorkflows{}, temporal{}, dbosEngine{}, riverEngine{}} }

// answers are what events wait for, by entity and id, where workers are in the client's process.
type answers struct {
	mu      sync.Mutex
	waiting map[string]chan int64
}

func newAnswers() *answers { return &answers{waiting: map[string]chan int64{}} }

func (a *answers) begin(entity, id string) chan int64 {
	ch := make(chan int64, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[entity+"/"+id] = ch
	return ch
}

func (a *answers) give(entity, id string, count int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ch := a.waiting[entity+"/"+id]; ch != nil {
		ch <- count // has room for one
		delete(a.waiting, entity+"/"+id)
	}
}

func (a *answers) wait(ctx context.Context, ch chan int64) (int64, error) {
	select {
	case count := <-ch:
		return count, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(patience):
		return 0, errors.New("no answer")
	}
}
