package space

import (
	"cmp"
	"fmt"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// Config configures a space. The zero value of every field but the first two is its default.
type Config struct {
	// Space and Runtime name the space and the process that hosts it here.
	Space   string
	Runtime string

	// Limits bound the commits, the queues and the attempts of the space, Budgets its passes.
	ledger.Limits
	Budgets

	// WithoutEvents makes an attached runtime handle no events, not even follow-ups that it sends itself: it
	// only computes, observes and writes.
	WithoutEvents bool

	// DocumentWait is how long the event at the head of the lane waits for a document of another space that has
	// not arrived; then it fails with a DocumentError. This runtime measures it from the first attempt that
	// needed the document. 0 means no limit; an attached runtime always waits without a limit.
	DocumentWait time.Duration

	// CheckIdempotency runs every computation and handler twice and reports different results: for tests.
	// Rehearsals is how often the first few runs of each are repeated, default 1: if there are two results at
	// random, the second is the first half of the time.
	CheckIdempotency bool
	Rehearsals       int

	// Guard limits code that does not return.
	Guard Guard

	// Trace observes the space. It decides nothing.
	Trace Trace
}

// Budgets bound the passes of a space. A node that is held back stays invalid, and runs later. Zero fields have
// defaults.
type Budgets struct {
	// MaxIterations is how often one pass collects the nodes that are due, and RunBudget how often it
	// runs any one node; both 10 by default and at least 1, RunBudget at most 250. A budget below the
	// iterations would hold back a node that discovers what it reads and comes to an end
	// (docs/adr/0009).
	MaxIterations int `help:"How often a pass collects the nodes that are due."`
	RunBudget     int `help:"Runs of one node in a pass; 250 at most."`
	// BackoffMin is how long a node that has used up its budget is held back, doubled with each such pass in a
	// row up to BackoffMax; defaults 250 ms and 2 s.
	BackoffMin time.Duration `help:"How long a node is held back that has used up its budget; doubled each time in a row."`
	BackoffMax time.Duration `help:"The longest time for which a node is held back."`
	// RunRetries is how often a node that fails with a transient error runs again at once; default 9,
	// negative for never.
	RunRetries int `help:"Runs again of a node that fails with a transient error; negative: none."`
}

// maxRunBudget is the largest value of the run counter.
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
	case b.BackoffMin < 0:
		return fmt.Errorf("BackoffMin is %v; use a positive duration, or 0 for the default", b.BackoffMin)
	case b.BackoffMax < 0:
		return fmt.Errorf("BackoffMax is %v; use a positive duration, or 0 for the default", b.BackoffMax)
	}
	return nil
}

func (c *Config) fill() error {
	if err := model.CheckName("space", c.Space); err != nil {
		return err
	}
	if err := model.CheckName("runtime", c.Runtime); err != nil {
		return err
	}
	if err := c.Limits.Fill(); err != nil {
		return fmt.Errorf("space %s: %w", c.Space, err)
	}
	if err := c.Budgets.Fill(); err != nil {
		return fmt.Errorf("space %s: %w", c.Space, err)
	}
	if c.DocumentWait < 0 {
		return fmt.Errorf("space %s: DocumentWait is %s; use a positive duration, or 0 for no end", c.Space, c.DocumentWait)
	}
	return nil
}

// ledger returns the configuration of the space's ledger.
func (c *Config) ledger() *ledger.Config {
	return &ledger.Config{Runtime: c.Runtime, WithoutEvents: c.WithoutEvents, Limits: c.Limits, PauseMin: c.RetryMin, PauseMax: c.RetryMax}
}

// Guard lets a host limit the application's code: the core has no clock, and cannot continue while code that it
// has called does not return. A host that abandons such code abandons the whole Space, and makes another one
// from the log; whatever the code does then, it does to a space that appends nothing any more (docs/adr/0034).
// The results of the functions are inputs, like the time. All fields are optional.
type Guard struct {
	// Used is called whenever code uses its transaction. In an abandoned space it may end the goroutine.
	Used func()
	// Returned is called when a handler or a node has returned, or an attempt has ended without a call. For a
	// handler, an error replaces the handler's own result.
	Returned func(handler bool) error
	// Host is what Tx.Host returns.
	Host any
}

func (g *Guard) returned(handler bool) error {
	if g.Returned == nil {
		return nil
	}
	return g.Returned(handler)
}
