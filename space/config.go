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
		return fmt.Errorf("space %s: DocumentWait is %s; use a positive duration, or 0 for no limit", c.Space, c.DocumentWait)
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
	// Context returns a context that ends when the code that uses a transaction must return.
	Context func() Context
}

func (g *Guard) returned(handler bool) error {
	if g.Returned == nil {
		return nil
	}
	return g.Returned(handler)
}
