// Package budget bounds the passes of a space. It does not depend on the graph, so a process that hosts
// spaces can offer these options without linking it.
package budget

import (
	"cmp"
	"fmt"
	"time"
)

// Budgets bound the passes of a space. A node that is held back stays invalid, and runs later. The
// zero value of each field stands for its default.
type Budgets struct {
	// MaxIterations bounds the sweeps of one pass, and RunBudget the runs of any one node in it; both 10 by
	// default and at least 1, RunBudget at most 250. With a RunBudget below MaxIterations, a node that still
	// discovers its reads would be held back although it converges (docs/adr/0009).
	MaxIterations int `help:"How often a pass collects due nodes."`
	RunBudget     int `help:"Runs of one node in a pass; at most 250."`
	// BackoffMin is how long a node that exhausted its budget is held back, doubled for each such pass in a
	// row up to BackoffMax; defaults 250 ms and 2 s.
	BackoffMin time.Duration `help:"How long a node that has used up its budget is held back; doubled each consecutive time."`
	BackoffMax time.Duration `help:"The longest time for which a node is held back."`
	// RunRetries is how many times a node that fails with a transient error is retried at once; default 9,
	// negative for never.
	RunRetries int `help:"Retries of a node that fails with a transient error; negative: none."`
	// CheckRuns repeats one in so many runs of each computation and compares the results; default 0, none.
	CheckRuns int `help:"Repeat one in so many runs of each computation, and report those that have another result then; 0: none."`
}

// maxRunBudget is the largest count that fits into the node's run counter.
const maxRunBudget = 250

// Fill replaces zero fields by their defaults. It returns an error for the first invalid field.
func (b *Budgets) Fill() error {
	b.MaxIterations = cmp.Or(b.MaxIterations, 10)
	b.RunBudget = cmp.Or(b.RunBudget, 10)
	b.BackoffMin = cmp.Or(b.BackoffMin, 250*time.Millisecond)
	b.BackoffMax = cmp.Or(b.BackoffMax, 2*time.Second)
	b.RunRetries = cmp.Or(b.RunRetries, 9)
	return b.check()
}

func (b *Budgets) check() error {
	switch {
	case b.MaxIterations < 0:
		return fmt.Errorf("MaxIterations is %d; use at least 1, or 0 for the default", b.MaxIterations)
	case b.RunBudget < 0 || b.RunBudget > maxRunBudget:
		return fmt.Errorf("RunBudget is %d; use 1 to %d, or 0 for the default", b.RunBudget, maxRunBudget)
	case b.CheckRuns < 0:
		return fmt.Errorf("CheckRuns is %d; use a positive number, of which one run each is repeated, or 0 for none", b.CheckRuns)
	case b.BackoffMin < 0:
		return fmt.Errorf("BackoffMin is %v; use a positive duration, or 0 for the default", b.BackoffMin)
	case b.BackoffMax < 0:
		return fmt.Errorf("BackoffMax is %v; use a positive duration, or 0 for the default", b.BackoffMax)
	}
	return nil
}
