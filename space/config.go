package space

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/budget"
)

// Config configures a space. The zero value of every field but the first two is its default.
type Config struct {
	// Space and Runtime name the space and the process that hosts it here.
	Space   string
	Runtime string

	// Limits bound the commits, the queues and the attempts of the space, Budgets its passes.
	ledger.Limits
	Budgets

	// WithoutEvents leaves the events of the space to others, follow-ups that are sent
	// here included: for a runtime that is attached to compute, to observe and to write.
	WithoutEvents bool

	// DocumentWait is for how long the event at the head of the lane waits for a document of another
	// space that is not here; then it fails with a DocumentError. It is measured by this runtime, from
	// when the event first needed that document here. 0 for no end of it; a runtime that is attached
	// always waits.
	DocumentWait time.Duration

	// CheckIdempotency runs every computation and handler twice and reports one that comes to
	// something else the second time: for tests (seed 001 section 4.2). Rehearsals is how often
	// the first few runs of each are repeated, default 1: of two things by chance, the second
	// is the first as often as not.
	CheckIdempotency bool
	Rehearsals       int

	// Guard watches over code that does not return.
	Guard Guard

	// Trace observes. It is never asked for a decision.
	Trace Trace
}

// Budgets bound the passes of a space.
type Budgets = budget.Budgets

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

// ledger is the part of the configuration that package ledger needs.
func (c *Config) ledger() *ledger.Config {
	return &ledger.Config{Runtime: c.Runtime, WithoutEvents: c.WithoutEvents, Limits: c.Limits, PauseMin: c.RetryMin, PauseMax: c.RetryMax}
}

// Guard is how a host watches over the code of the application: the core has no clock, and
// cannot go on while code that it has called does not return. A host that gives such code up
// gives up the whole Space with it, and makes another one out of the log; what the code does
// then, it does to a space that appends nothing any more (docs/adr/0034). What the functions
// answer is an input, like the time. All of it is optional.
type Guard struct {
	// Used is called whenever code uses its transaction. It may end the goroutine there, of a
	// space that is given up, and else does nothing.
	Used func()
	// Returned is called when a handler, or a node, has come back, or an attempt has ended
	// without one having been called. The error, of a handler, is what the attempt ends in
	// instead of what it has returned.
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
