package tasks

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/settlehq/settle/model"
)

// Slots limit the concurrent attempts of a process, and list them.
type Slots struct {
	places   chan struct{}
	mu       sync.Mutex
	underWay map[*Attempt]bool
}

// Attempt is one attempt at a task of an action, or to fetch a value of an input.
type Attempt struct {
	// Deployment is the prefix of the deployment.
	Deployment         string
	Space, Action, Key string
	// Number counts the attempts at the task, from 1.
	Number int
	// Event is the id of the event whose handler has started the task; "" for an input, which a computation wants.
	Event string
}

// IdempotencyKey returns the key for services outside: see model.IdempotencyKey.
func (a Attempt) IdempotencyKey() string {
	return model.IdempotencyKey(a.Deployment, a.Space, a.Action, a.Key)
}

type attemptKey struct{}

// WithAttempt returns a context in which an attempt is made.
func WithAttempt(ctx context.Context, a Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// AttemptOf returns the attempt that is made in a context, false if it is none of one.
func AttemptOf(ctx context.Context) (Attempt, bool) {
	a, is := ctx.Value(attemptKey{}).(Attempt)
	return a, is
}

// NewSlots returns slots for n concurrent attempts.
func NewSlots(n int) *Slots {
	return &Slots{places: make(chan struct{}, n), underWay: map[*Attempt]bool{}}
}

// UnderWay returns the attempts that have not returned, in no order.
func (s *Slots) UnderWay() []*Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.underWay))
}

// enter waits for a slot until ctx ends, and reports whether the attempt has one.
func (s *Slots) enter(ctx context.Context, a *Attempt) bool {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil {
		<-s.places // ctx may have ended at the same time
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay[a] = true
	return true
}

func (s *Slots) leave(a *Attempt) {
	s.mu.Lock()
	delete(s.underWay, a)
	s.mu.Unlock()
	<-s.places
}
