package space

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// Fleet limits the tasks of an action that all workers of a deployment together begin, in all spaces. Package worker/tasks does that
// (docs/adr/0066); the core only stores these terms.
type Fleet struct {
	// AtATime limits the attempts at tasks that are under way at the same time, PerSecond those that begin per second; 0 for no limit.
	AtATime   int
	PerSecond float64
	// By, if not "", is a field of the input, each value of which has limits of its own. Tasks without it share one.
	By string
	// Of returns the value of By; nil for that of the input of the task.
	Of func(t *Task, by string) model.Value
}

const (
	// MaxFleet is the largest limit of a fleet, and minPerSecond the least rate.
	MaxFleet     = 1_000_000
	minPerSecond = 0.001
)

// Set reports whether there is any limit.
func (f *Fleet) Set() bool { return f.AtATime > 0 || f.PerSecond > 0 }

// Value returns the value of By of a task, an absent one if the limits count for all tasks together.
func (f *Fleet) Value(t *Task) model.Value {
	switch {
	case f.By == "":
		return model.Value{}
	case f.Of != nil:
		return f.Of(t, f.By)
	}
	return t.In.Get(f.By)
}

// Check returns an error for limits that are not valid.
func (f *Fleet) Check() error {
	switch {
	case f.AtATime < 0 || f.AtATime > MaxFleet:
		return fmt.Errorf("%d tasks at a time in the fleet; between 1 and %d are possible, and 0 for no limit", f.AtATime, MaxFleet)
	case f.PerSecond != 0 && !(f.PerSecond >= minPerSecond && f.PerSecond <= MaxFleet): // NaN, too
		return fmt.Errorf("a rate of %g tasks per second in the fleet; between %g and %d are possible, and 0 for no limit", f.PerSecond, minPerSecond, MaxFleet)
	case f.By != "" && !f.Set():
		return fmt.Errorf("the fleet's limits count by %s, and there is none: set how many tasks at a time, or per second", f.By)
	}
	return nil
}
