package events

import (
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/bench/harness"
)

// Engine is a way to handle events.
type Engine interface {
	// Name is how tables and flags name the engine.
	Name() string
	// About describes it in a line.
	About() string
	// Start starts the engine at a site. An error that is ErrNotRun says that the engine cannot be run there.
	Start(ctx context.Context, at *harness.Site) (System, error)
}

// System is an engine that runs. It has entities, which are created by their first event.
type System interface {
	// Add sends an increment for an entity, and returns the entity's count after it, once that is durable. An id
	// stands for one event: the second Add of an id has no effect, and need not return a count.
	Add(ctx context.Context, entity, id string) (int64, error)
	// State returns the state of an entity.
	State(ctx context.Context, entity string) (State, error)
	// Parts are its processes.
	Parts() harness.Parts
	// Close stops the engine. The state remains, until the site is gone.
	Close() error
}

// State is the state of an entity.
type State struct {
	// Count is how many events have taken effect.
	Count int64 `json:"count"`
	// Last is the number of the last numbered event, and Wrong how many were not the successor of their predecessor.
	Last  int64 `json:"last"`
	Wrong int64 `json:"wrong"`
	// Ended is the number of chains that have ended here.
	Ended int64 `json:"ended"`
}

// Apply is what all engines do with an event that has a number n, 0 for none.
func (s *State) Apply(n int64) {
	s.Count++
	if n == 0 {
		return
	}
	if n != s.Last+1 {
		s.Wrong++
	}
	s.Last = n
}

// What an engine may offer beyond System. A shape that needs more than the engine offers is not run.
type (
	// Poster sends an event and returns when it is stored.
	Poster interface {
		Post(ctx context.Context, entity, id string) error
	}
	// Pourer sends n numbered events to each of the entities, from 1 on, without waiting for them, and returns when all have
	// taken effect.
	Pourer interface {
		Pour(ctx context.Context, entities []string, n int) error
	}
	// Chainer sends an event to the first entity, whose handler sends one to the second, and so on, and returns when
	// that of the last has taken effect. There is one chain at a time that ends at an entity.
	Chainer interface {
		Chain(ctx context.Context, entities []string, id string) error
	}
	// Watcher calls each with the count of an entity, and again when it has changed, until ctx ends.
	Watcher interface {
		Watch(ctx context.Context, entity string, each func(count int64)) error
	}
	// FanIner calls each with the sum of the counts of all inputs, and again when it has changed, until ctx ends.
	// The inputs are named prefix0, prefix1 and so on, up to n.
	FanIner interface {
		FanIn(ctx context.Context, target, prefix string, n int, each func(sum int64)) error
	}
	// Reader gives an entity n documents besides its state, and reads one.
	Reader interface {
		Fill(ctx context.Context, entity string, n int) error
		Read(ctx context.Context, entity string, i int) (int64, error)
	}
	// Restarter restarts what handles events, so that it has nothing in memory.
	Restarter interface {
		Restart(ctx context.Context) error
	}
)

// ErrNotRun is in errors that say why an engine is not run.
var ErrNotRun = errors.New("not run")

func notRun(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotRun, fmt.Sprintf(format, args...))
}

// Engines are all engines, those first that the others are compared with.
func Engines() []Engine {
	return append([]Engine{
		hand{}, hand{batches: true}, settleEngine{}, settleEngine{embedded: true}, settleEngine{workers: 3}, orderedEngine{},
	}, others...)
}

// others are engines with modules of their own, which a build with the tag counts does without.
var others []Engine

// base is the engine that others are compared with.
const base = "by hand"
