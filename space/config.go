package space

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// Config says how a space behaves. The zero value of every field but the first
// two is its default.
type Config struct {
	// Space and Runtime name the space and the process that hosts it here.
	Space   string
	Runtime string

	// MaxCommitBytes bounds the encoded size of a commit; default 512 KiB, well
	// below the usual max_payload of 1 MiB. A single transaction beyond it fails.
	// At least 32 KiB, so that the receipt of the failure always fits.
	MaxCommitBytes int
	// MaxGroup is how many events one commit decides at most (group commit);
	// default 1024. Larger groups cost latency and memory, not correctness.
	MaxGroup int
	// LaneLimit is how many waiting events are kept in memory; default
	// lanes.DefaultLimit.
	LaneLimit int

	// MaxLater is how many events may wait for their time in the space; default 100,000. One
	// more is refused, or fails the transaction that sends it.
	MaxLater int

	// MaxChain is how long a chain of events may become that cause each other with no time
	// between: the depth up to which they may send further ones, in this space or another.
	// Default 10,000, negative for no end of it. An event whose handler goes beyond it fails.
	MaxChain int

	// WithoutEvents leaves the events of the space to others, follow-ups that are sent
	// here included: for a runtime that is attached to compute, to observe and to write.
	WithoutEvents bool

	// MaxIterations and RunBudget bound one pass (seed 001 section 7.7): how often
	// it collects work, and how often it runs any one node. Both default to 10: a
	// budget below the iterations would defer who discovers and comes to an end
	// (docs/adr/0009).
	MaxIterations int
	RunBudget     int
	// BackoffMin and BackoffMax gate a node that used its budget up: 250 ms,
	// doubled per exhausted pass in a row, up to 2 s.
	BackoffMin time.Duration
	BackoffMax time.Duration

	// RunRetries is how often a node that fails with a transient error runs again, at once,
	// and EventRetries how many attempts an event has then; default 9 and 5, negative for
	// no second one. RetryMin and RetryMax are the pause between attempts: 25 ms, doubled up
	// to 1 s. The same pauses follow conflicts from the second on, without a budget: when
	// they have lasted for ConflictWindow, default 30 s, that is reported as an error, and
	// the event goes on being tried. A negative window reports the first conflict.
	//
	// LostAttempts is how many attempts at an event may end with the process, without the
	// handler having come back: 3. Then the event fails. Negative for no end of it.
	LostAttempts   int
	RunRetries     int
	EventRetries   int
	RetryMin       time.Duration
	RetryMax       time.Duration
	ConflictWindow time.Duration

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

// defaultMaxCommitBytes leaves room for headers, the cursor and the commit's own
// frame below the usual max_payload.
const (
	defaultMaxCommitBytes = 512 << 10
	minMaxCommitBytes     = 32 << 10
)

func (c *Config) fill() error {
	if err := model.CheckName("space", c.Space); err != nil {
		return err
	}
	if err := model.CheckName("runtime", c.Runtime); err != nil {
		return err
	}
	def := func(field *int, v int) {
		if *field == 0 {
			*field = v
		}
	}
	def(&c.MaxCommitBytes, defaultMaxCommitBytes)
	def(&c.MaxGroup, 1024)
	def(&c.MaxIterations, 10)
	def(&c.RunBudget, 10)
	def(&c.RunRetries, 9)
	def(&c.EventRetries, 5)
	def(&c.LostAttempts, 3)
	def(&c.MaxLater, 100_000)
	def(&c.MaxChain, lineage.DefaultMaxChain)
	pause := func(field *time.Duration, v time.Duration) {
		if *field == 0 {
			*field = v
		}
	}
	pause(&c.BackoffMin, 250*time.Millisecond)
	pause(&c.BackoffMax, 2*time.Second)
	pause(&c.RetryMin, 25*time.Millisecond)
	pause(&c.RetryMax, time.Second)
	pause(&c.ConflictWindow, 30*time.Second)
	return c.check()
}

// ledger is the part of the configuration that package ledger needs.
func (c *Config) ledger() ledger.Config {
	return ledger.Config{
		Space: c.Space, Runtime: c.Runtime, MaxCommitBytes: c.MaxCommitBytes, MaxGroup: c.MaxGroup, LaneLimit: c.LaneLimit,
		MaxLater: c.MaxLater, WithoutEvents: c.WithoutEvents, EventRetries: c.EventRetries, LostAttempts: c.LostAttempts,
		RetryMin: c.RetryMin, RetryMax: c.RetryMax, ConflictWindow: c.ConflictWindow,
	}
}

func (c *Config) check() error {
	if c.RunBudget > 250 {
		return fmt.Errorf("space %s: RunBudget is %d; 250 is the most", c.Space, c.RunBudget)
	}
	if c.MaxCommitBytes < minMaxCommitBytes || c.MaxGroup < 1 || c.RunBudget < 1 || c.MaxIterations < 1 {
		return fmt.Errorf("space %s: MaxCommitBytes is %d, which must be %d at least; MaxGroup %d, MaxIterations %d and RunBudget %d, which must be 1",
			c.Space, c.MaxCommitBytes, minMaxCommitBytes, c.MaxGroup, c.MaxIterations, c.RunBudget)
	}
	if c.MaxLater < 0 {
		return fmt.Errorf("space %s: MaxLater is %d; it must not be negative, and 0 stands for its default", c.Space, c.MaxLater)
	}
	if c.DocumentWait < 0 {
		return fmt.Errorf("space %s: DocumentWait is %s; it must not be negative, and 0 stands for no end", c.Space, c.DocumentWait)
	}
	if c.LaneLimit < 0 || min(c.BackoffMin, c.BackoffMax, c.RetryMin, c.RetryMax) < 0 {
		return fmt.Errorf("space %s: LaneLimit is %d, BackoffMin %s, BackoffMax %s, RetryMin %s and RetryMax %s; none of them may be negative, and 0 stands for its default",
			c.Space, c.LaneLimit, c.BackoffMin, c.BackoffMax, c.RetryMin, c.RetryMax)
	}
	return nil
}
