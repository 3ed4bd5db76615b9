package fleet

import (
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/status"
)

// FailingFor is for how long tasks that were given up need attention.
const FailingFor = time.Hour

// Failing returns the actions whose tasks fail, as the workers report them: those that have failed last first. Of tasks that were given up, it
// leaves out those after the last of which FailingFor has passed. unnamed is how many more there are.
func (f *Fleet) Failing() (list []status.FailingAction, unnamed int) {
	for i := range f.Workers {
		if g := f.Workers[i].Figures; g != nil {
			list = append(list, g.Failing...)
			unnamed += max(0, g.FailingCount-len(g.Failing))
		}
	}
	list = slices.DeleteFunc(list, func(a status.FailingAction) bool { return a.GivenUp > 0 && f.At.Sub(a.At) > FailingFor })
	slices.SortStableFunc(list, func(a, b status.FailingAction) int { return b.At.Compare(a.At) })
	return list, unnamed
}

// FailingText returns a clause with the state of the tasks of an action, and the last error.
func FailingText(a *status.FailingAction) string {
	if a.GivenUp == 0 {
		return fmt.Sprintf("task %s of action %s is tried again after %s: %s", a.Key, a.Action, display.Count(a.Attempts, "failed attempt"), display.FirstLine(a.Error))
	}
	were := "tasks of action " + a.Action + " were given up, the last of them " + a.Key
	if a.GivenUp == 1 {
		were = "task " + a.Key + " of action " + a.Action + " was given up"
		return fmt.Sprintf("%s after %s: %s", were, display.Count(a.Attempts, "attempt"), display.FirstLine(a.Error))
	}
	return fmt.Sprintf("%s %s after %s: %s", display.Grouped(a.GivenUp), were, display.Count(a.Attempts, "attempt"), display.FirstLine(a.Error))
}
