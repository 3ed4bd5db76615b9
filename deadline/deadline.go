// Package deadline has the option that limits the whole of a task: an option of Perform and External, and of those of package flow. The option
// space.Deadline limits a single task.
//
//	charge.External(p, deadline.After(24*time.Hour))
package deadline

import (
	"time"

	"github.com/settlehq/settle/worker/tasks"
)

// After sets how long after its start a task of the action may end; 0 for no limit, the default. A task that has not ended then fails with a
// DeadlineError: whatever waits for it, performs it or pauses between two attempts, and wherever its space is. Attempts that are under way are
// cut off, and Done is called.
func After(d time.Duration) func(*tasks.Options) { return func(o *tasks.Options) { o.Deadline = d } }
