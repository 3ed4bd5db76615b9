package ordered

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker/host"
)

// Handler handles an event: it reads and writes the documents of the event's key through tx, and returns the
// result for the receipt, anything that encodes to JSON. It may be called more than once for an event; only
// one call takes effect. Calls for different keys run concurrently.
//
// An error ends the event with a failed receipt, and nothing that the handler did is kept; a Transient error
// makes the event retried first.
type Handler func(tx *Tx, ev *model.Event) (any, error)

// On makes a handler of a function over the payload's type. A payload fails the event if it does not decode to that
// type, or if a part of it would be lost: an unknown key, null for what has no null, no payload, or a missing key. What
// may be missing has a type for that: a pointer, an any, a model.Value, or the tag omitzero or omitempty. OnLenient
// accepts what On refuses for such a reason, and so does On for notices (model.Notice), to which later versions may add.
func On[P, R any](f func(tx *Tx, payload P) (R, error)) Handler {
	strict := codec.Strict[P]()
	decode := OnLenient(f)
	return func(tx *Tx, ev *model.Event) (any, error) {
		if err := strict(ev.Payload); err != nil && ev.Stream != model.Undelivered {
			return nil, badPayload(ev, err)
		}
		return decode(tx, ev)
	}
}

// OnLenient is On for payloads of which a part may be lost: unknown keys are ignored, and what is missing or null is
// the zero value.
func OnLenient[P, R any](f func(tx *Tx, payload P) (R, error)) Handler {
	return func(tx *Tx, ev *model.Event) (any, error) {
		var p P
		if err := ev.Payload.Decode(&p); err != nil {
			return nil, badPayload(ev, err)
		}
		return f(tx, p)
	}
}

func badPayload(ev *model.Event, err error) error {
	return fmt.Errorf("payload of event %s to %s/%s: %w", ev.ID, ev.Space, ev.Stream, err)
}

// Config configures Serve. Every field except Handlers is optional. Package options turns the fields with a
// help tag into flags and environment variables.
type Config struct {
	// Handlers are the functions by stream. An event of any other stream is refused.
	Handlers map[string]Handler
	// Name is the process's name in the log and in listings, where a unique suffix is added; default
	// "ordered".
	Name string

	// Attempts is how often an event is attempted whose handler returns a Transient error, before it fails;
	// default 5.
	Attempts int `help:"Attempts at an event whose handler returns a transient error."`
	// RetryMin is the pause after the first attempt, doubled up to RetryMax; defaults 25 ms and 1 s.
	RetryMin time.Duration `help:"The pause after the first attempt at an event; it doubles each time."`
	RetryMax time.Duration `help:"The longest pause between attempts."`
	// RunLimit is how long a handler may take; default 30 s, negative for no limit. Within sets other limits
	// for single streams, negative for none. At the limit the handler's context ends (Tx.Context): if it
	// returns, the attempt has failed as with a Transient error. A handler that has not returned a second
	// later is given up: its key is loaded again and continues, and the goroutine stays until the handler
	// returns. After three attempts that were given up, or had ended with their process, the event fails.
	RunLimit time.Duration `help:"How long a handler may take; negative: no limit."`
	Within   map[string]time.Duration
	// MaxChain is how long a chain of events that send each other may become, across all keys: beyond it, the
	// handler's transaction fails, and its event with it. Default 10,000, negative for no limit.
	MaxChain int `help:"The largest number of events in a chain that send each other without a delay; negative: no limit."`
	// Heartbeat is how often servers check on each other; default 500 ms. A dead server is detected within
	// two heartbeats.
	Heartbeat time.Duration `help:"How often the process announces itself and checks for dead ones."`
	// TTL is how long a process that hangs keeps its partitions; default 15 s.
	TTL time.Duration `help:"How long a process that hangs keeps its partitions."`
	// Handover is how long a running handler may continue when a partition is handed over, or when the
	// context of Serve ends, until it is cut off; default 5 s.
	Handover time.Duration `help:"How long a running handler may continue while its partition moves to another process."`
	// Checkpoint is how often changed documents are saved to the bucket, which is how far the bucket trails
	// the log; default 1 s.
	Checkpoint time.Duration `help:"How often changed documents are saved to the STATE buckets."`
	// Idle is how long an idle key stays in memory; default 1 min.
	Idle time.Duration `help:"How long a key with nothing to do stays in memory."`
	// MaxAwake is how many keys may be in memory; beyond that, the keys that have been idle longest are evicted;
	// default 10,000.
	MaxAwake int `help:"The largest number of keys in memory that have nothing to do."`
	// History is how long commits that no restart needs are kept in the log, from which receipts are read;
	// default the deployment's horizon plus an hour.
	History time.Duration `help:"How long to keep commits that only receipts and trees need. Default: the horizon of the deployment plus an hour."`
	// Coordinated declares that coordinators run elsewhere: this process starts none.
	Coordinated bool
	// Logger receives messages for operators. Default: discard.
	Logger *slog.Logger

	id     string        // of this process, and of no other one ever
	faults *faultlog.Log // logs lasting faults
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
			return fmt.Errorf("server %s: Within has 0 for stream %s, which leaves no time at all; use a negative limit for none", c.Name, stream)
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

// options returns the options of the worker that serves the keys. Limits that Config does not have are the
// defaults of spaces.
func (c *Config) options() host.Options {
	return host.Options{
		Heartbeat: c.Heartbeat, MemberTTL: c.TTL, Handover: c.Handover, Checkpoint: c.Checkpoint, Idle: c.Idle, MaxAwake: c.MaxAwake,
		History: c.History, HistoryBytes: -1, RunLimit: c.RunLimit,
		Limits: ledger.Limits{MaxChain: c.MaxChain, EventRetries: c.Attempts, RetryMin: c.RetryMin, RetryMax: c.RetryMax},
	}
}

// Fill replaces zero options by their defaults, except for History, which depends on the deployment. It
// returns an error if one is invalid.
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

// Transient marks an error of a handler as temporary: the event is retried, and its key waits. Handlers need
// not mark conflicts with other processes, which are retried without a limit.
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
