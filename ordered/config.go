package ordered

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/host"
)

// Handler handles an event: it reads and writes the documents of the event's key through tx,
// and returns the result for the receipt, anything that encodes to JSON. It may be called
// more than once for an event; only one call takes effect. Calls for different keys run at
// the same time.
//
// An error ends the event with a failed receipt, and nothing of what the handler did is kept;
// if it is Transient, the event is tried again first.
type Handler func(tx *Tx, ev *model.Event) (any, error)

// On makes a handler of a function over the payload's type. A payload that does not decode to
// it fails the event.
func On[P, R any](f func(tx *Tx, payload P) (R, error)) Handler {
	return func(tx *Tx, ev *model.Event) (any, error) {
		var p P
		if err := ev.Payload.Decode(&p); err != nil {
			return nil, fmt.Errorf("payload of event %s to %s/%s: %w", ev.ID, ev.Space, ev.Stream, err)
		}
		return f(tx, p)
	}
}

// Config configures Serve. All but Handlers is optional. Package options turns the fields with a help
// tag into flags and environment variables.
type Config struct {
	// Handlers are the functions by stream. An event of any other stream is refused.
	Handlers map[string]Handler
	// Name is what the process is called in the log and in listings, with something behind it
	// that makes it unique; default "ordered".
	Name string

	// Attempts is how often an event is tried whose handler returns a Transient error, before
	// it fails; default 5.
	Attempts int `help:"Attempts at an event whose handler returns a transient error."`
	// RetryMin is the pause after the first attempt, doubled up to RetryMax; defaults 25 ms and 1 s.
	RetryMin time.Duration `help:"The pause after the first attempt at an event; it doubles each time."`
	RetryMax time.Duration `help:"The longest pause between attempts."`
	// RunLimit is how long a handler may take; default 30 s, negative for no limit. Within are the limits
	// of single streams that have another, negative for none. Then its context ends (Tx.Context): if it
	// returns, the attempt has failed as with a Transient error. What has not returned a second later is given
	// up: its key is loaded again and goes on, and the goroutine stays until the handler returns. After three
	// attempts that were given up, or had ended with their process, the event fails.
	RunLimit time.Duration `help:"How long a handler may take; negative: no limit."`
	Within   map[string]time.Duration
	// MaxChain is how long a chain of events may become that send each other, over all keys:
	// beyond it, the handler's transaction fails, and its event with it. Default 10,000,
	// negative for no limit.
	MaxChain int `help:"The largest number of events in a chain that send each other without a delay; negative: no limit."`
	// Heartbeat is how often servers look for each other; default 500 ms. One that has died is
	// noticed within two.
	Heartbeat time.Duration `help:"How often the process announces itself and checks for dead ones."`
	// TTL is how long a process that hangs keeps its partitions; default 15 s.
	TTL time.Duration `help:"How long a process that hangs keeps its partitions."`
	// Handover is how long a running handler may take when a partition is given up, or the
	// context of Serve ends, until it is cut off; default 5 s.
	Handover time.Duration `help:"How long a running handler may continue while its partition moves to another process."`
	// Checkpoint is how often changed documents are saved to the bucket, which is how far that
	// trails the log; default 1 s.
	Checkpoint time.Duration `help:"How often changed documents are saved to the STATE buckets."`
	// Idle is how long a key with nothing to do stays in memory; default 1 min.
	Idle time.Duration `help:"How long a key with nothing to do stays in memory."`
	// MaxAwake is the largest number of keys in memory, beyond those that have something to do; default 10,000.
	MaxAwake int `help:"The largest number of keys in memory that have nothing to do."`
	// History is how long commits that no restart needs are kept in the log, from which
	// receipts are read; default the deployment's horizon and an hour.
	History time.Duration `help:"How long to keep commits that only receipts and trees need. Default: the horizon of the deployment plus an hour."`
	// Coordinated says that coordinators run elsewhere: this process starts none.
	Coordinated bool
	// Logger gets what an operator should know. Default: discard.
	Logger *slog.Logger

	id     string        // of this process, and of no other that there ever was
	faults *faultlog.Log // where faults are logged that may last
}

func (c *Config) fill() error {
	c.Name = cmp.Or(c.Name, "ordered")
	c.id = c.Name + "-" + strings.ToLower(rand.Text()[:8])
	if err := model.CheckName("server", c.id); err != nil {
		return err
	}
	if len(c.Handlers) == 0 {
		return fmt.Errorf("server %s: Handlers is empty; name a handler for each stream", c.Name)
	}
	for stream, h := range c.Handlers {
		if err := model.CheckName("stream", stream); err != nil {
			return err
		}
		if h == nil {
			return fmt.Errorf("server %s: the handler of stream %s is nil", c.Name, stream)
		}
	}
	for stream, d := range c.Within {
		switch {
		case d == 0:
			return fmt.Errorf("server %s: Within has 0 for stream %s, which leaves no time at all; a negative limit stands for none", c.Name, stream)
		case c.Handlers[stream] == nil:
			return fmt.Errorf("server %s: Within has a limit for stream %s, which has no handler", c.Name, stream)
		}
	}
	if err := c.Fill(); err != nil {
		return fmt.Errorf("server %s: %w", c.Name, err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.faults = faultlog.New(c.Logger)
	return nil
}

// options returns the options of the worker that serves the keys. The limits that Config does not have are the
// defaults of spaces.
func (c *Config) options() host.Options {
	return host.Options{
		Heartbeat: c.Heartbeat, MemberTTL: c.TTL, Handover: c.Handover, Checkpoint: c.Checkpoint, Idle: c.Idle, MaxAwake: c.MaxAwake,
		History: c.History, HistoryBytes: -1, RunLimit: c.RunLimit,
		Limits: ledger.Limits{MaxChain: c.MaxChain, EventRetries: c.Attempts, RetryMin: c.RetryMin, RetryMax: c.RetryMax},
	}
}

// Fill replaces options that are 0 by their defaults, except for History, which depends on the
// deployment. It returns an error if one is invalid.
func (c *Config) Fill() error {
	if c.Attempts < 0 || c.MaxAwake < 0 || min(c.RetryMin, c.RetryMax, c.Heartbeat, c.TTL, c.Handover, c.Checkpoint, c.Idle, c.History) < 0 {
		return errors.New("attempts, numbers and durations must not be negative; 0 is the default")
	}
	c.Attempts = cmp.Or(c.Attempts, 5)
	c.RunLimit = cmp.Or(c.RunLimit, 30*time.Second)
	c.MaxChain = cmp.Or(c.MaxChain, lineage.DefaultMaxChain)
	c.RetryMin = cmp.Or(c.RetryMin, 25*time.Millisecond)
	c.RetryMax = cmp.Or(c.RetryMax, time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 500*time.Millisecond)
	c.TTL = cmp.Or(c.TTL, 15*time.Second)
	c.Handover = cmp.Or(c.Handover, 5*time.Second)
	c.Checkpoint = cmp.Or(c.Checkpoint, time.Second)
	c.Idle = cmp.Or(c.Idle, time.Minute)
	c.MaxAwake = cmp.Or(c.MaxAwake, 10_000)
	return nil
}

// Transient marks an error of a handler as one that may pass: the event is tried again, and
// its key waits. Conflicts with other processes are none of the handler's business, and are
// tried again without a limit.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return transient{err}
}

type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

func isTransient(err error) bool {
	_, is := errors.AsType[transient](err)
	return is
}
