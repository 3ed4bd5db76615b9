package space

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space/budget"
)

// Config configures a space. Space and Runtime are required; a zero value in any other field selects the
// default.
type Config struct {
	// Space is the name of the space, and Runtime that of the process that hosts it.
	Space   string
	Runtime string

	// Limits bound the commits, queues and attempts of the space, and Budgets its passes.
	ledger.Limits
	Budgets

	// WithoutEvents keeps an attached runtime from handling events, even follow-ups that it sends itself: it
	// only computes, observes and writes.
	WithoutEvents bool

	// DocumentWait is how long the event at the head of the lane waits for a document of another space to
	// arrive before it fails with a DocumentError. It is measured from this runtime's first attempt that
	// needed the document. 0 means no limit; an attached runtime always waits without limit.
	DocumentWait time.Duration

	// CheckIdempotency runs every computation and handler twice and reports different results; it is for
	// tests, and CheckSample for a space at work. Rehearsals is how often the first few runs of each function are repeated, default 1: one
	// repetition misses a random choice between two results half of the time.
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

// Guard lets a host limit the application's code: the core has no clock, and is blocked while code that it
// called does not return. A host that abandons such code abandons the whole Space and makes another one from
// the log; the abandoned Space appends nothing, whatever the code still does (docs/adr/0034). The results of
// the functions are inputs, like the time. All fields are optional.
type Guard struct {
	// Used is called whenever code uses its transaction. In an abandoned space it may end the goroutine.
	Used func()
	// Returned is called when a handler or node has returned, or an attempt has ended without calling a
	// handler. For a handler, an error replaces the handler's own result.
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
