package ledger

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/settlehq/settle/lanes"
	"github.com/settlehq/settle/lineage"
)

// Config configures ledgers, and does not change. All of it must be set; see Limits.Fill.
type Config struct {
	// Runtime names the process that serves the space here.
	Runtime string
	// WithoutEvents leaves the events of the space to other runtimes.
	WithoutEvents bool
	Limits
	// PauseMin, doubled up to PauseMax, is the pause after conflicts, from the second on. PauseMax also bounds the
	// pause before the second attempt at an event whose first ended with the process.
	PauseMin, PauseMax time.Duration
}

// Limits bound what one space may do: the sizes of its commits and queues, how often an event is
// tried, and how far events cause each other. The zero value of each field stands for its default.
// The help tags are the texts of the flags that package options derives.
type Limits struct {
	// MaxCommitBytes is the largest encoded size of a commit, in bytes: what one transaction writes,
	// returns and sends. A transaction beyond it fails. Default 512 KiB, and in a worker half of the
	// server's max_payload; at least 32 KiB, so that the receipt of the failure fits.
	MaxCommitBytes int `help:"Bytes that a transaction may write, return and send. Default: half of the server's max_payload, which is also the maximum."`
	// MaxGroup is the largest number of events that one commit decides (group commit); default 1024,
	// at least 1. Larger groups cost latency and memory.
	MaxGroup int `help:"The largest number of events in one commit."`
	// LaneLimit is the largest number of waiting events of a space in memory; default 4096. The
	// others stay in the stream.
	LaneLimit int `help:"The largest number of waiting events of a space in memory; further events stay in the stream."`
	// MaxLater is the largest number of events that wait for a time in a space; default 100,000. One
	// more is refused, or fails the transaction that sends it.
	MaxLater int `help:"The largest number of delayed events and timers of a space."`
	// MaxChain is the largest number of events in a chain that send each other, over all spaces and
	// with no time between; default 10,000, negative for no limit. The event whose handler exceeds it
	// fails. Package space enforces it.
	MaxChain int `help:"The largest number of events in a chain that send each other without a delay; negative: no limit."`
	// EventRetries is the largest number of attempts at an event whose handler returns a transient
	// error; default 5, negative for a single one.
	EventRetries int `help:"Attempts at an event whose handler returns a transient error; negative: one."`
	// LostAttempts is the largest number of attempts at an event from which the handler never
	// returned, because its process ended or it was abandoned; default 3, negative for no limit.
	// After that the event fails.
	LostAttempts int `help:"Attempts at an event whose handler ends the process or does not return; negative: no limit."`
	// RetryMin is the pause after the first attempt, doubled up to RetryMax; defaults 25 ms and 1 s.
	// Conflicts with other runtimes are followed by the same pauses, from the second on.
	RetryMin time.Duration `help:"The pause after the first attempt at an event; it doubles each time."`
	RetryMax time.Duration `help:"The longest pause between attempts."`
	// ConflictWindow is how long an event may meet one conflict after another before that is reported;
	// default 30 s, negative to report the first. The event continues to be tried.
	ConflictWindow time.Duration `help:"How long consecutive conflicts may last before they are reported; negative: report the first."`
}

// defaultMaxCommitBytes leaves room for headers, the cursor and the commit's own
// frame below the usual max_payload.
const (
	defaultMaxCommitBytes = 512 << 10
	minMaxCommitBytes     = 32 << 10
)

// Fill replaces zero fields by their defaults. It returns an error for the first invalid field.
func (l *Limits) Fill() error {
	l.MaxCommitBytes = cmp.Or(l.MaxCommitBytes, defaultMaxCommitBytes)
	l.MaxGroup = cmp.Or(l.MaxGroup, 1024)
	l.LaneLimit = cmp.Or(l.LaneLimit, lanes.DefaultLimit)
	l.MaxLater = cmp.Or(l.MaxLater, 100_000)
	l.MaxChain = cmp.Or(l.MaxChain, lineage.DefaultMaxChain)
	l.EventRetries = cmp.Or(l.EventRetries, 5)
	l.LostAttempts = cmp.Or(l.LostAttempts, 3)
	l.RetryMin = cmp.Or(l.RetryMin, 25*time.Millisecond)
	l.RetryMax = cmp.Or(l.RetryMax, time.Second)
	l.ConflictWindow = cmp.Or(l.ConflictWindow, 30*time.Second)
	return l.check()
}

func (l *Limits) check() error {
	switch {
	case l.MaxCommitBytes < minMaxCommitBytes:
		return fmt.Errorf("MaxCommitBytes is %d; use at least %d, or 0 for the default", l.MaxCommitBytes, minMaxCommitBytes)
	case l.MaxGroup < 0:
		return fmt.Errorf("MaxGroup is %d; use at least 1, or 0 for the default", l.MaxGroup)
	case l.LaneLimit < 0:
		return fmt.Errorf("LaneLimit is %d; use at least 1, or 0 for the default", l.LaneLimit)
	case l.MaxLater < 0:
		return fmt.Errorf("MaxLater is %d; use at least 1, or 0 for the default", l.MaxLater)
	case l.RetryMin < 0:
		return fmt.Errorf("RetryMin is %v; use a positive duration, or 0 for the default", l.RetryMin)
	case l.RetryMax < 0:
		return fmt.Errorf("RetryMax is %v; use a positive duration, or 0 for the default", l.RetryMax)
	}
	return nil
}

// ConflictPause returns how long to wait before the next attempt at what has met its n-th conflict, the second
// or a later one: 25 ms, doubled up to 1 s, less up to a quarter, by which runtimes differ.
func (c *Config) ConflictPause(id string, n int) time.Duration {
	wait := Doubled(c.PauseMin, c.PauseMax, n-1)
	return wait - wait/4*time.Duration(jitter(c.Runtime, id, n))/256
}

// Doubled returns from, doubled for each of n after the first, but no more than most.
func Doubled(from, most time.Duration, n int) time.Duration {
	for ; n > 1 && from < most; n-- {
		from *= 2
	}
	return min(from, most)
}

// jitter returns a number below 256 that differs between runtimes, so that two that have met do not meet
// again, and that is the same for the same arguments.
func jitter(runtime, event string, n int) uint8 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %s %d", runtime, event, n)
	return uint8(h.Sum32() >> 8)
}
